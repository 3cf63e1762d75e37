"""Drives a runner the way the engine does, without lanes."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from playhead.engine.models.hibari.runner import HibariRunner
from playhead.engine.types import ChunkWork, Lane, Pcm, Request, StepResult, TextWarning, Word

_numbers = itertools.count(1)


@dataclass(slots=True)
class Speech:
    """Everything one utterance gave."""

    pcm: Pcm
    words: list[Word] = field(default_factory=list)
    warnings: list[TextWarning] = field(default_factory=list)
    boundaries: list[int] = field(default_factory=list)  # sample positions
    steps: int = 0


def request(**options: object) -> Request:
    return Request(utterance=next(_numbers), client="test", voice="heart", **options)  # type: ignore[arg-type]


def work(utterance: int, first: int, frames: int) -> ChunkWork:
    return ChunkWork(utterance, 0, first, frames, Lane.URGENT, None, 0.0, 0.0)


def pcm_of(result: Pcm | BaseException) -> Pcm:
    if isinstance(result, BaseException):
        raise result
    return result


def steps_of(runner: HibariRunner, utterance: int) -> Iterator[StepResult]:
    """Steps until the end. Fails on a fault and on a step that gives nothing for ever."""
    while True:
        (result,) = runner.step([utterance])
        assert result.error is None, result.error
        yield result
        if result.ended:
            return
        assert result.frames, "neither frames nor the end"


def speak(
    runner: HibariRunner,
    text: str | Sequence[str],
    *,
    chunks: Sequence[int] = (32,),
    **options: object,
) -> Speech:
    """Speaks ``text`` (deltas when a list); chunk sizes are used in turn, never over a boundary."""
    asked = request(**options)
    utterance = asked.utterance
    runner.open(asked)
    for delta in [text] if isinstance(text, str) else text:
        runner.push_text(utterance, delta, flush=False, end=False)
    assert runner.push_text(utterance, "", flush=False, end=True)
    speech = Speech(np.zeros(0, np.float32))
    parts: list[Pcm] = []
    sizes = itertools.cycle(chunks)
    first = waiting = 0
    for result in steps_of(runner, utterance):
        speech.steps += 1
        speech.words += result.words
        speech.warnings += result.warnings
        waiting += result.frames
        while waiting:
            frames = min(waiting, next(sizes))
            (part,) = runner.decode([work(utterance, first, frames)])
            parts.append(pcm_of(part))
            first, waiting = first + frames, waiting - frames
        if result.boundary:
            speech.boundaries.append(first * runner.info.frame_samples)
    runner.close(utterance)
    speech.pcm = np.concatenate([speech.pcm, *parts])
    return speech
