"""How long this machine itself stands still: the worst of late, remembered. Pure.

A process that is short of cores, collects garbage or was stopped comes late to its own
appointments. Listeners hear that as they hear a network's pauses, so a lead must cover both. Every
process between the lanes and a listener counts: the engine's notices its own pauses, gateways tell
of theirs.
"""

import math

HALF_LIFE = 60.0
"""Seconds in which the memory of a pause fades by half."""

MOST = 1.5
"""Seconds of a pause that are remembered at the most. A machine that was suspended for an hour
finds every listener dry: no lead covers that, and none should be longer for it than for this."""


class Worst:
    """The worst pause of late of one process."""

    __slots__ = ("_at", "_seconds")

    def __init__(self) -> None:
        self._seconds = 0.0
        self._at = 0.0

    def note(self, seconds: float, now: float) -> bool:
        """A pause has ended. Whether it is worse than what is remembered."""
        if seconds <= self.left(now):
            return False
        self._seconds, self._at = min(MOST, seconds), now
        return True

    def left(self, now: float) -> float:
        """Seconds of it that are remembered."""
        return float(self._seconds * 0.5 ** ((now - self._at) / HALF_LIFE))


class Pauses:
    """Tell it of each turn of the engine, and when the next one is due; and what gateways tell."""

    def __init__(self) -> None:
        self._due = math.inf
        self._own = Worst()
        self._gateways: dict[int, Worst] = {}

    def turn(self, now: float) -> None:
        """A turn begins: was it late?"""
        self._own.note(now - self._due, now)

    def expect(self, due: float) -> None:
        """The next turn is due then, if nothing happens before; ``inf``: nothing is."""
        self._due = due

    def told(self, gateway: int, seconds: float, now: float) -> None:
        """A gateway's event loop stood still until ``now``."""
        self._gateways.setdefault(gateway, Worst()).note(seconds, now)

    def worst(self, now: float) -> float:
        """Seconds of the engine's worst pause that are remembered."""
        return self._own.left(now)

    def elsewhere(self, now: float) -> dict[int, float]:
        """Seconds of the worst pause of those gateways that had a longer one than the engine."""
        own = self.worst(now)
        told = ((gateway, worst.left(now)) for gateway, worst in self._gateways.items())
        return {gateway: seconds for gateway, seconds in told if seconds > own}
