"""What the clients in pipecat share: a turn token by token, and ears."""

from collections.abc import Sequence
from typing import Any

from common import TEXT, Heard
from pipecat.frames.frames import (
    Frame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    TTSTextFrame,
)
from pipecat.observers.base_observer import BaseObserver, FramePushed
from pipecat.tests.utils import run_test

SAMPLE_RATE = 24_000


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


def turn() -> list[Frame]:
    """The text as a language model would send it."""
    words = [LLMTextFrame(word + " ") for word in TEXT.split(" ")]
    return [LLMFullResponseStartFrame(), *words, LLMFullResponseEndFrame()]


async def push(service: Any, *frames: Frame, observers: Sequence[BaseObserver] = ()) -> Any:
    """Frames through a pipeline of the service alone: what came out of it, down and up."""
    return await run_test(
        service, frames_to_send=frames, start_timeout=10.0, observers=list(observers)
    )


async def hear(service: Any, *frames: Frame) -> tuple[Heard, list[str]]:
    """The sound and the timed words of frames, and errors."""
    heard = Heard(SAMPLE_RATE)
    down, up = await push(service, *frames, observers=[Ears(heard)])
    for frame in down:
        if isinstance(frame, TTSTextFrame):
            heard.words.append((frame.text, (frame.pts or 0) / 1e9))
    return heard, [str(frame) for frame in up if "Error" in type(frame).__name__]
