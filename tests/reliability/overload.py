"""A crowd that asks for more than there is: the real scheduler and admission, virtual time.

Utterances of some seconds come at random (Poisson), steps of demand follow one another, and every
one belongs to an account. What was promised to those who were let in is measured at their players.
"""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from conducts import HZ, Conduct, Seat
from market import FRAME, MODEL, ONE_WAY, REPORT_EVERY, STEP_COST, WORKERS, Machine
from playhead.engine.policy import PolicyConfig
from playhead.engine.sim_listener import Habits, Listener
from playhead.engine.types import AudioChunk, Lane, Request, StepResult

SPEECH = 5.7
"""Mean seconds of an utterance."""


@dataclass
class Step:
    """One level of demand and what came of it."""

    demand: float  # as a multiple of the capacity
    seconds: float
    offered: int = 0
    refused: int = 0
    admitted: int = 0
    stalled: int = 0  # of those admitted in this step, with any stall
    worst: float = 0.0
    heard: float = 0.0  # seconds of sound made while it lasted
    accounts: Counter[str] = field(default_factory=Counter)  # seconds of sound
    last_refusal: float = -math.inf  # seconds after its beginning

    @property
    def share(self) -> float:
        """Of the admitted that stalled."""
        return self.stalled / max(1, self.admitted)


class Crowd(Machine):
    """``capacity``: seconds of sound a second that the lanes can make. ``accounts`` ask in
    proportion to their weights."""

    def __init__(
        self, capacity: float, steps: Sequence[Step], accounts: Mapping[str, float], seed: int = 1
    ) -> None:
        super().__init__(WORKERS / capacity, PolicyConfig(max_live=10_000))
        for _ in range(20):  # what a rehearsal finds
            self._scheduler.capacity.note(Lane.LM, STEP_COST, 1, MODEL.step_frames * FRAME)
            self._scheduler.capacity.note(Lane.BACKGROUND, WORKERS / capacity, 1, 1.0)
        self._rng = random.Random(seed)
        self._capacity = capacity
        self._accounts = accounts
        self._left: dict[int, int] = {}  # frames not yet stepped
        self._began: dict[int, Step] = {}
        self.steps = list(steps)
        self.step = self.steps[0]

    def run(self) -> list[Step]:
        """All steps, one after the other."""
        begin = 0.0
        for step in self.steps:
            self._at(begin, partial(self._begin, step))
            begin += step.seconds
        self._end = begin + 30.0
        while self._heap and self._heap[0][0] < self._end:
            when, _, event = self._pop()
            event(when)
        return self.steps

    def _begin(self, step: Step, now: float) -> None:
        self.step, self._since = step, now
        self._until = now + step.seconds
        self._next(now)

    def _next(self, now: float) -> None:
        rate = self.step.demand * self._capacity / SPEECH
        when = now + self._rng.expovariate(rate)
        if when < self._until:
            self._at(when, partial(self._ask, self.step))

    def _ask(self, step: Step, now: float) -> None:
        if step is not self.step:
            return
        self._next(now)
        step.offered += 1
        utterance = next(self._ids)
        names, weights = zip(*self._accounts.items(), strict=True)
        account = self._rng.choices(names, weights)[0]
        client = f"{account}-{utterance}"
        request = Request(utterance, client, "any", account=account)
        self._scheduler.delay(client, ONE_WAY)
        if self._scheduler.submit(request, now):
            self._scheduler.forget(client)
            step.refused += 1
            step.last_refusal = now - self._since
            return
        step.admitted += 1
        seconds = min(15.0, max(1.0, self._rng.lognormvariate(math.log(SPEECH) - 0.125, 0.5)))
        self._left[utterance] = round(seconds / FRAME)
        self._began[utterance] = step
        seat = Seat(utterance, client, account, Listener(Habits(), now), Conduct())
        self._seats[utterance] = seat
        self._scheduler.text(utterance, steppable=True)
        self._at(now + REPORT_EVERY, partial(self._tell, seat))
        self._turn(now)

    def _step(self, utterance: int) -> StepResult:
        frames = min(MODEL.step_frames, self._left[utterance])
        self._left[utterance] -= frames
        ended = self._left[utterance] == 0
        return StepResult(utterance, frames, boundary=ended, hungry=False, ended=ended)

    def _send(self, chunk: AudioChunk, now: float) -> None:
        seat = self._seats[chunk.utterance]
        seconds = len(chunk.pcm) / HZ
        if now < self._until:
            self.step.heard += seconds
            self.step.accounts[seat.account] += seconds
        self._at(now + ONE_WAY, partial(self._arrive, seat, seconds))

    def _tell(self, seat: Seat, now: float) -> None:
        player = seat.listener
        player.advance(now)
        over = self._left[seat.utterance] == 0 and player.held <= 1e-6
        generated = seat.utterance not in self._scheduler._streams
        if over and generated:
            self._over(seat)
            return
        super()._tell(seat, now)

    def _over(self, seat: Seat) -> None:
        """Heard to its end: the last stall is the end itself."""
        step = self._began[seat.utterance]
        stalls = seat.listener.truth.stalls
        step.stalled += bool(stalls)
        step.worst = max(step.worst, max(stalls, default=0.0))
        seat.gone = True
        del self._seats[seat.utterance]
        self._scheduler.forget(seat.client)
