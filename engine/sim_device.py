"""The simulator's machine: pieces of work that run beside each other and slow each other down.

A piece has so many seconds of work to do. While it is alone a second takes a second; beside work of
another lane it takes as many as the cost table says (``slows``); infinity stops it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from playhead.engine.plan import Dispatch
from playhead.engine.types import Lane

DONE = 1e-9
"""Seconds of work that count as none."""

Slows = Mapping[tuple[Lane, Lane], float]
"""By what factor work of the first lane takes longer beside work of the second."""


@dataclass(slots=True)
class Piece:
    """A dispatch at work."""

    dispatch: Dispatch
    left: float  # seconds of work
    started: float


class Device:
    """Runs what it is given; tell it the time."""

    def __init__(self, slows: Slows) -> None:
        self._slows = slows
        self._pieces: list[Piece] = []
        self._at = 0.0

    def start(self, dispatch: Dispatch, work: float, now: float) -> None:
        """``work`` seconds of it begin at ``now``."""
        self._go_on(now)
        self._pieces.append(Piece(dispatch, work, now))

    def next_end(self) -> float:
        """When the first piece is done, if nothing else starts; ``inf`` while nothing runs."""
        times = (piece.left * self._slowness(piece) for piece in self._pieces)
        return self._at + min(times, default=math.inf)

    def take_done(self, now: float) -> list[Piece]:
        """What is done at ``now``, in the order in which it was started."""
        self._go_on(now)
        done = [piece for piece in self._pieces if piece.left <= DONE]
        self._pieces = [piece for piece in self._pieces if piece.left > DONE]
        return done

    def _go_on(self, now: float) -> None:
        passed = now - self._at
        paces = [1.0 / self._slowness(piece) for piece in self._pieces]
        for piece, pace in zip(self._pieces, paces, strict=True):
            piece.left -= passed * pace
        self._at = now

    def _slowness(self, piece: Piece) -> float:
        own = piece.dispatch.lane
        beside = {other.dispatch.lane for other in self._pieces} - {own}
        return math.prod(self._slows.get((own, lane), 1.0) for lane in beside)
