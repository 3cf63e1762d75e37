"""Notices work that does not come back: a kernel that hangs, a lock that is never released.

A thread cannot be ended from outside, so the only cure is the process's end; what is left is to
notice it and to say so. Pure: whoever owns the threads looks at them and asks here.
"""

from collections.abc import Mapping

TICK = 0.1
"""Seconds between two looks."""

MOST_COUNTED = 2 * TICK
"""Longest time that one look adds. A process that was stopped, or starved of the processor, finds
everything late when it goes on; nothing was stuck, and only watched time counts."""


class Stuck(RuntimeError):
    """A piece of work did not come back in time."""


class Watchdog:
    """Counts for how long each worker has been at the same piece. ``patience`` in seconds."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._ages: dict[str, tuple[int, float]] = {}
        self._looked_at: float | None = None

    def look(self, at_work: Mapping[str, int], now: float) -> Stuck | None:
        """Who is ``at_work`` on which piece (a number that each piece has for its own). The fault
        when one of them has been at its piece for longer than the patience."""
        passed = 0.0
        if self._looked_at is not None:
            passed = min(MOST_COUNTED, now - self._looked_at)
        self._looked_at = now
        ages = {}
        for worker, piece in at_work.items():
            before, age = self._ages.get(worker, (piece, -passed))
            ages[worker] = (piece, age + passed if before == piece else 0.0)
        self._ages = ages
        worker, (_, longest) = max(
            ages.items(), key=lambda item: item[1][1], default=("", (0, 0.0))
        )
        if longest <= self._patience:
            return None
        return Stuck(f"{worker} has not come back for {longest:.1f} s")
