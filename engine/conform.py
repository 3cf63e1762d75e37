"""What a model answers, held to what it was asked: a runner that breaks its contract costs whom it
was asked for, never the books of the scheduler nor another listener. Pure.
"""

import operator
from collections.abc import Sequence
from typing import Final

import numpy as np
from playhead.engine.sound import NotSound
from playhead.engine.types import ChunkWork, Finish, Pcm, StepResult, TextWarning, Word

ENDS = (Finish.COMPLETE, Finish.LENGTH_BUDGET)
"""How speech may end by itself."""
LATEST: Final = 2**53
"""Sample before which a word must start: what JSON can tell."""

_NONE: Final = ()
_WRONG: Final = (TypeError, AttributeError, ValueError)
"""What comes of taking something for what it is not."""


class _Untrue(Exception):
    """What it tells cannot be true."""


def stepped(asked: Sequence[int], results: Sequence[StepResult], most: int) -> list[StepResult]:
    """``results`` as they are, one for each utterance ``asked`` for, in that order, those that
    cannot be true replaced by an error of that utterance alone. ``most``: frames that a step may
    give. Raises ``RuntimeError`` where they are not the answers to what was asked: nobody in the
    batch can be given his."""
    if len(results) != len(asked):
        raise mixed()
    return [answer(number, result, most) for number, result in zip(asked, results, strict=True)]


def answer(asked: int, result: StepResult, most: int) -> StepResult:
    """One of them, as :func:`stepped`."""
    if result.utterance != asked:
        raise mixed()
    frames = result.frames
    if type(frames) is int and 0 <= frames <= most and _plain(result):
        return result
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


def _plain(result: StepResult) -> bool:
    """Whether it tells of frames and of nothing else."""
    return (
        result.words is _NONE
        and result.warnings is _NONE
        and result.error is None
        and result.ended is False
        and result.hungry is False
        and result.boundary is False
        and result.waiting is False
    )


def _kept(result: StepResult, most: int) -> StepResult:
    """What it tells in this module's own words, so that nothing of another kind goes on."""
    try:
        return _failed(result, result.error) if result.error is not None else _told(result, most)
    except _Untrue as why:
        return _failed(result, why)
    except _WRONG as wrong:
        return _failed(result, f"the model's answer is none: {wrong}")


def _failed(result: StepResult, why: object) -> StepResult:
    return StepResult(
        result.utterance, 0, boundary=False, hungry=False, ended=False, error=str(why)
    )


def _told(result: StepResult, most: int) -> StepResult:
    try:
        frames = operator.index(result.frames)
    except TypeError:
        frames = -1
    if not 0 <= frames <= most:
        raise _Untrue(
            f"the model told of {result.frames!r} frames in a step that gives 0 to {most}"
        )
    ended = bool(result.ended)
    if ended and result.finish not in ENDS:
        raise _Untrue(f"the model ended it as {result.finish!s}, which is not for it to say")
    return StepResult(
        result.utterance,
        frames,
        boundary=bool(result.boundary),
        hungry=bool(result.hungry),
        ended=ended,
        words=tuple(map(_word, result.words)),
        warnings=tuple(_warning(each, result.utterance) for each in result.warnings),
        finish=Finish(result.finish) if ended else Finish.COMPLETE,
        waiting=bool(result.waiting),
    )


def _word(word: Word) -> Word:
    try:
        start, first, end = map(operator.index, (word.start, word.char_start, word.char_end))
    except _WRONG:
        start = first = end = -1
    if not (0 <= start < LATEST and 0 <= first <= end and isinstance(word.text, str)):
        raise _Untrue("the model told of a word that is nowhere")
    return Word(word.text, start, first, end)


def _warning(warning: TextWarning, utterance: int) -> TextWarning:
    if warning.utterance != utterance:
        raise _Untrue("the model warned of another utterance")
    code, message, text = warning.code, warning.message, warning.text
    if not all(isinstance(part, str) for part in (code, message, text)):
        raise _Untrue("the model warned of what is no text")
    return TextWarning(utterance, code, message, text)
