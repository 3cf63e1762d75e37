"""pipecat: a service of its own speaks a turn, then a second turn is interrupted."""

import asyncio
import sys
from typing import Any

import aiohttp
from common import HTTP, TEXT, WS
from pipecat.frames.frames import InterruptionFrame, TTSAudioRawFrame, TTSSpeakFrame
from pipecat.tests.utils import SleepFrame
from pipecat_common import SAMPLE_RATE, hear, push, turn

SERVICE = sys.argv[1]


def service(session: aiohttp.ClientSession) -> Any:
    if SERVICE == "cartesia-http":
        from pipecat.services.cartesia.tts import CartesiaHttpTTSService

        return CartesiaHttpTTSService(
            api_key="none",
            base_url=HTTP,
            settings=CartesiaHttpTTSService.Settings(voice="a0e99841-438c-4a64-b679-ae501e7d6091"),
            sample_rate=SAMPLE_RATE,
        )
    if SERVICE == "elevenlabs-http":
        from pipecat.services.elevenlabs.tts import ElevenLabsHttpTTSService

        return ElevenLabsHttpTTSService(
            api_key="none",
            base_url=HTTP,
            aiohttp_session=session,
            settings=ElevenLabsHttpTTSService.Settings(voice="21m00Tcm4TlvDq8ikWAM"),
            sample_rate=SAMPLE_RATE,
        )
    if SERVICE == "cartesia":
        from pipecat.services.cartesia.tts import CartesiaTTSService

        return CartesiaTTSService(
            api_key="none",
            url=f"{WS}/tts/websocket",
            settings=CartesiaTTSService.Settings(voice="a0e99841-438c-4a64-b679-ae501e7d6091"),
            sample_rate=SAMPLE_RATE,
        )
    if SERVICE == "elevenlabs":
        from pipecat.services.elevenlabs.tts import ElevenLabsTTSService

        return ElevenLabsTTSService(
            api_key="none",
            url=WS,
            settings=ElevenLabsTTSService.Settings(voice="21m00Tcm4TlvDq8ikWAM"),
            sample_rate=SAMPLE_RATE,
        )
    if SERVICE == "deepgram":
        from pipecat.services.deepgram.tts import DeepgramTTSService

        return DeepgramTTSService(api_key="none", base_url=WS, sample_rate=SAMPLE_RATE)
    if SERVICE == "deepgram-flux":
        from pipecat.services.deepgram.flux.tts import DeepgramFluxTTSService

        return DeepgramFluxTTSService(api_key="none", url=f"{WS}/v2/speak", sample_rate=SAMPLE_RATE)
    from pipecat.services.openai.tts import OpenAITTSService

    return OpenAITTSService(
        api_key="none", base_url=f"{HTTP}/v1", settings=OpenAITTSService.Settings(voice="alloy")
    )


async def main() -> None:
    async with aiohttp.ClientSession() as session:
        await turns(session)


async def turns(session: aiohttp.ClientSession) -> None:
    heard, errors = await hear(service(session), *turn(), SleepFrame(sleep=9.0))
    doomed = [TTSSpeakFrame(TEXT * 8), SleepFrame(sleep=1.5), InterruptionFrame()]
    down, _ = await push(service(session), *doomed, SleepFrame(sleep=1.0))
    audio = [frame.audio for frame in down if isinstance(frame, TTSAudioRawFrame)]
    heard.tell(errors=errors, interrupted_after=len(b"".join(audio)) / (2 * SAMPLE_RATE))


asyncio.run(main())
