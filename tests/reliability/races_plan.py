"""Which races there are for one session, and how each is run: the same for the same seed."""

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

WORDS: Final = ("two", "of", "us", "want", "this", "one", "will", "hear", "it", "to", "the", "last")
AT_ONCE: Final = 0.004
"""Seconds between the first and the last who want the session, at most."""


class Kind(StrEnum):
    """What the sockets race against that want the session."""

    TWINS = "each other, at the same instant with the same token"
    NEWEST = "each other, one after the other"
    CLOSE = "close"
    END = "the utterance's end"
    GRACE = "the end of the grace time"
    REVOKED = "revocation of the key"
    DRAIN = "a drain"


class Old(StrEnum):
    """What the socket does that had the session before."""

    ALIVE = "alive"
    CUT = "cut"
    SILENT = "reads no more"


CHAINED: Final = (Kind.NEWEST, Kind.REVOKED)
"""Each comes when the one before has the session, and shows that one's token."""


@dataclass(frozen=True)
class Times:
    """Of the server that is raced at, seconds: its grace time, and how long a revoked key may still
    be good. And how many words a text has, some 0.3 s each."""

    grace: float = 30.0
    revoked: float = 2.0
    words: int = 9


@dataclass(frozen=True)
class Plan:
    """One race."""

    kind: Kind
    number: int
    pieces: tuple[str, ...]  # of the text
    early: int  # so many are said before the race, the others in it
    offsets: tuple[float, ...]  # when each socket asks, seconds from the start or the one before
    shaken: bool  # hands are shaken before the race, so that only a hello is left
    old: Old
    wait: float  # seconds into the speech
    late: float  # seconds from the start until what the sockets race against is set off

    @property
    def text(self) -> str:
        """What is spoken."""
        return "".join(self.pieces)


def plan(seed: int, kind: Kind, number: int, times: Times) -> Plan:
    """The race of that number."""
    rng = random.Random(f"{seed} {kind} {number}")
    pieces = tuple(f"{rng.choice(WORDS)} " for _ in range(times.words))
    alive = kind in (Kind.CLOSE, Kind.DRAIN)
    old = Old.CUT if kind is Kind.GRACE else Old.ALIVE if alive else rng.choice(list(Old))
    early, shaken = rng.randint(2, times.words - 1), rng.random() < 0.7
    wait, offsets = rng.uniform(0.0, 0.3), _offsets(rng, kind, times)
    late = rng.choice((0.0, rng.uniform(0.0, 3 * AT_ONCE)))
    return Plan(kind, number, pieces, early, offsets, shaken, old, wait, late)


def _offsets(rng: random.Random, kind: Kind, times: Times) -> tuple[float, ...]:
    if kind is Kind.REVOKED:
        return tuple(rng.uniform(0.0, times.revoked / 3) for _ in range(6))
    if kind is Kind.GRACE:
        many = rng.randint(1, 3)
        return tuple(times.grace + rng.uniform(-6, 2) * AT_ONCE for _ in range(many))
    many = {Kind.TWINS: rng.randint(2, 4), Kind.NEWEST: 3}.get(kind, rng.randint(1, 2))
    return tuple(rng.choice((0.0, rng.uniform(0.0, AT_ONCE))) for _ in range(many))
