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


class Watched:
    """A clock that runs while somebody looks at it: one look adds ``most`` seconds at the most."""

    def __init__(self, most: float = MOST_COUNTED) -> None:
        self._most = most
        self._at: float | None = None
        self._seconds = 0.0

    def look(self, now: float) -> float:
        """What it shows at ``now``, seconds."""
        if self._at is not None:
            self._seconds += min(self._most, now - self._at)
        self._at = now
        return self._seconds


class Watchdog:
    """Counts for how long each worker has been at the same piece. ``patience`` in seconds."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._began: dict[str, tuple[int, float]] = {}
        self._watched = Watched()

    def look(self, at_work: Mapping[str, int], now: float) -> Stuck | None:
        """Who is ``at_work`` on which piece (a number that each piece has for its own). The fault
        when one of them has been at its piece for longer than the patience."""
        seconds = self._watched.look(now)
        began = {}
        for worker, piece in at_work.items():
            known = self._began.get(worker)
            began[worker] = known if known and known[0] == piece else (piece, seconds)
        self._began = began
        worker, (_, first) = min(
            began.items(), key=lambda item: item[1][1], default=("", (0, seconds))
        )
        longest = seconds - first
        if longest <= self._patience:
            return None
        return Stuck(f"{worker} has not come back for {longest:.1f} s")
