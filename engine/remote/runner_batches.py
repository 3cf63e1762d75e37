"""Batches as they cross between the engine's process and its model's process: what most streams say
alike in a byte, the rest in words. Pure. Nothing else knows how results of a batch are packed."""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Final

import numpy as np
from playhead.engine import conform
from playhead.engine.answers import Plain
from playhead.engine.remote.runner_wire import Decoded, Fault, Stepped
from playhead.engine.remote.wire import WireError
from playhead.engine.types import ModelCounts, Pcm, RunnerDead, StepResult

_MOST_FRAMES: Final = 15
"""Frames of a stream and step that are told as one byte; more are told in words."""


class StepAnswers:
    """Packs results of steps. A runner that gives a stream the same object again, as long as there
    is nothing but a frame to tell, has it looked at once. ``most``: frames that a step may give.
    One thread at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._plain: dict[int, StepResult] = {}

    def close(self, utterance: int) -> None:
        """It is stepped no more. Any thread."""
        self._plain.pop(utterance, None)

    def pack(
        self, utterances: Sequence[int], results: Sequence[StepResult], counts: ModelCounts
    ) -> Stepped:
        """The answer to a step; what cannot be true in ``results`` is an error of that utterance.
        Raises ``RuntimeError`` where they are not those of the batch: the other side has only
        their order to go by."""
        if len(results) != len(utterances):
            raise conform.mixed()
        kept = list(results)
        known = map(self._plain.get, utterances)
        told: dict[int, StepResult] = {}
        for place in [p for p, (a, b) in enumerate(zip(results, known, strict=True)) if a is not b]:
            result = conform.answer(utterances[place], results[place], self._most)
            kept[place] = result
            if _says_more(result):
                told[place] = result
            else:
                self._plain[result.utterance] = result
        return Stepped(_alike([result.frames for result in kept], told), told, counts)


def _alike(frames: list[int], told: Collection[int]) -> bytes:
    """A byte for each stream; of those of whom more is told any will do: one like the others."""
    for place in told:
        frames[place] = 0
    most = max(frames, default=0)
    for place in told:
        frames[place] = most
    return bytes(frames)


def _says_more(result: StepResult) -> bool:
    return bool(
        result.hungry
        or result.ended
        or result.boundary
        or result.error is not None
        or result.words
        or result.warnings
        or result.waiting
        or result.frames > _MOST_FRAMES
    )


class StepResults:
    """Results of steps as they were on the other side. Those that only tell a number of frames are
    made once per utterance. Any thread, each utterance by one at a time."""

    def __init__(self) -> None:
        self._plain = [Plain(frames) for frames in range(_MOST_FRAMES + 1)]

    def close(self, utterance: int) -> None:
        """It is stepped no more."""
        for plain in self._plain:
            plain.pop(utterance, None)

    def unpack(self, utterances: Sequence[int], answer: Stepped) -> list[StepResult]:
        """Results in the order of the batch. Raises :class:`WireError` where they do not fit."""
        frames = answer.frames
        if len(frames) != len(utterances):
            raise WireError(f"{len(frames)} answers to {len(utterances)} streams")
        if frames.count(frames[:1]) == len(frames):
            results = list(map(self._plain[max(frames, default=0)].__getitem__, utterances))
        else:
            pairs = zip(utterances, frames, strict=True)
            results = [self._plain[count][utterance] for utterance, count in pairs]
        for place, result in answer.told.items():
            results[place] = result
        return results


def decoded(results: Sequence[Pcm | BaseException]) -> tuple[Decoded, list[Pcm]]:
    """The answer to a decode, and the sound that goes with it."""
    sound: list[Pcm] = []
    faults: dict[int, Fault] = {}
    for place, result in enumerate(results):
        if isinstance(result, BaseException):
            faults[place] = fault_of(result)
        else:
            sound.append(np.ascontiguousarray(result, np.float32))
    samples = [0 if isinstance(result, BaseException) else len(result) for result in results]
    return Decoded(samples, faults), sound


def shared_out(answer: Decoded, sound: Pcm, chunks: int) -> list[Pcm | BaseException]:
    """``sound`` (float32 [samples of all chunks]) as views, one per chunk, or its fault. Raises
    :class:`WireError` where it does not fit."""
    if len(answer.samples) != chunks or sum(answer.samples) != len(sound):
        raise WireError(f"{len(sound)} samples for {len(answer.samples)} of {chunks} chunks")
    results: list[Pcm | BaseException] = []
    at = 0
    for samples in answer.samples:
        results.append(sound[at : at + samples])
        at += samples
    for place, fault in answer.faults.items():
        results[place] = raised(fault)
    return results


def fault_of(error: BaseException) -> Fault:
    """How an exception crosses."""
    return Fault(type(error).__name__, str(error))


def raised(fault: Fault) -> Exception:
    """An exception of the same name that says the same. ``RunnerDead`` is itself; no other is told
    apart by who catches it."""
    if fault.kind == RunnerDead.__name__:
        return RunnerDead(fault.text)
    return _kind(fault.kind)(fault.text)


@cache
def _kind(name: str) -> type[RuntimeError]:
    return type(name, (RuntimeError,), {})
