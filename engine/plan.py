"""What one plan starts: batches for the lanes, as many as the machine takes."""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import TypeVar

from playhead.engine.policy import YIELDS_AFTER, LaneLimits
from playhead.engine.turn import Candidate, Step, Turn
from playhead.engine.types import ChunkWork, Lane

T = TypeVar("T")

CHOICE = 128
"""Streams that are looked at for a free lane, if so many wait: the order among them is exact."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Work that starts now, as one batch, in one lane."""

    lane: Lane
    steps: tuple[int, ...] = ()  # LM lane: utterances to step
    chunks: tuple[ChunkWork, ...] = ()  # codec lanes
    started: float = field(default=0.0, compare=False)

    @property
    def utterances(self) -> tuple[int, ...]:
        """Everybody in the batch."""
        return (*self.steps, *(chunk.utterance for chunk in self.chunks))

    def held(self, service: float, now: float) -> float:
        """Seconds for which its place in the lane was taken: no other starts there before its
        result has been taken, which is ``now``."""
        return max(service, now - self.started)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to start, and when to plan again if nothing happens before (None: never)."""

    dispatches: tuple[Dispatch, ...]
    wake_at: float | None


class Dispatcher:
    """Fills the lanes in the order of turns and counts what runs."""

    def __init__(self, limits: LaneLimits) -> None:
        self._limits = limits
        self.busy = dict.fromkeys(Lane, 0)  # dispatches running
        self.waiting = dict.fromkeys(Lane, 0)  # candidates without a worker at the last plan
        self.running: list[Dispatch] = []  # oldest first
        self._behind: float | None = None  # since when background work waits without a pause
        self.yields = False  # it has waited long enough to get the reserve

    def fill(self, turn: Turn, now: float) -> list[Dispatch]:
        """Start what the machine takes: urgent chunks and steps in the order of need, then
        background chunks."""
        urgent, steps, background = deque(turn.urgent), deque(turn.steps), deque(turn.background)
        out: list[Dispatch] = []
        while True:
            chunk_next = bool(urgent) and self.free(Lane.URGENT)
            step_next = bool(steps) and self.free(Lane.LM)
            if step_next and not (chunk_next and urgent[0].key <= steps[0].key):
                out.append(self._steps(steps, now))
            elif chunk_next:
                out.append(self._chunks(Lane.URGENT, urgent, now))
            else:
                break
        while background and self.free(Lane.BACKGROUND):
            out.append(self._chunks(Lane.BACKGROUND, background, now))
        self.waiting = {
            Lane.LM: len(steps),
            Lane.URGENT: len(urgent),
            Lane.BACKGROUND: len(background),
        }
        self.running += out
        return out

    def behind(self, waits: bool, now: float) -> None:
        """After a turn: whether background work waits for a worker."""
        if not waits:
            self._behind = None
        elif self._behind is None:
            self._behind = now
        self.yields = self._behind is not None and now - self._behind >= YIELDS_AFTER

    def done(self, dispatch: Dispatch) -> None:
        """A dispatch came back."""
        self.busy[dispatch.lane] -= 1
        self.running.remove(dispatch)

    def room(self) -> dict[Lane, int]:
        """The lanes that are free, and how many streams are worth a look for each: twice what it
        takes, since not all will turn out to have something for it, and some to choose from."""
        free = {lane: self._free(lane) for lane in Lane}
        return {
            lane: max(CHOICE, 2 * workers * self._limits.batch[lane])
            for lane, workers in free.items()
            if workers > 0
        }

    def free(self, lane: Lane) -> bool:
        """Whether ``lane`` takes a dispatch now."""
        return self._free(lane) > 0

    def _free(self, lane: Lane) -> int:
        return self._limits.free(lane, self.busy, yields=self.yields)

    def _chunks(self, lane: Lane, candidates: deque[Candidate], now: float) -> Dispatch:
        chunks = tuple(c.take(now) for c in self._cut(lane, candidates))
        return Dispatch(lane, chunks=chunks, started=now)

    def _steps(self, candidates: deque[Step], now: float) -> Dispatch:
        steps = tuple(s.take() for s in self._cut(Lane.LM, candidates))
        return Dispatch(Lane.LM, steps=steps, started=now)

    def _cut(self, lane: Lane, candidates: deque[T]) -> list[T]:
        """The next batch of ``lane``: what waits, spread over the workers that are free for it."""
        share = math.ceil(len(candidates) / self._free(lane))
        self.busy[lane] += 1
        return [candidates.popleft() for _ in range(min(self._limits.batch[lane], share))]
