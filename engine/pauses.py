"""How long this machine itself stands still: the worst of late, remembered. Pure.

A process that is short of cores, collects garbage or was stopped comes late to its own
appointments. Listeners hear that as they hear a network's pauses, so a lead must cover both.
"""

import math

HALF_LIFE = 60.0
"""Seconds in which the memory of a pause fades by half."""


class Pauses:
    """Tell it of each turn, and when the next one is due."""

    def __init__(self) -> None:
        self._due = math.inf
        self._worst = 0.0
        self._at = 0.0

    def turn(self, now: float) -> None:
        """A turn begins: was it late?"""
        late = now - self._due
        if late > self.worst(now):
            self._worst, self._at = late, now

    def expect(self, due: float) -> None:
        """The next turn is due then, if nothing happens before; ``inf``: nothing is."""
        self._due = due

    def worst(self, now: float) -> float:
        """Seconds of the worst pause that is remembered."""
        return float(self._worst * 0.5 ** ((now - self._at) / HALF_LIFE))
