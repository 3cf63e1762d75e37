"""How virtual listeners differ, drawn by seed: players, people, and what they report.

One draw makes one listener; the same seed and number give the same one whatever the server does.
Times are seconds, amounts seconds of audio.
"""

import random
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from playhead.engine.types import ListenerState

T = TypeVar("T")


class Reports(StrEnum):
    """What a client says of its playback."""

    ON = "on"
    OFF = "off"
    LATE = "late"  # each report is sent well after it was true
    EMPTY = "empty"  # lies: claims to be dry, to be served first
    FULL = "full"  # lies: claims to have played nothing


@dataclass(frozen=True, slots=True)
class Hold:
    """Playback stands still from ``start`` to ``end`` after the first audio came."""

    start: float
    end: float
    state: ListenerState  # PAUSED by the person, or SUSPENDED by the platform


@dataclass(frozen=True, slots=True)
class Habits:
    """One listener during one utterance. The default is the strict player: it starts at the first
    sample, holds nothing back, and plays at the nominal rate."""

    threshold: float = 0.0  # audio collected before playing starts
    rebuffer: float = 0.0  # audio collected before playing goes on after a stall
    rate: float = 1.0  # how fast its clock plays
    holds: tuple[Hold, ...] = ()
    barge_in: float | None = None  # after the first audio
    reports: Reports = Reports.ON


STRICT = Habits()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is behind a session: the same in all its utterances, and told to the server."""

    threshold: float = 0.0
    rate: float = 1.0
    reports: Reports = Reports.ON
    network: str = "direct"


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares (0..1) and ranges from which listeners are drawn."""

    name: str = "strict"
    thresholds: tuple[float, ...] = (0.0,)
    rates: tuple[float, float] = (1.0, 1.0)
    delayed: float = 0.0  # held back by the autoplay policy for 1 to 3 s
    pausing: float = 0.0  # for 0.5 to 4 s
    hidden: float = 0.0  # page suspended for 1 to 5 s
    barging: float = 0.0  # cut in 0.3 to 6 s after the first audio
    reports: dict[Reports, float] = field(default_factory=lambda: {Reports.ON: 1.0})
    networks: dict[str, float] = field(default_factory=lambda: {"direct": 1.0})

    def caller(self, seed: int, session: int) -> Caller:
        """Who is behind a session."""
        rng = random.Random(f"caller {seed} {session}")
        # Every draw is made for everybody, so that one share does not shift the others.
        return Caller(
            threshold=rng.choice(self.thresholds),
            rate=rng.uniform(*self.rates),
            reports=_pick(rng, self.reports),
            network=_pick(rng, self.networks),
        )

    def habits(self, seed: int, number: int, caller: Caller) -> Habits:
        """What ``caller`` does during utterance ``number``."""
        rng = random.Random(f"habits {seed} {number}")
        holds = [
            _hold(rng, self.delayed, (0.0, 0.0), (1.0, 3.0), ListenerState.SUSPENDED),
            _hold(rng, self.pausing, (0.5, 4.0), (0.5, 4.0), ListenerState.PAUSED),
            _hold(rng, self.hidden, (0.5, 4.0), (1.0, 5.0), ListenerState.SUSPENDED),
        ]
        barges, barge_in = rng.random() < self.barging, rng.uniform(0.3, 6.0)
        return Habits(
            threshold=caller.threshold,
            rate=caller.rate,
            holds=tuple(hold for hold in holds if hold is not None),
            barge_in=barge_in if barges else None,
            reports=caller.reports,
        )


def _hold(
    rng: random.Random,
    share: float,
    starts: tuple[float, float],
    lengths: tuple[float, float],
    state: ListenerState,
) -> Hold | None:
    happens, start, length = rng.random() < share, rng.uniform(*starts), rng.uniform(*lengths)
    return Hold(start, start + length, state) if happens else None


def _pick(rng: random.Random, shares: dict[T, float]) -> T:
    return rng.choices(list(shares), list(shares.values()))[0]


#: The mixes that a run may name.
MIXES: dict[str, Mix] = {
    mix.name: mix
    for mix in (
        Mix(),
        Mix("barge", barging=0.3),
        Mix("silent", reports={Reports.OFF: 1.0}),
        Mix(
            "people",
            thresholds=(0.0, 0.1, 0.2, 0.4, 0.6),
            rates=(0.95, 1.05),
            delayed=0.10,
            pausing=0.10,
            hidden=0.03,
            barging=0.15,
            reports={Reports.ON: 0.85, Reports.OFF: 0.05, Reports.LATE: 0.05, Reports.EMPTY: 0.05},
        ),
        Mix(
            "shaky",
            thresholds=(0.0, 0.1, 0.2, 0.4, 0.6),
            rates=(0.95, 1.05),
            delayed=0.10,
            pausing=0.10,
            networks={"home": 0.85, "shaky": 0.15},
        ),
        # Half of them on a network that stands still: signals differ where there is most to know.
        Mix(
            "gusty",
            thresholds=(0.0, 0.1, 0.2, 0.4, 0.6),
            rates=(0.95, 1.05),
            delayed=0.10,
            pausing=0.10,
            networks={"home": 0.5, "gusty": 0.5},
        ),
    )
}
