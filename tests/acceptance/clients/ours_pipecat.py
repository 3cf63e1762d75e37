"""Our pipecat service: a turn token by token, then one whose playing is started and interrupted."""

import asyncio

from common import WS
from pipecat.frames.frames import BotStartedSpeakingFrame, InterruptionFrame
from pipecat.tests.utils import SleepFrame
from pipecat_common import hear, push, turn
from playhead.client.integrations.pipecat import PlayheadTTSService


async def main() -> None:
    playing = [SleepFrame(sleep=1.0), BotStartedSpeakingFrame(), SleepFrame(sleep=9.0)]
    heard, errors = await hear(PlayheadTTSService(url=WS), *turn(), *playing)
    cut: list[tuple[str, str]] = []
    service = PlayheadTTSService(url=WS)

    @service.event_handler("on_heard")
    async def on_heard(service: PlayheadTTSService, text: str, rest: str) -> None:
        cut.append((text, rest))

    playing = [SleepFrame(sleep=2.0), BotStartedSpeakingFrame(), SleepFrame(sleep=2.0)]
    await push(service, *turn(), *playing, InterruptionFrame(), SleepFrame(sleep=1.0))
    heard.tell(errors=errors, cut=cut)


asyncio.run(main())
