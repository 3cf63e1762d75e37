"""What the lanes measure about themselves: sojourn, service time, busy time.

The margin that separates urgent from background work is made of these, never of a constant.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from playhead.engine.types import Lane

MEMORY = 120.0
"""Seconds of audio over which a lane's cost is averaged; older work fades."""

KNOWN = 10.0
"""Seconds of audio to be made before the cost counts: first chunks are small and dear, and a burst
of them says little of what steady speech takes."""

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
    recent_busy: float = 0.0
    recent_audio: float = 0.0  # made in ``recent_busy``

    def done(self, service: float, sojourns: Iterable[float], audio: float) -> None:
        """A dispatch took ``service`` for ``audio`` seconds of speech; its items waited and ran
        ``sojourns``."""
        self.service.add(service)
        self.busy_seconds += service
        self.dispatches += 1
        self.recent_busy += service
        self.recent_audio += audio
        if self.recent_audio > MEMORY:
            self.recent_busy, self.recent_audio = self.recent_busy / 2, self.recent_audio / 2
        before = self.items
        for sojourn in sojourns:
            self.sojourn.add(sojourn)
            self.items += 1
        self.batches[bisect_left(BATCH_BOUNDS, self.items - before)] += 1


@dataclass(slots=True)
class Meters:
    """All lanes, with first guesses that last until each lane has been measured."""

    lanes: dict[Lane, LaneMeter] = field(default_factory=dict)

    @classmethod
    def starting_from(cls, guess: float) -> "Meters":
        """Meters whose quantiles start at ``guess`` seconds."""
        return cls(
            {lane: LaneMeter(RollingQuantile(guess), RollingQuantile(guess)) for lane in Lane}
        )

    def __getitem__(self, lane: Lane) -> LaneMeter:
        return self.lanes[lane]

    def cost_per_second(self) -> float:
        """Lane seconds that a second of speech takes: backbone, then codec; 0 if unknown."""
        backbone, codec = self[Lane.LM], (self[Lane.BACKGROUND], self[Lane.URGENT])
        audio = sum(meter.recent_audio for meter in codec)
        if min(audio, backbone.recent_audio) < KNOWN:
            return 0.0
        decoding = sum(meter.recent_busy for meter in codec) / audio
        return backbone.recent_busy / backbone.recent_audio + decoding
