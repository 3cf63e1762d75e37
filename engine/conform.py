"""What a model answers, held to what it was asked: a runner that breaks its contract costs whom it
was asked for, never the books of the scheduler nor another listener. Pure.

Where nothing but frames is told, which is most of the time, a whole batch is looked at at once.
"""

import operator
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from playhead.engine.sound import NotSound
from playhead.engine.types import ChunkWork, Finish, Pcm, StepResult

ENDS = (Finish.COMPLETE, Finish.LENGTH_BUDGET)
"""How speech may end by itself."""

_FRAMES = operator.attrgetter("frames")


def stepped(asked: Sequence[int], results: Sequence[StepResult], most: int) -> list[StepResult]:
    """``results`` as they are, one for each utterance ``asked`` for, in that order, those that
    cannot be true replaced by an error of that utterance alone. ``most``: frames that a step may
    give. Raises ``RuntimeError`` where they are not the answers to what was asked: nobody in the
    batch can be given his."""
    if [result.utterance for result in results] != list(asked):
        raise mixed()
    frames = list(map(_FRAMES, results))
    counted = set(map(type, frames)) <= {int} and min(frames, default=0) >= 0
    if counted and max(frames, default=0) <= most:
        return [_kept(r, most) if r.words or r.warnings or r.ended else r for r in results]
    return [_kept(result, most) for result in results]


def answer(asked: int, result: StepResult, most: int) -> StepResult:
    """One of them, as :func:`stepped`."""
    if result.utterance != asked:
        raise mixed()
    return _kept(result, most)


def decoded(
    asked: Sequence[ChunkWork], results: Sequence[Pcm | BaseException], frame_samples: int
) -> list[Pcm | BaseException]:
    """``results`` as they are, one for each chunk ``asked`` for, a :class:`NotSound` in the place
    of each that is not float32 [frames * frame_samples]. Raises ``RuntimeError`` where they are too
    many or too few."""
    if len(results) != len(asked):
        raise mixed()
    return [
        _shaped(pcm, chunk.frames * frame_samples)
        for chunk, pcm in zip(asked, results, strict=True)
    ]


def mixed() -> RuntimeError:
    """Answers that cannot be told apart."""
    return RuntimeError("the model's answers are not those of the batch")


def _shaped(pcm: Pcm | BaseException, samples: int) -> Pcm | BaseException:
    if isinstance(pcm, BaseException):
        return pcm
    if isinstance(pcm, np.ndarray) and pcm.dtype == np.float32 and pcm.shape == (samples,):
        return pcm
    found = f"{pcm.dtype} {list(pcm.shape)}" if isinstance(pcm, np.ndarray) else type(pcm).__name__
    return NotSound(f"the model made {found} where float32 [{samples}] was asked for")


def _kept(result: StepResult, most: int) -> StepResult:
    fault = result.error if result.error is not None else _fault(result, most)
    if fault is not None:
        return StepResult(
            result.utterance, 0, boundary=False, hungry=False, ended=False, error=fault
        )
    return result if type(result.frames) is int else replace(result, frames=int(result.frames))


def _fault(result: StepResult, most: int) -> str | None:
    """What is wrong with ``result``, if anything."""
    try:
        frames = operator.index(result.frames)
    except TypeError:
        frames = -1
    if not 0 <= frames <= most:
        return f"the model told of {result.frames!r} frames in a step that gives 0 to {most}"
    if any(warning.utterance != result.utterance for warning in result.warnings):
        return "the model warned of another utterance"
    if any(not 0 <= word.char_start <= word.char_end or word.start < 0 for word in result.words):
        return "the model told of a word that is nowhere"
    if result.ended and result.finish not in ENDS:
        return f"the model ended it as {result.finish!s}, which is not for it to say"
    return None
