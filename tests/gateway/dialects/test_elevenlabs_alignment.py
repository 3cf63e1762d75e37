"""Times of characters from times of words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playhead.gateway.dialects.elevenlabs_alignment import Alignment
from playhead.gateway.messages import SpokenWord

TEXT = "Well, hi there!"
WORDS = (("Well,", 0, 0), ("hi", 100, 6), ("there!", 350, 9))


def words(*given: tuple[str, int, int]) -> list[SpokenWord]:
    return [
        SpokenWord(text=text, position=at, char_start=start, char_end=start + len(text))
        for text, at, start in given
    ]


def aligned(absolute: bool) -> Alignment:
    alignment = Alignment(1_000, absolute=absolute)
    alignment.add_text(TEXT)
    return alignment


def test_times_are_relative_to_the_end_of_what_was_told() -> None:
    alignment = aligned(absolute=False)
    first = alignment.align(words(*WORDS[:2]), 200)
    assert first is not None
    assert first["chars"] == list("Well, hi")
    assert first["charStartTimesMs"] == [0, 17, 33, 50, 67, 83, 100, 150]
    assert first["charStartTimesMs"][-1] + first["charDurationsMs"][-1] == 200
    assert alignment.align([], 300) is None
    second = alignment.align(words(WORDS[2]), 400)
    assert second is not None
    assert second["chars"] == list(" there!")
    assert second["charStartTimesMs"][:2] == [0, 150]
    assert second["charStartTimesMs"][-1] + second["charDurationsMs"][-1] == 200


def test_or_to_the_start_of_the_context() -> None:
    alignment = aligned(absolute=True)
    alignment.align(words(*WORDS[:2]), 200)
    second = alignment.align(words(WORDS[2]), 400)
    assert second is not None
    assert second["charStartTimesMs"][:2] == [200, 350]


def test_the_last_word_is_completed_by_a_space() -> None:
    alignment = aligned(absolute=True)
    alignment.align(words(*WORDS), 400)
    last = alignment.align([], 450, final=True)
    assert last == {"chars": [" "], "charStartTimesMs": [400], "charDurationsMs": [0]}


def test_a_space_that_is_there_is_enough() -> None:
    alignment = Alignment(1_000, absolute=True)
    alignment.add_text("Hi ")
    alignment.align(words(("Hi", 0, 0)), 100)
    last = alignment.align([], 150, final=True)
    assert last == {"chars": [" "], "charStartTimesMs": [100], "charDurationsMs": [50]}


@pytest.mark.parametrize("text", ["", "Hi "])
def test_nothing_spoken_nothing_told(text: str) -> None:
    alignment = Alignment(1_000, absolute=True)
    assert alignment.align([], 0, final=True) is None
    alignment.add_text(text)
    told = alignment.align([], 10, final=True)
    assert (told is None) == (not text)


@given(
    pieces=st.lists(st.tuples(st.text("ab ,.", min_size=1, max_size=6), st.integers(1, 900))),
    absolute=st.booleans(),
)
def test_every_character_is_told_once_in_order_and_time_never_goes_back(
    pieces: list[tuple[str, int]], absolute: bool
) -> None:
    alignment = Alignment(24_000, absolute=absolute)
    text, at, end = "", 0, 0
    told: list[str] = []
    clock = 0
    for piece, samples in pieces:
        alignment.add_text(piece)
        placed = (
            words((piece.strip(), end, at + piece.index(piece.strip()))) if piece.strip() else []
        )
        text, at, end = text + piece, at + len(piece), end + samples
        found = alignment.align(placed, end)
        if found is not None:
            told += found["chars"]
            starts = [start if absolute else clock + start for start in found["charStartTimesMs"]]
            assert starts == sorted(starts)
            assert starts[0] >= clock
            assert min(found["charDurationsMs"]) >= 0
            clock = starts[-1] + found["charDurationsMs"][-1]
    found = alignment.align([], end, final=True)
    told += found["chars"] if found is not None else []
    assert "".join(told) in (text, text + " ")
