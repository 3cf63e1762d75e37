"""A speech model without a model, for the real engine: one frame per word, a known wave.

Run as a program it is ``playhead serve`` with this voice: ``fake_runner.py serve --port 0``.
"""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from fake_engine import CHUNK, INFO, wave
from playhead.engine.types import ChunkWork, ModelInfo, Pcm, Request, StepResult, Word


@dataclass
class Text:
    text: str = ""
    spoken: int = 0
    frames: int = 0
    ended: bool = False


class FakeRunner:
    """See ``Runner``."""

    info: ModelInfo = INFO

    def __init__(self) -> None:
        self._texts: dict[int, Text] = {}

    def open(self, request: Request) -> None:
        self._texts[request.utterance] = Text()

    def push_text(self, utterance: int, delta: str, *, flush: bool, end: bool) -> bool:
        state = self._texts[utterance]
        state.text += delta
        state.ended = state.ended or end
        return bool(self._word(state)) or state.ended

    def step(self, utterances: Sequence[int]) -> list[StepResult]:
        return [self._step(utterance) for utterance in utterances]

    def decode(self, chunks: Sequence[ChunkWork]) -> list[Pcm | BaseException]:
        return [wave(chunk.first * CHUNK, chunk.frames * CHUNK) for chunk in chunks]

    def close(self, utterance: int) -> None:
        self._texts.pop(utterance, None)

    def _word(self, state: Text) -> str:
        return state.text[state.spoken :].partition(" ")[0]

    def _step(self, utterance: int) -> StepResult:
        state = self._texts[utterance]
        word = self._word(state)
        words: tuple[Word, ...] = ()
        if word:
            start = state.spoken
            words = (Word(word, state.frames * CHUNK, start, start + len(word)),)
            state.spoken = min(len(state.text), start + len(word) + 1)
            state.frames += 1
        hungry = not self._word(state)
        return StepResult(
            utterance,
            frames=len(words),
            boundary=False,
            hungry=hungry,
            ended=hungry and state.ended,
            words=words,
        )


class Device:
    """Is let go of when the interpreter ends, and that takes ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __del__(self, write: Any = os.write, sleep: Any = time.sleep) -> None:
        write(2, b"lets go of its device\n")
        sleep(self._seconds)


def accelerated(settings: Any, tell: Any) -> Any:
    """Stands in for the accelerator's model."""
    from playhead.engine.lanes import cpu_limits
    from playhead.gateway.models import Served, StartError, accelerated_policy

    tell("pretending", 0.5)
    if settings.clones is not None:
        raise StartError("--clones are not pretended")
    return Served(FakeRunner(), cpu_limits(1), accelerated_policy(settings))


if __name__ == "__main__":
    from playhead.gateway import engine_process, models, serve
    from playhead.gateway.cli import main

    if "engine" in sys.argv and "SLOW_END" in os.environ:
        sys.modules["held"] = ModuleType("held")
        vars(sys.modules["held"])["device"] = Device(float(os.environ["SLOW_END"]))
    models.open_accelerated = accelerated
    engine_process.load_voice = serve.load_voice = FakeRunner
    sys.exit(main())
