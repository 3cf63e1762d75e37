"""Text as a language model writes it: piece by piece, at a pace. Pure, drawn by seed.

Which piece makes the first sound possible depends on the server, so it is a rule that a run
names: time to first audio counts from the moment at which that piece was meant to be sent.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from playhead.engine.text import Segmenter

LONG = 7
"""Letters from which on a word takes two pieces, as most words of that length take two tokens."""
UNEVEN = (0.5, 1.5)
"""Bounds of a gap, in mean gaps."""

START_LENGTH = 20
"""Characters of SpeaksAfter.START."""


class SpeaksAfter(StrEnum):
    """What a server has to have read before it can speak."""

    CLAUSE = "clause"  # a first clause that nothing can undo, by the rules of our own engine
    PIECE = "piece"  # anything
    START = "start"  # START_LENGTH characters, as VoxServe does, or all
    TEXT = "text"  # all


@dataclass(frozen=True, slots=True)
class Piece:
    """``text``, to be sent ``at`` seconds after the utterance was due."""

    at: float
    text: str


def whole(text: str) -> tuple[Piece, ...]:
    """The text at once."""
    return (Piece(0.0, text),)


def typed(text: str, pace: float, rng: random.Random) -> tuple[Piece, ...]:
    """``text`` in the pieces of :func:`tokens`, about ``pace`` a second, the first at once. A pace
    of 0 gives the whole text at once."""
    if not pace:
        return whole(text)
    at = 0.0
    made = []
    for token in tokens(text):
        made.append(Piece(at, token))
        at += rng.uniform(*UNEVEN) / pace
    return tuple(made)


def tokens(text: str) -> list[str]:
    """Words with the space before them, long ones in two; together they are the text."""
    found = []
    for word in re.findall(r"\s*\S+\s*$|\s*\S+", text):
        middle = len(word) // 2 if len(word.strip()) >= LONG else len(word)
        found += [word[:middle], word[middle:]]
    return [token for token in found if token]


def possible(pieces: Sequence[Piece], rule: SpeaksAfter) -> float:
    """Seconds after the utterance was due at which the first sound becomes possible."""
    if rule == SpeaksAfter.PIECE:
        return pieces[0].at
    segmenter, length = Segmenter(), 0
    for piece in pieces:
        length += len(piece.text)
        if rule == SpeaksAfter.START and length >= START_LENGTH:
            return piece.at
        if rule == SpeaksAfter.CLAUSE and segmenter.push(piece.text):
            return piece.at
    return pieces[-1].at
