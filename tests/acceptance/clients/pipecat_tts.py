"""pipecat: a service of its own speaks a turn, then a second turn is interrupted."""

import asyncio
import sys
from typing import Any

import aiohttp
from common import HTTP, TEXT, WS, Heard
from pipecat.frames.frames import (
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    TTSSpeakFrame,
    TTSTextFrame,
)
from pipecat.observers.base_observer import BaseObserver, FramePushed
from pipecat.tests.utils import SleepFrame, run_test

SERVICE = sys.argv[1]


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


def service(session: aiohttp.ClientSession) -> Any:
    if SERVICE == "cartesia-http":
        from pipecat.services.cartesia.tts import CartesiaHttpTTSService

        return CartesiaHttpTTSService(
            api_key="none",
            base_url=HTTP,
            settings=CartesiaHttpTTSService.Settings(voice="a0e99841-438c-4a64-b679-ae501e7d6091"),
            sample_rate=24_000,
        )
    if SERVICE == "elevenlabs-http":
        from pipecat.services.elevenlabs.tts import ElevenLabsHttpTTSService

        return ElevenLabsHttpTTSService(
            api_key="none",
            base_url=HTTP,
            aiohttp_session=session,
            settings=ElevenLabsHttpTTSService.Settings(voice="21m00Tcm4TlvDq8ikWAM"),
            sample_rate=24_000,
        )
    if SERVICE == "cartesia":
        from pipecat.services.cartesia.tts import CartesiaTTSService

        return CartesiaTTSService(
            api_key="none",
            url=f"{WS}/tts/websocket",
            settings=CartesiaTTSService.Settings(voice="a0e99841-438c-4a64-b679-ae501e7d6091"),
            sample_rate=24_000,
        )
    if SERVICE == "elevenlabs":
        from pipecat.services.elevenlabs.tts import ElevenLabsTTSService

        return ElevenLabsTTSService(
            api_key="none",
            url=WS,
            settings=ElevenLabsTTSService.Settings(voice="21m00Tcm4TlvDq8ikWAM"),
            sample_rate=24_000,
        )
    if SERVICE == "deepgram":
        from pipecat.services.deepgram.tts import DeepgramTTSService

        return DeepgramTTSService(api_key="none", base_url=WS, sample_rate=24_000)
    if SERVICE == "deepgram-flux":
        from pipecat.services.deepgram.flux.tts import DeepgramFluxTTSService

        return DeepgramFluxTTSService(api_key="none", url=f"{WS}/v2/speak", sample_rate=24_000)
    from pipecat.services.openai.tts import OpenAITTSService

    return OpenAITTSService(
        api_key="none", base_url=f"{HTTP}/v1", settings=OpenAITTSService.Settings(voice="alloy")
    )


async def main() -> None:
    async with aiohttp.ClientSession() as session:
        await turns(session)


async def turns(session: aiohttp.ClientSession) -> None:
    heard = Heard(24_000)
    turn = [LLMFullResponseStartFrame()]
    turn += [LLMTextFrame(word + " ") for word in TEXT.split(" ")]
    turn += [LLMFullResponseEndFrame(), SleepFrame(sleep=9.0)]
    down, up = await run_test(
        service(session), frames_to_send=turn, start_timeout=10.0, observers=[Ears(heard)]
    )
    for frame in down:
        if isinstance(frame, TTSTextFrame):
            heard.words.append((frame.text, (frame.pts or 0) / 1e9))
    doomed = [TTSSpeakFrame(TEXT * 8), SleepFrame(sleep=1.5), InterruptionFrame()]
    down2, _ = await run_test(
        service(session), frames_to_send=[*doomed, SleepFrame(sleep=1.0)], start_timeout=10.0
    )
    audio = [frame.audio for frame in down2 if isinstance(frame, TTSAudioRawFrame)]
    errors = [str(frame) for frame in up if "Error" in type(frame).__name__]
    heard.tell(errors=errors, interrupted_after=len(b"".join(audio)) / 48_000)


asyncio.run(main())
