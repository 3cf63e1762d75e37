"""Heard and unheard text always add up, and the cut is where the listener was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playhead.gateway.heard import Script
from playhead.gateway.messages import SpokenWord


def script(text: str, *placed: tuple[str, int]) -> Script:
    """Words of ``text`` in order, each with its first sample."""
    made = Script()
    made.add_text(text)
    at = 0
    for word, position in placed:
        at = text.index(word, at)
        end = at + len(word)
        made.add_words((SpokenWord(text=word, position=position, char_start=at, char_end=end),))
        at = end
    return made


HELLO = script(
    "Well, hello (dear) world!", ("Well", 0), ("hello", 400), ("dear", 800), ("world", 900)
)


@pytest.mark.parametrize(
    ("heard", "text"),
    [
        (0, ""),
        (1, "Well,"),  # the comma touches a heard word
        (400, "Well,"),  # sample 400 has not been played yet
        (401, "Well, hello"),
        (650, "Well, hello"),
        (801, "Well, hello (dear)"),
        (901, "Well, hello (dear) world!"),
        (10_000, "Well, hello (dear) world!"),
    ],
)
def test_cut(heard: int, text: str) -> None:
    assert HELLO.split(heard) == (text, "Well, hello (dear) world!"[len(text) :])


def test_words_not_placed_yet_are_unheard() -> None:
    assert script("One two three", ("One", 0)).split(10_000) == ("One", " two three")


def test_whole_takes_what_no_word_covers() -> None:
    assert script("One 😀", ("One", 0)).split(100, whole=True) == ("One 😀", "")


def test_no_words() -> None:
    assert script("...").split(100) == ("", "...")


def test_punctuation_belongs_to_the_next_word_when_that_covers_it() -> None:
    made = Script()
    made.add_text("a!b")
    made.add_words((SpokenWord(text="a", position=0, char_start=0, char_end=1),))
    made.add_words((SpokenWord(text="!b", position=10, char_start=1, char_end=3),))
    assert made.split(5) == ("a", "!b")


def test_offsets_beyond_the_text_do_no_harm() -> None:
    made = Script()
    made.add_text("abc")
    made.add_words((SpokenWord(text="abc", position=0, char_start=0, char_end=99),))
    assert made.split(1) == ("abc", "")
    assert made.covered == 3


def test_text_in_pieces() -> None:
    made = Script()
    assert (made.text, made.length, made.covered) == ("", 0, 0)
    made.add_words(())
    made.add_text("ab")
    made.add_text("")
    made.add_text("c")
    assert (made.text, made.length, made.covered) == ("abc", 3, 0)


@given(
    st.text(max_size=40),
    st.lists(st.integers(0, 999), max_size=8),
    st.lists(st.integers(0, 60), min_size=16, max_size=16),
    st.integers(0, 1_000),
    st.integers(0, 1_000),
)
def test_parts_add_up_and_never_shrink(
    text: str, positions: list[int], offsets: list[int], heard: int, more: int
) -> None:
    made = Script()
    made.add_text(text)
    bounds = iter(sorted(offsets))
    for position in sorted(positions):
        start, end = next(bounds), next(bounds)
        made.add_words((SpokenWord(text="w", position=position, char_start=start, char_end=end),))
    before, after = made.split(heard)
    assert before + after == text
    assert made.split(heard + more)[0].startswith(before)
