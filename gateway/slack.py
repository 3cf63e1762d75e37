"""How much of this process is free: the number that balancers and autoscalers steer by. Pure.

Slack is what the tightest resource has left: slots, connections, the lanes' measured time, the
urgent lane's punctuality, the event loop's. 1 is idle, 0 is full.
"""

from collections.abc import Mapping
from typing import Final

from playhead.engine.stats import EngineStats
from playhead.engine.types import Lane

LATE: Final = 0.5
"""Seconds from wish to delivery at which the urgent lane counts as full."""
LAGGING: Final = 0.05
"""Seconds of event loop lag, averaged, at which the loop counts as full."""
_SMOOTHING: Final = 0.1


class Smoothed:
    """A moving average over about ten samples."""

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, sample: float) -> None:
        """Take a sample."""
        self.value += _SMOOTHING * (sample - self.value)


def shares(
    stats: EngineStats, connections: int, max_connections: int, lag: float, now: float
) -> Mapping[str, float]:
    """By resource, how much of it would be taken with one more utterance, which is what a balancer
    wants to know: a slow process is full long before it is busy. Above 1: more than there is.

    ``lag``: averaged event loop lag, seconds; ``now``: monotonic seconds.
    """
    # The lanes' meters remember the last work done: with nobody to speak to they say nothing.
    speaking = stats.live > 0
    playing = max(0, stats.live - stats.held)
    lanes = stats.utilisation * (playing + 1) / playing if playing else stats.utilisation
    return {
        "slots": (stats.occupied(now) + 1) / stats.max_live if speaking else 0.0,
        "connections": connections / max_connections,
        "lanes": lanes / stats.max_utilisation,
        "urgent": stats.lanes[Lane.URGENT].sojourn_p95 / LATE if speaking else 0.0,
        "loop": lag / LAGGING,
    }


def slack(taken: Mapping[str, float]) -> float:
    """What the tightest resource has left, 0 to 1."""
    return max(0.0, 1.0 - max(taken.values()))
