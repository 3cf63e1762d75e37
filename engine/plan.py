"""What one plan starts: batches for the lanes, as many as the machine takes."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from playhead.engine.pipeline import Begun, Pipeline
from playhead.engine.policy import YIELDS_AFTER, LaneLimits
from playhead.engine.turn import Candidate, Step, Turn
from playhead.engine.types import ChunkWork, Lane

T = TypeVar("T")

Waiting = Callable[[Lane], int]
"""How many chunks, or steps, wait for a lane."""

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

    @property
    def begun(self) -> Begun:
        """What its lane's pipeline is told of it."""
        return Begun(self.started, sum(chunk.frames for chunk in self.chunks))


@dataclass(frozen=True, slots=True)
class Plan:
    """What to start, and when to plan again if nothing happens before (None: never)."""

    dispatches: tuple[Dispatch, ...]
    wake_at: float | None


class Dispatcher:
    """Fills the lanes in the order of turns and counts what runs."""

    def __init__(self, limits: LaneLimits) -> None:
        self._limits = limits
        self.busy = dict.fromkeys(Lane, 0)  # dispatches running, without those behind them
        self._pipelines = {lane: Pipeline(limits.batch[lane]) for lane in limits.pipelined}
        self._takes: set[Lane] = set()  # of the pipelined lanes, those that take a second dispatch
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

    def behind(self, waiting: Waiting, now: float) -> float:
        """After a turn: how many wait for a worker. Returns when a lane would take a second
        dispatch, if nothing else happens."""
        if not waiting(Lane.BACKGROUND):
            self._behind = None
        elif self._behind is None:
            self._behind = now
        self.yields = self._behind is not None and now - self._behind >= YIELDS_AFTER
        if not self._pipelines:
            return math.inf
        return min(one.due(waiting(lane)) for lane, one in self._pipelines.items())

    def done(self, dispatch: Dispatch, service: float, now: float) -> tuple[float, float]:
        """A dispatch came back at ``now``, ``service`` seconds after a worker had it. Returns the
        seconds that it was worked on, and those for which its place in the lane was taken."""
        self.running.remove(dispatch)
        held = dispatch.held(service, now)
        pipeline = self._pipelines.get(dispatch.lane)
        if pipeline is None:
            self.busy[dispatch.lane] -= 1
            return service, held
        self.busy[dispatch.lane] -= not pipeline.queued
        held = pipeline.done(dispatch.begun, held, now)
        return min(service, held), held

    def room(self, waiting: Waiting, now: float) -> dict[Lane, int]:
        """The lanes that take a dispatch at ``now``, as so many wait for each, and how many streams
        are worth a look for it: twice what it takes, since not all will turn out to have something
        for it, and some to choose from."""
        if self._pipelines:
            due = ((lane, one.due(waiting(lane))) for lane, one in self._pipelines.items())
            self._takes = {lane for lane, at in due if at <= now}
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
        if self._takes and lane in self._takes:
            return 1
        return self._limits.free(lane, self.busy, yields=self.yields)

    def _chunks(self, lane: Lane, candidates: deque[Candidate], now: float) -> Dispatch:
        chunks = tuple(c.take(now) for c in self._cut(lane, candidates))
        made = Dispatch(lane, chunks=chunks, started=now)
        if lane in self._pipelines:
            self._pipelines[lane].start(made.begun)
        return made

    def _steps(self, candidates: deque[Step], now: float) -> Dispatch:
        steps = tuple(s.take() for s in self._cut(Lane.LM, candidates))
        return Dispatch(Lane.LM, steps=steps, started=now)

    def _cut(self, lane: Lane, candidates: deque[T]) -> list[T]:
        """The next batch of ``lane``: what waits, spread over the workers that are free for it."""
        share = math.ceil(len(candidates) / self._free(lane))
        self.busy[lane] += lane not in self._takes
        self._takes.discard(lane)
        return [candidates.popleft() for _ in range(min(self._limits.batch[lane], share))]
