"""Text as a language model writes it."""

import random
from itertools import pairwise

import pytest
from playhead.loadgen.texts import SETS
from playhead.loadgen.typist import (
    UNEVEN,
    Piece,
    SpeaksAfter,
    possible,
    tokens,
    typed,
    whole,
)

TEXT = "Good morning to you all, and thank you for waiting so patiently."


def test_words_are_tokens_and_long_ones_are_two() -> None:
    assert tokens("I was waiting, she said. ") == ["I", " was", " wai", "ting,", " she", " said. "]


@pytest.mark.parametrize("texts", SETS.values(), ids=SETS.keys())
def test_the_tokens_are_the_text(texts: tuple[str, ...]) -> None:
    assert ["".join(tokens(text)) for text in texts] == list(texts)
    assert all(len(tokens(text)) >= len(text.split()) for text in texts)


def test_pieces_come_at_a_pace_the_first_at_once() -> None:
    made = typed(TEXT, 50.0, random.Random(1))
    assert made == typed(TEXT, 50.0, random.Random(1))
    assert "".join(piece.text for piece in made) == TEXT
    assert made[0].at == 0.0
    gaps = [b.at - a.at for a, b in pairwise(made)]
    assert all(UNEVEN[0] / 50 <= gap <= UNEVEN[1] / 50 for gap in gaps)


def test_without_a_pace_the_text_comes_at_once() -> None:
    assert typed(TEXT, 0.0, random.Random(1)) == whole(TEXT) == (Piece(0.0, TEXT),)


@pytest.mark.parametrize(
    ("rule", "at"),
    [
        (SpeaksAfter.PIECE, 0.0),
        (SpeaksAfter.START, 1.0),
        (SpeaksAfter.CLAUSE, 2.0),
        (SpeaksAfter.TEXT, 3.0),
    ],
)
def test_a_rule_says_which_piece_makes_sound_possible(rule: SpeaksAfter, at: float) -> None:
    pieces = [
        Piece(0.0, "Good morning"),
        Piece(1.0, " to you all,"),
        Piece(2.0, " and thank you for waiting so patiently"),
        Piece(3.0, " indeed."),
    ]
    assert possible(pieces, rule) == at


def test_a_text_without_a_clause_is_possible_at_its_end() -> None:
    short = [Piece(0.0, "Yes"), Piece(1.0, " please")]
    assert possible(short, SpeaksAfter.CLAUSE) == possible(short, SpeaksAfter.START) == 1.0
