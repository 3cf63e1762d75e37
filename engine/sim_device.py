"""The simulator's machine: pieces of work that run beside each other and slow each other down.

A piece has so many seconds of work to do. While it is alone a second takes a second; beside work of
another lane it takes as many as the cost table says (``slows``); infinity stops it. Work of a lane
that does it in order waits for what came before it there. What is done comes back a while later.
"""

import math
from collections.abc import Callable, Collection, Mapping
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

    def __init__(
        self,
        slows: Slows,
        in_order: Collection[Lane] = (),
        back: Callable[[Dispatch], float] = lambda _: 0.0,
    ) -> None:
        """``in_order``: lanes that do one piece after the other. ``back``: seconds from a piece's
        end until it can be taken."""
        self._slows, self._in_order, self._back = slows, in_order, back
        self._pieces: list[Piece] = []
        self._answers: list[tuple[float, Piece]] = []  # from when on they can be taken
        self._at = 0.0

    def start(self, dispatch: Dispatch, work: float, now: float) -> None:
        """``work`` seconds of it begin at ``now``."""
        self._go_on(now)
        self._pieces.append(Piece(dispatch, work, now))

    def next_end(self) -> float:
        """When the first piece can be taken, if nothing else starts; ``inf`` while nothing runs."""
        ends = [self._end(piece) + self._back(piece.dispatch) for piece in self._at_work()]
        return min(ends + [at for at, _ in self._answers], default=math.inf)

    def take_done(self, now: float) -> list[Piece]:
        """What has come back by ``now``, in the order in which it was done."""
        self._go_on(now)
        done = [piece for at, piece in self._answers if at <= now]
        self._answers = [(at, piece) for at, piece in self._answers if at > now]
        return done

    def _go_on(self, now: float) -> None:
        """Work until ``now``, from one piece's end to the next."""
        while True:
            end = min(map(self._end, self._at_work()), default=math.inf)
            at = min(end, now)
            paces = [1.0 / self._slowness(piece) for piece in self._at_work()]
            for piece, pace in zip(self._at_work(), paces, strict=True):
                piece.left -= (at - self._at) * pace
            self._at = at
            if end > now:
                return
            done = [piece for piece in self._pieces if piece.left <= DONE]
            self._pieces = [piece for piece in self._pieces if piece.left > DONE]
            self._answers += [(end + self._back(piece.dispatch), piece) for piece in done]

    def _end(self, piece: Piece) -> float:
        return self._at + piece.left * self._slowness(piece)

    def _at_work(self) -> list[Piece]:
        """All, but for those that wait for another of their lane."""
        first: dict[Lane, Piece] = {}
        for piece in self._pieces:
            first.setdefault(piece.dispatch.lane, piece)
        return [
            piece
            for piece in self._pieces
            if piece.dispatch.lane not in self._in_order or first[piece.dispatch.lane] is piece
        ]

    def _slowness(self, piece: Piece) -> float:
        own = piece.dispatch.lane
        beside = {other.dispatch.lane for other in self._pieces} - {own}
        return math.prod(self._slows.get((own, lane), 1.0) for lane in beside)
