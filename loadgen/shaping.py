"""What a network does to bytes, as times: pure, drawn by seed.

A connection has one :class:`Weather`, shared by both directions, and one :class:`Shaper` each
way. TCP hides loss behind delay, so a stall holds bytes back and never drops them.
"""

import math
import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conditions:
    """Times in seconds, ``bandwidth`` in bytes a second, each way.

    ``jitter`` is the most that is added to ``delay``. ``stall_every`` is the mean time from one
    stall to the next, ``stall`` the range of their lengths. After ``reset_after`` the connection
    is reset; after ``black_hole_after`` nothing arrives any more, and nobody is told. ``loss`` is
    the share of packets that are lost, where there are packets (packets.py).
    """

    delay: float = 0.0
    jitter: float = 0.0
    bandwidth: float = math.inf
    stall_every: float = math.inf
    stall: tuple[float, float] = (0.3, 1.5)
    reset_after: float = math.inf
    black_hole_after: float = math.inf
    loss: float = 0.0


DIRECT = "direct"
"""No shaping, no proxy."""

NETWORKS: dict[str, Conditions] = {
    "home": Conditions(delay=0.015, jitter=0.005, bandwidth=2.5e6),
    "mobile": Conditions(delay=0.04, jitter=0.03, bandwidth=250e3, loss=0.002),
    "shaky": Conditions(delay=0.04, jitter=0.03, bandwidth=250e3, stall_every=6.0, loss=0.005),
    "resetting": Conditions(delay=0.015, reset_after=5.0),
    "black_hole": Conditions(delay=0.015, black_hole_after=5.0),
    "gusty": Conditions(delay=0.03, jitter=0.005, bandwidth=2.5e6, stall_every=5.0),
}

ORDER = (DIRECT, *NETWORKS)
"""Their names by number, as namespaces tell them apart by address."""
IN_ORDER = (Conditions(), *NETWORKS.values())


class Weather:
    """When one connection's network stands still. Times on any clock, from ``start`` on."""

    def __init__(self, conditions: Conditions, rng: random.Random, start: float) -> None:
        self._conditions = conditions
        self._rng = rng
        self._dead = start + conditions.black_hole_after
        self._begins = self._ends = start
        self._next()

    def clear(self, at: float) -> float:
        """The first moment from ``at`` on at which bytes get through; infinity when never.

        Both directions ask, in almost ascending order; what was clear once is not asked again.
        """
        while at >= self._ends:
            self._next()
        there = self._ends if at >= self._begins else at
        return math.inf if there >= self._dead else there

    def _next(self) -> None:
        every = self._conditions.stall_every
        if math.isinf(every):
            self._begins = self._ends = math.inf
            return
        self._begins = self._ends + self._rng.expovariate(1 / every)
        self._ends = self._begins + self._rng.uniform(*self._conditions.stall)


class Shaper:
    """One direction."""

    def __init__(self, conditions: Conditions, weather: Weather, rng: random.Random) -> None:
        self._conditions = conditions
        self._weather = weather
        self._rng = rng
        self._free = -math.inf  # when the line has taken what was given to it
        self._last = -math.inf

    def release(self, size: int, now: float) -> float:
        """When ``size`` bytes given at ``now`` are there: in order; infinity when never."""
        self._free = max(now, self._free) + size / self._conditions.bandwidth
        delay = self._conditions.delay + self._rng.uniform(0, self._conditions.jitter)
        there = max(self._last, self._free + delay)
        self._last = self._weather.clear(there) if math.isfinite(there) else there
        return self._last
