"""A model that breaks its contract costs whom it was asked for, and nobody else."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from playhead.engine import conform
from playhead.engine.sound import NotSound
from playhead.engine.types import ChunkWork, Finish, Lane, Pcm, StepResult, TextWarning, Word

MOST = 4


def plain(utterance: int, frames: Any = 1, **more: Any) -> StepResult:
    return replace(StepResult(utterance, frames, False, False, False), **more)


def test_what_is_true_passes_as_it_is() -> None:
    results = [
        plain(1, 0),
        plain(2, MOST),
        plain(3, 2, words=(Word("a", 0, 0, 1), Word("", 80, 4, 4))),
        plain(4, 0, warnings=(TextWarning(4, "unspeakable_text", "skipped", "x"),)),
        plain(5, 0, ended=True, finish=Finish.LENGTH_BUDGET),
        plain(6, 1, boundary=True),
        plain(7, 0, hungry=True),
        plain(8, 0, waiting=True),
    ]
    kept = conform.stepped(range(1, 9), results, MOST)
    assert kept == results
    assert all(one is other for one, other in zip(kept[:2], results, strict=False))
    assert conform.stepped([], [], MOST) == []


def word(start: Any, first: Any, end: Any, text: Any = "a") -> Word:
    return Word(text, start, first, end)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (plain(2, MOST + 1), "told of 5 frames in a step that gives 0 to 4"),
        (plain(2, 10**12), "frames in a step"),
        (plain(2, -1), "told of -1 frames"),
        (plain(2, float("nan")), "told of nan frames"),
        (plain(2, 1.0), "told of 1.0 frames"),
        (plain(2, None), "told of None frames"),
        (plain(2, warnings=(TextWarning(1, "unspeakable_text", "", ""),)), "of another utterance"),
        (plain(2, words=(Word("a", -1, 0, 1),)), "a word that is nowhere"),
        (plain(2, words=(Word("a", 0, -1, 1),)), "a word that is nowhere"),
        (plain(2, words=(Word("a", 0, 2, 1),)), "a word that is nowhere"),
        (plain(2, words=(word(None, 0, 1),)), "a word that is nowhere"),
        (plain(2, words=(word(float("nan"), 0, 1),)), "a word that is nowhere"),
        (plain(2, words=(word(float("inf"), 0, 1),)), "a word that is nowhere"),
        (plain(2, words=(word(80.0, 0, 1),)), "a word that is nowhere"),
        (plain(2, words=(word(10**400, 0, 1),)), "a word that is nowhere"),
        (plain(2, words=(word(0, float("nan"), 1),)), "a word that is nowhere"),
        (plain(2, words=(word(0, 0, None),)), "a word that is nowhere"),
        (plain(2, words=(word(0, 0, 1, text=1),)), "a word that is nowhere"),
        (plain(2, words=("a",)), "a word that is nowhere"),
        (plain(2, words=3), "is none: 'int' object is not iterable"),
        (plain(2, words=None), "is none: 'NoneType' object is not iterable"),
        (plain(2, words=np.zeros(2)), "a word that is nowhere"),
        (plain(2, warnings=("x",)), "is none: 'str' object has no attribute 'utterance'"),
        (plain(2, warnings=3), "is none: 'int' object is not iterable"),
        (plain(2, warnings=None), "is none: 'NoneType' object is not iterable"),
        (plain(2, warnings=(TextWarning(2, None, "", ""),)), "warned of what is no text"),  # type: ignore[arg-type]
        (plain(2, hungry=np.zeros(2)), "is none: The truth value"),
        (plain(2, error=OSError("broke")), "broke"),
        (plain(2, ended=True, finish=Finish.CANCELLED), "ended it as cancelled"),
        (plain(2, ended=True, finish=Finish.FAILED), "ended it as failed"),
    ],
)
def test_what_cannot_be_true_is_an_error_of_its_utterance_alone(
    wrong: StepResult, says: str
) -> None:
    first, told, last = conform.stepped([1, 2, 3], [plain(1), wrong, plain(3)], MOST)
    assert (first, last) == (plain(1), plain(3))
    kept = conform.answer(2, wrong, MOST)
    assert kept == told
    assert (kept.utterance, kept.frames, kept.ended) == (2, 0, False)
    assert says in str(kept.error)


def test_an_error_s_frames_are_none() -> None:
    (kept,) = conform.stepped([1], [plain(1, 10**9, error="broke")], MOST)
    assert (kept.frames, kept.error) == (0, "broke")


def test_numbers_of_other_kinds_are_numbers() -> None:
    (kept,) = conform.stepped([1], [plain(1, np.int64(3))], MOST)
    assert (kept.frames, type(kept.frames)) == (3, int)
    told = plain(1, words=(word(np.int64(80), np.int64(0), np.int64(1)),), ended=np.True_)
    (kept,) = conform.stepped([1], [told], MOST)
    (known,) = kept.words
    assert [type(n) for n in (known.start, known.char_start, known.char_end)] == [int] * 3
    assert (known, kept.ended) == (Word("a", 80, 0, 1), True)


@pytest.mark.parametrize("numbers", [[], [1], [1, 1], [2, 1], [1, 3], [1, 2, 3]])
def test_answers_that_cannot_be_told_apart_are_nobody_s(numbers: list[int]) -> None:
    with pytest.raises(RuntimeError, match="not those of the batch"):
        conform.stepped([1, 2], [plain(number) for number in numbers], MOST)


def test_one_answer_of_another() -> None:
    with pytest.raises(RuntimeError, match="not those of the batch"):
        conform.answer(1, plain(2), MOST)
    known = plain(1)
    assert conform.answer(1, known, MOST) is known


def chunk(utterance: int, frames: int) -> ChunkWork:
    return ChunkWork(utterance, 0, 0, frames, Lane.URGENT, None, 0.0, 0.0)


def test_sound_of_the_right_size_and_faults_pass_as_they_are() -> None:
    results: list[Pcm | BaseException] = [np.zeros(160, np.float32), ValueError("x")]
    kept = conform.decoded([chunk(1, 2), chunk(2, 1)], results, 80)
    assert all(one is other for one, other in zip(kept, results, strict=True))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (np.zeros(159, np.float32), "made float32 [159] where float32 [160] was asked for"),
        (np.zeros(0, np.float32), "made float32 [0]"),
        (np.zeros((2, 80), np.float32), "made float32 [2, 80]"),
        (np.zeros(160, np.float64), "made float64 [160]"),
        (np.zeros(160, np.int16), "made int16 [160]"),
        ([0.0] * 160, "made list"),
        (None, "made NoneType"),
    ],
)
def test_sound_of_a_wrong_shape_fails_its_utterance_alone(wrong: Any, says: str) -> None:
    right = np.zeros(80, np.float32)
    first, kept, last = conform.decoded(
        [chunk(1, 1), chunk(2, 2), chunk(3, 1)], [right, wrong, right], 80
    )
    assert first is right
    assert last is right
    assert isinstance(kept, NotSound)
    assert says in str(kept)


def test_too_few_chunks_are_nobody_s() -> None:
    with pytest.raises(RuntimeError, match="not those of the batch"):
        conform.decoded([chunk(1, 1)], [], 80)
