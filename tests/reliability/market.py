"""One machine, honest listeners and some that lie: the real scheduler under a virtual clock.

Everybody is given an endless text. ``supply`` is what the machine can make, as a multiple of what
all listeners together play. Service is the audio that the scheduler had made for a client.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import count

import numpy as np
from conducts import CONDUCTS, HZ, Conduct, Seat
from playhead.engine.plan import Dispatch
from playhead.engine.policy import LaneLimits, PolicyConfig
from playhead.engine.scheduler import Scheduler
from playhead.engine.sim_listener import Habits, Listener
from playhead.engine.types import (
    AudioChunk,
    Lane,
    ListenerState,
    ModelInfo,
    Pcm,
    Report,
    Request,
    StepResult,
)

MODEL = ModelInfo("market", ("any",), HZ, 300, (8, 16, 32), 64)
FRAME = MODEL.frame_samples / HZ
WORKERS = 2
ONE_WAY = 0.03
REPORT_EVERY = 0.25
STEP_COST = 1e-4  # of the backbone: next to nothing, so that the codec alone is the supply
SETTLED = 15.0
"""Seconds after which service is counted: until then everybody fills up its lead, which is learned
and given once. Stalls count from the beginning."""

CUT = 1.5
"""Seconds for which a network is gone: longer than the lead of a steady listener."""

SILENCE = np.zeros(1, np.float32)


@dataclass
class Result:
    """Seconds of audio made and of stalls, after everybody had settled."""

    service: dict[str, float] = field(default_factory=dict)  # by account
    starved: dict[str, float] = field(default_factory=dict)
    total: dict[str, float] = field(default_factory=dict)  # service from the very start
    worked: dict[str, float] = field(default_factory=dict)  # lane seconds, wanted or not
    waited: dict[str, list[float]] = field(default_factory=dict)  # for each first sound

    def others(self, of: dict[str, float]) -> list[float]:
        return sorted(value for account, value in of.items() if account != "liar")


class Machine:
    """The scheduler, its lanes and the players at the other end, under a virtual clock.

    ``unit``: lane seconds that a second of sound takes.
    """

    def __init__(self, unit: float, policy: PolicyConfig) -> None:
        lanes = LaneLimits(WORKERS, dict.fromkeys(Lane, WORKERS), dict.fromkeys(Lane, 1), 1)
        self._scheduler = Scheduler(MODEL, lanes, policy)
        self._unit = unit
        self._heap: list[tuple[float, int, Callable[[float], None]]] = []
        self._ids = count(1)
        self._order = count()
        self._seats: dict[int, Seat] = {}
        self._accounts: dict[int, str] = {}  # of all utterances, ended ones too
        self._turn_due = math.inf
        self._settled = 0.0
        self.result = Result({"liar": 0.0}, {"liar": 0.0}, {"liar": 0.0})

    def _at(self, when: float, event: Callable[[float], None]) -> None:
        heapq.heappush(self._heap, (when, next(self._order), event))

    def _pop(self) -> tuple[float, int, Callable[[float], None]]:
        return heapq.heappop(self._heap)

    # -- the engine -------------------------------------------------------------------------

    def _turn(self, now: float) -> None:
        self._turn_due = math.inf
        plan = self._scheduler.plan(now)
        for dispatch in plan.dispatches:
            self._start(dispatch, now)
        for event in self._scheduler.events():
            if isinstance(event, AudioChunk):
                self._send(event, now)
        self._scheduler.closed()
        if plan.wake_at is not None:
            self._turn_at(max(plan.wake_at, now + 1e-6))

    def _turn_at(self, when: float) -> None:
        if when < self._turn_due:
            self._turn_due = when
            self._at(when, self._due)

    def _due(self, now: float) -> None:
        if now >= self._turn_due:
            self._turn(now)

    def _start(self, dispatch: Dispatch, now: float) -> None:
        if dispatch.lane is Lane.LM:
            self._at(now + STEP_COST, partial(self._stepped, dispatch))
            return
        cost = 0.0
        for chunk in dispatch.chunks:
            cost += (own := chunk.frames * FRAME * self._unit)
            account = self._accounts.get(chunk.utterance, "")
            if now >= self._settled:
                self.result.worked[account] = self.result.worked.get(account, 0.0) + own
        self._at(now + cost, partial(self._decoded, dispatch, cost))

    def _stepped(self, dispatch: Dispatch, now: float) -> None:
        self._scheduler.commit_steps(
            dispatch, list(map(self._step, dispatch.steps)), STEP_COST, now
        )
        self._turn(now)

    def _step(self, utterance: int) -> StepResult:
        """The next frames; of an endless text, unless it has an end."""
        seat = self._seats.get(utterance)
        frames = MODEL.step_frames if seat is None else int(min(MODEL.step_frames, seat.unsaid))
        ended = seat is not None and frames == seat.unsaid
        if seat is not None:
            seat.unsaid -= frames
        return StepResult(utterance, frames, ended, False, ended)

    def _decoded(self, dispatch: Dispatch, cost: float, now: float) -> None:
        pcm: list[Pcm | BaseException] = [
            np.broadcast_to(SILENCE, chunk.frames * MODEL.frame_samples)
            for chunk in dispatch.chunks
        ]
        self._scheduler.commit_chunks(dispatch, pcm, cost, now)
        self._turn(now)

    # -- the listeners ----------------------------------------------------------------------

    def _send(self, chunk: AudioChunk, now: float) -> None:
        seat = self._seats.get(chunk.utterance)
        if seat is None:
            return
        seconds = len(chunk.pcm) / HZ
        seat.unsent -= len(chunk.pcm) // MODEL.frame_samples
        for counted, since in ((self.result.service, self._settled), (self.result.total, 0.0)):
            if now >= since:
                counted[seat.account] = counted.get(seat.account, 0.0) + seconds
        self._at(now + ONE_WAY, partial(self._arrive, seat, seconds, final=seat.unsent <= 0))

    def _arrive(self, seat: Seat, seconds: float, now: float, *, final: bool = False) -> None:
        if seat.cut:
            seat.kept.append(seconds)
        elif not seat.gone:
            seat.listener.arrive(seconds, final, now)
            if final:
                self._at(now + seat.listener.held, partial(self._leave, seat))
            if seat.listener.state is not seat.state:
                self._say(seat, now)

    def _leave(self, seat: Seat, now: float) -> None:
        """All of a text has been heard."""

    def _tell(self, seat: Seat, now: float) -> None:
        if not seat.gone:
            seat.listener.advance(now)
            self._say(seat, now)
            self._at(now + REPORT_EVERY, partial(self._tell, seat))

    def _say(self, seat: Seat, now: float) -> None:
        if seat.cut:
            return
        seat.told += 1
        seat.state = seat.listener.state
        report = seat.conduct.tells(seat, seat.truth(now), now)
        if report is not None:
            self._at(now + ONE_WAY, partial(self._hear, seat, report))

    def _hear(self, seat: Seat, report: Report, now: float) -> None:
        self._scheduler.report(report, now)
        self._turn_at(now + 5e-4)


class Keys(Enum):
    """Who is answerable."""

    EACH = "a key each"
    ONE = "one key"  # as of an application whose users all come with its tickets
    NONE = "no keys"


class Market(Machine):
    """Runs one conduct among ``neighbours`` honest ones. ``guests``: places more of those who come,
    hear a second of speech and make room for the next one."""

    def __init__(
        self,
        conduct: Conduct,
        *,
        supply: float,
        neighbours: int = 19,
        liars: int = 1,
        seed: int = 7,
        keys: Keys = Keys.EACH,
        guests: int = 0,
    ) -> None:
        policy = PolicyConfig(max_live=10_000, max_utilisation=math.inf)
        super().__init__(WORKERS / (supply * (neighbours + liars + guests)), policy)
        self._keys = keys
        rng = np.random.default_rng(seed)

        def seat(client: str, account: str, conduct: Conduct) -> None:
            self._at(rng.uniform(0, 0.5), partial(self._sit, client, account, conduct))

        for number in range(neighbours):
            seat(f"n{number:02}", f"n{number:02}", CONDUCTS["honest"])
        for number in range(liars):
            account = "liar" if number == 0 else f"liar{number}"
            for session in range(conduct.sessions):
                seat(f"{account}-{session}", account, conduct)
        for number in range(guests):
            seat(f"guest{number}", f"guest{number}", CONDUCTS["newcomers, 1 s each"])

    def run(self, seconds: float = 60.0, settled: float = SETTLED) -> Result:
        """Everybody plays; ``seconds`` of it are counted."""
        self._settled, self._end = settled, settled + seconds
        while self._heap and self._heap[0][0] < self._end:
            now, _, event = heapq.heappop(self._heap)
            event(now)
        for seat in self._seats.values():
            seat.listener.advance(self._end)
            self._count_stalls(seat)
        return self.result

    def _sit(self, client: str, account: str, conduct: Conduct, now: float) -> None:
        utterance = next(self._ids)
        seat = Seat(utterance, client, account, Listener(Habits(), now), conduct, now)
        seat.unsaid = seat.unsent = conduct.frames
        self._seats[utterance] = seat
        self._accounts[utterance] = account
        for made in (self.result.service, self.result.total, self.result.worked):
            made.setdefault(account, 0.0)  # who gets nothing counts as well
        self._scheduler.delay(client, ONE_WAY)
        payer = {Keys.EACH: account, Keys.ONE: "key", Keys.NONE: ""}[self._keys]
        request = Request(utterance, client, "any", account=payer)
        assert self._scheduler.submit(request, now) is None
        self._scheduler.text(utterance, steppable=True)
        self._at(now + REPORT_EVERY, partial(self._tell, seat))
        if conduct.cuts < math.inf:
            self._at(now + conduct.cuts, partial(self._cut, seat))
        if conduct.churn < math.inf:
            self._at(now + conduct.churn, partial(self._leave, seat))
        self._turn(now)

    def _cut(self, seat: Seat, now: float) -> None:
        """Its socket is gone for a while; the session waits for it."""
        self._scheduler.hold(seat.utterance, ListenerState.SUSPENDED, now)
        seat.cut = True
        self._at(now + CUT, partial(self._back, seat))
        self._turn(now)

    def _back(self, seat: Seat, now: float) -> None:
        seat.cut = False
        self._scheduler.hold(seat.utterance, None, now)
        for seconds in seat.kept:
            self._at(now + ONE_WAY, partial(self._arrive, seat, seconds))
        seat.kept.clear()
        seat.listener.advance(now)
        self._say(seat, now)
        self._at(now + seat.conduct.cuts, partial(self._cut, seat))
        self._turn(now)

    def _leave(self, seat: Seat, now: float) -> None:
        """Drop the session, or it has heard all; open another, under the same key."""
        seat.gone = True
        seat.listener.advance(now)
        self._count_stalls(seat)
        del self._seats[seat.utterance]
        self._scheduler.cancel(seat.utterance, now)
        self._scheduler.forget(seat.client)
        self._sit(seat.client + "'", seat.account, seat.conduct, now)

    def _count_stalls(self, seat: Seat) -> None:
        starved, player = self.result.starved, seat.listener
        starved[seat.account] = starved.get(seat.account, 0.0) + player.starved
        if player.truth.first_audio is not None:
            waits = self.result.waited.setdefault(seat.account, [])
            waits.append(player.truth.first_audio - seat.sat)
