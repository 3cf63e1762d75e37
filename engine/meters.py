"""What the lanes measure about themselves: sojourn, service time, busy time.

The margin that separates urgent from background work is made of these, never of a constant.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from playhead.engine.pauses import Pauses
from playhead.engine.types import Lane

WINDOW = 128
"""Samples kept per quantile: a few seconds of a busy lane, so that it follows the load."""
HORIZON = 10.0
LEAST = 8
"""Seconds after which a sample is forgotten, but for the newest ``LEAST``: what a crowd measured is
not what a lane needs once it has gone."""

BATCH_BOUNDS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Upper bounds (inclusive) by which batch sizes are told apart."""


class RollingQuantile:
    """Quantiles over the last ``window`` values, and fewer after a quiet time (``HORIZON``);
    ``initial`` until one has been added."""

    def __init__(self, initial: float, window: int = WINDOW) -> None:
        self._initial = initial
        self._window = window
        self._recent: deque[tuple[float, float]] = deque()  # when, what
        self._sorted: list[float] = []

    def add(self, value: float, now: float) -> None:
        """Add a value, forgetting the oldest when the window is full, and those of another time."""
        while len(self._recent) == self._window or self._is_old(now):
            _, oldest = self._recent.popleft()
            del self._sorted[bisect_left(self._sorted, oldest)]
        self._recent.append((now, value))
        insort(self._sorted, value)

    def _is_old(self, now: float) -> bool:
        return len(self._recent) >= LEAST and self._recent[0][0] < now - HORIZON

    def quantile(self, q: float) -> float:
        """The ``q`` quantile (0..1), nearest rank."""
        if not self._sorted:
            return self._initial
        return self._sorted[min(len(self._sorted) - 1, int(q * len(self._sorted)))]


@dataclass(slots=True)
class LaneMeter:
    """One lane. Seconds throughout."""

    sojourn: RollingQuantile  # from wanted to delivered
    service: RollingQuantile  # of one dispatch
    busy_seconds: float = 0.0
    dispatches: int = 0
    items: int = 0
    batches: list[int] = field(default_factory=lambda: [0] * (len(BATCH_BOUNDS) + 1))

    def done(self, service: float, sojourns: Iterable[float], now: float) -> None:
        """A dispatch took ``service``; its items waited and ran ``sojourns``."""
        self.service.add(service, now)
        self.busy_seconds += service
        self.dispatches += 1
        before = self.items
        for sojourn in sojourns:
            self.sojourn.add(sojourn, now)
            self.items += 1
        self.batches[bisect_left(BATCH_BOUNDS, self.items - before)] += 1


@dataclass(slots=True)
class Meters:
    """All lanes, with first guesses that last until each lane has been measured."""

    lanes: dict[Lane, LaneMeter] = field(default_factory=dict)
    pauses: Pauses = field(default_factory=Pauses)

    @classmethod
    def starting_from(cls, guess: float) -> "Meters":
        """Meters whose quantiles start at ``guess`` seconds."""
        return cls(
            {lane: LaneMeter(RollingQuantile(guess), RollingQuantile(guess)) for lane in Lane}
        )

    def __getitem__(self, lane: Lane) -> LaneMeter:
        return self.lanes[lane]
