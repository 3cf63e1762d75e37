"""When a lane is handed a second dispatch, behind the one that its device is at.

A device that does a lane's dispatches in the order in which they come need not wait for the host
between two of them. But what is handed over is bound: it no longer grows with what comes, nor can
it become urgent. So the second goes when the first is partly done, and only if it will be large:
who has few to hand over has a lane that waits anyway. Pure; times are seconds.
"""

import math
from collections import deque
from typing import Final, NamedTuple

DONE_BY: Final = 0.5
"""Of the time that the first should take, what must have passed before the second goes: the rest
is for the engine's turn, the way to the device, and for a first that is quicker than expected."""
FULL_BY: Final = 0.5
"""Of a full batch, what must wait for the lane."""
WEIGHT: Final = 1 / 8
"""Of the newest dispatch in what a frame is expected to take."""


class Begun(NamedTuple):
    """A dispatch of so many ``frames`` in all, handed over at ``started``."""

    started: float
    frames: int


class Pipeline:
    """One lane, whose device has at most two dispatches: it is at the one that came first."""

    def __init__(self, batch: int) -> None:
        """``batch``: chunks of a full dispatch."""
        self._least = max(1, math.ceil(FULL_BY * batch))
        self._begun: deque[Begun] = deque()
        self._ended = -math.inf
        self._pace: float | None = None  # seconds of the lane for a frame

    @property
    def queued(self) -> bool:
        """Whether the second is there."""
        return len(self._begun) > 1

    def start(self, begun: Begun) -> None:
        """It was handed over."""
        self._begun.append(begun)

    def done(self, begun: Begun, held: float, now: float) -> float:
        """It came back at ``now``, and had a place in the lane for ``held`` seconds. Returns those
        of them in which no other before it had the device."""
        self._begun.remove(begun)
        alone = min(held, now - self._ended)
        self._ended = now
        if begun.frames:
            pace = alone / begun.frames
            self._pace = pace if self._pace is None else self._pace + WEIGHT * (pace - self._pace)
        return alone

    def due(self, waiting: int) -> float:
        """From when on the second may go, if so many chunks wait; ``inf``: not before something
        changes."""
        if len(self._begun) != 1 or self._pace is None or waiting < self._least:
            return math.inf
        first = self._begun[0]
        return max(first.started, self._ended) + DONE_BY * self._pace * first.frames
