"""Our pipecat service: a turn token by token, then one whose playing is started and interrupted."""

import asyncio

from common import TEXT, WS, Heard
from pipecat.frames.frames import (
    BotStartedSpeakingFrame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    TTSTextFrame,
)
from pipecat.observers.base_observer import BaseObserver, FramePushed
from pipecat.tests.utils import SleepFrame, run_test
from playhead.client.integrations.pipecat import PlayheadTTSService


class Ears(BaseObserver):
    """Hears each piece of sound when the service pushes it."""

    def __init__(self, heard: Heard) -> None:
        super().__init__()
        self._heard = heard
        self._seen: set[int] = set()

    async def on_push_frame(self, data: FramePushed) -> None:
        frame = data.frame
        if isinstance(frame, TTSAudioRawFrame) and frame.id not in self._seen:
            self._seen.add(frame.id)
            self._heard.add(frame.audio)


def turn(text: str) -> list:
    words = [LLMTextFrame(word + " ") for word in text.split(" ")]
    return [LLMFullResponseStartFrame(), *words, LLMFullResponseEndFrame()]


async def main() -> None:
    heard = Heard(24_000)
    down, up = await run_test(
        PlayheadTTSService(url=WS),
        frames_to_send=[
            *turn(TEXT),
            SleepFrame(sleep=1.0),
            BotStartedSpeakingFrame(),
            SleepFrame(sleep=9.0),
        ],
        start_timeout=10.0,
        observers=[Ears(heard)],
    )
    for frame in down:
        if isinstance(frame, TTSTextFrame):
            heard.words.append((frame.text, (frame.pts or 0) / 1e9))
    cut: list[tuple[str, str]] = []
    service = PlayheadTTSService(url=WS)

    @service.event_handler("on_heard")
    async def on_heard(service: PlayheadTTSService, text: str, rest: str) -> None:
        cut.append((text, rest))

    await run_test(
        service,
        frames_to_send=[
            *turn(TEXT),
            SleepFrame(sleep=2.0),
            BotStartedSpeakingFrame(),
            SleepFrame(sleep=2.0),
            InterruptionFrame(),
            SleepFrame(sleep=1.0),
        ],
        start_timeout=10.0,
    )
    errors = [str(frame) for frame in up if "Error" in type(frame).__name__]
    heard.tell(errors=errors, cut=cut)


asyncio.run(main())
