"""One machine, twenty listeners and one that lies: the real scheduler under a virtual clock.

Everybody is given an endless text. ``supply`` is what the machine can make, as a multiple of what
all listeners together play. Service is the audio that the scheduler had made for a client.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from itertools import count

import numpy as np
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

HZ = 24_000
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
class Seat:
    """One utterance that plays for ever: the true player, and how it tells of itself."""

    utterance: int
    client: str
    account: str
    listener: Listener
    tells: "Strategy"
    told: int = 0
    last: Report | None = None
    state: ListenerState = ListenerState.IDLE
    gone: bool = False
    cut: bool = False
    kept: list[float] = field(default_factory=list)  # sent while it was cut off

    def truth(self, now: float) -> Report:
        """An honest report."""
        player = self.listener
        received, consumed = round(player.received * HZ), round(player.consumed * HZ)
        return Report(
            self.utterance,
            received,
            consumed,
            consumed,
            received - consumed,
            0,
            player.state,
            player.underruns,
            player.starved,
            now + 1000.0,
        )


Strategy = Callable[[Seat, Report, float], Report | None]
"""What a client says, given its seat, the true report and the time."""


def honest(seat: Seat, true: Report, now: float) -> Report | None:
    return true


def empty(seat: Seat, true: Report, now: float) -> Report | None:
    """Everything is played, and it starves."""
    return replace(
        true,
        consumed=true.received,
        heard=true.received,
        buffered=0,
        state=ListenerState.STALLED,
        underruns=seat.told,
        starved=now,
    )


def full(seat: Seat, true: Report, now: float) -> Report | None:
    """Nothing is played."""
    return replace(true, consumed=0, heard=0, buffered=true.received)


def flip(seat: Seat, true: Report, now: float) -> Report | None:
    """Half a second empty, half a second full."""
    return (empty if now % 1.0 < 0.5 else full)(seat, true, now)


def negative(seat: Seat, true: Report, now: float) -> Report | None:
    return replace(true, consumed=true.received + HZ, buffered=-HZ, state=ListenerState.STALLED)


def not_a_number(seat: Seat, true: Report, now: float) -> Report | None:
    return replace(empty(seat, true, now) or true, starved=math.nan)


def infinite(seat: Seat, true: Report, now: float) -> Report | None:
    return replace(empty(seat, true, now) or true, client_time=math.inf)


def backwards(seat: Seat, true: Report, now: float) -> Report | None:
    """Its counters run down."""
    less = max(0, true.received - seat.told * HZ // 10)
    return replace(true, received=less, consumed=less, buffered=0, state=ListenerState.STALLED)


def replayed(seat: Seat, true: Report, now: float) -> Report | None:
    """The first report of a starving moment, again and again, with a fresh time."""
    seat.last = seat.last or empty(seat, true, now)
    return replace(seat.last or true, client_time=true.client_time)


def double(seat: Seat, true: Report, now: float) -> Report | None:
    """Plays twice as fast as it does."""
    played = min(true.received, 2 * true.consumed)
    return replace(true, consumed=played, heard=played, buffered=true.received - played)


def pause_then_empty(seat: Seat, true: Report, now: float) -> Report | None:
    """Two seconds paused, two seconds starving."""
    if now % 4.0 < 2.0:
        return replace(true, state=ListenerState.PAUSED)
    return empty(seat, true, now)


def beyond(seat: Seat, true: Report, now: float) -> Report | None:
    """Has played what was never sent."""
    more = true.received + 2 * HZ
    return replace(true, received=more, consumed=more, buffered=0, state=ListenerState.STALLED)


def silent(seat: Seat, true: Report, now: float) -> Report | None:
    return None


@dataclass(frozen=True)
class Conduct:
    """How the one client behaves that is looked at."""

    tells: Strategy = honest
    sessions: int = 1  # at a time, all of one account
    cuts: float = math.inf  # seconds after which its network is gone for CUT, again and again
    churn: float = math.inf  # seconds after which it drops its session and opens another


CONDUCTS = {
    "honest": Conduct(),
    "empty": Conduct(empty),
    "full": Conduct(full),
    "flip": Conduct(flip),
    "negative": Conduct(negative),
    "not a number": Conduct(not_a_number),
    "infinite": Conduct(infinite),
    "backwards": Conduct(backwards),
    "replayed": Conduct(replayed),
    "double speed": Conduct(double),
    "pause, then empty": Conduct(pause_then_empty),
    "beyond what was sent": Conduct(beyond),
    "silent": Conduct(silent),
    "reconnects": Conduct(churn=4.0),
    "reconnects, empty": Conduct(empty, churn=4.0),
    "reconnects fast": Conduct(churn=1.0),
    "ten sessions": Conduct(sessions=10),
    "is cut off, returns": Conduct(cuts=6.0),
}

PLENTY = ("ten sessions", "reconnects", "reconnects, empty", "reconnects fast")
"""While there is enough for all, ten sessions hear ten texts, and one that returns starts anew."""


@dataclass
class Result:
    """Seconds of audio made and of stalls, after everybody had settled."""

    service: dict[str, float] = field(default_factory=dict)  # by account
    starved: dict[str, float] = field(default_factory=dict)
    total: dict[str, float] = field(default_factory=dict)  # service from the very start
    worked: dict[str, float] = field(default_factory=dict)  # lane seconds, wanted or not

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
        """The next frames; an endless text unless somebody knows better."""
        return StepResult(utterance, MODEL.step_frames, False, False, False)

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
        for counted, since in ((self.result.service, self._settled), (self.result.total, 0.0)):
            if now >= since:
                counted[seat.account] = counted.get(seat.account, 0.0) + seconds
        self._at(now + ONE_WAY, partial(self._arrive, seat, seconds))

    def _arrive(self, seat: Seat, seconds: float, now: float) -> None:
        if seat.cut:
            seat.kept.append(seconds)
        elif not seat.gone:
            seat.listener.arrive(seconds, False, now)
            if seat.listener.state is not seat.state:
                self._say(seat, now)

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
        report = seat.tells(seat, seat.truth(now), now)
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
    """Runs one conduct among ``neighbours`` honest ones."""

    def __init__(
        self,
        conduct: Conduct,
        *,
        supply: float,
        neighbours: int = 19,
        liars: int = 1,
        seed: int = 7,
        keys: Keys = Keys.EACH,
    ) -> None:
        policy = PolicyConfig(max_live=10_000, max_utilisation=math.inf)
        super().__init__(WORKERS / (supply * (neighbours + liars)), policy)
        self._conduct = conduct
        self._keys = keys
        rng = np.random.default_rng(seed)
        for number in range(neighbours):
            name = f"n{number:02}"
            self._at(rng.uniform(0, 0.5), partial(self._sit, name, name, honest))
        for number in range(liars):
            account = "liar" if number == 0 else f"liar{number}"
            for session in range(conduct.sessions):
                name = f"{account}-{session}"
                begins = rng.uniform(0, 0.5)
                self._at(begins, partial(self._sit, name, account, conduct.tells))

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

    def _sit(self, client: str, account: str, tells: Strategy, now: float) -> None:
        utterance = next(self._ids)
        seat = Seat(utterance, client, account, Listener(Habits(), now), tells)
        self._seats[utterance] = seat
        self._accounts[utterance] = account
        self._scheduler.delay(client, ONE_WAY)
        payer = {Keys.EACH: account, Keys.ONE: "key", Keys.NONE: ""}[self._keys]
        request = Request(utterance, client, "any", account=payer)
        assert self._scheduler.submit(request, now) is None
        self._scheduler.text(utterance, steppable=True)
        self._at(now + REPORT_EVERY, partial(self._tell, seat))
        if account.startswith("liar") and self._conduct.cuts < math.inf:
            self._at(now + self._conduct.cuts, partial(self._cut, seat))
        if account.startswith("liar") and self._conduct.churn < math.inf:
            self._at(now + self._conduct.churn, partial(self._leave, seat))
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
        self._at(now + self._conduct.cuts, partial(self._cut, seat))
        self._turn(now)

    def _leave(self, seat: Seat, now: float) -> None:
        """Drop the session and open another, under the same key."""
        seat.gone = True
        seat.listener.advance(now)
        self._count_stalls(seat)
        del self._seats[seat.utterance]
        self._scheduler.cancel(seat.utterance, now)
        self._scheduler.forget(seat.client)
        self._sit(seat.client + "'", seat.account, seat.tells, now)

    def _count_stalls(self, seat: Seat) -> None:
        starved = self.result.starved
        starved[seat.account] = starved.get(seat.account, 0.0) + seat.listener.starved
