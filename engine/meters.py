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


BATCH_BOUNDS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Upper bounds (inclusive) by which batch sizes are told apart."""


class RollingQuantile:
    """Quantiles over the last ``window`` values; ``initial`` until one has been added."""

    def __init__(self, initial: float, window: int = WINDOW) -> None:
        self._initial = initial
        self._window = window
        self._recent: deque[float] = deque()
        self._sorted: list[float] = []

    def add(self, value: float) -> None:
        """Add a value, forgetting the oldest when the window is full."""
        if len(self._recent) == self._window:
            del self._sorted[bisect_left(self._sorted, self._recent.popleft())]
        self._recent.append(value)
        insort(self._sorted, value)

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

    def done(self, service: float, sojourns: Iterable[float]) -> None:
        """A dispatch took ``service``; its items waited and ran ``sojourns``."""
        self.service.add(service)
        self.busy_seconds += service
        self.dispatches += 1
        before = self.items
        for sojourn in sojourns:
            self.sojourn.add(sojourn)
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
