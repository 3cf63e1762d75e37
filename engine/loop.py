"""The engine's own thread: drain the inbox, commit, plan, dispatch, deliver.

:class:`Engine` is the only door. Its methods may be called from any thread and never wait; answers
come as events through one ``deliver`` call per turn.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from playhead.engine.answers import Hear, unasked
from playhead.engine.capacity import Capacity
from playhead.engine.clock import monotonic
from playhead.engine.events import died
from playhead.engine.intake import Intake
from playhead.engine.lanes import Completion, CpuLanes
from playhead.engine.overseer import Overseer
from playhead.engine.picture import EnginePicture, picture
from playhead.engine.policy import LaneLimits, PolicyConfig
from playhead.engine.scheduler import Scheduler
from playhead.engine.stats import EngineStats, snapshot
from playhead.engine.types import (
    EngineEvent,
    ListenerState,
    ModelCounts,
    Report,
    Request,
    Runner,
    RunnerDead,
)
from playhead.engine.watchdog import Stuck

log = logging.getLogger(__name__)

Deliver = Callable[[list[EngineEvent]], None]

PACE = 0.002
"""Seconds from one turn to the next that only reports ask for: with hundreds of listeners some of
them report every millisecond, and none of them minds waiting for one."""


PICTURES = 0.1
"""Seconds between two pictures of a busy engine."""

STOP_PATIENCE = 2.0
"""Seconds that :meth:`Engine.stop` waits for work that does not end."""

LAST_WORD = 0.5
"""Seconds that the engine's thread has to end its turn, before the watchdog tells of the end."""


class _Command(NamedTuple):
    """Something to do on the engine's thread; ``submits``: the utterance that asks to be spoken."""

    act: Callable[[float], None]
    submits: int | None


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How the engine runs."""

    lanes: LaneLimits
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    stuck_after: float = 5.0  # seconds after which a piece of work counts as never coming back
    counts: Callable[[], ModelCounts] = ModelCounts  # of the model so far
    capacity: Capacity | None = None  # of the lanes, as rehearsed; None: to be measured
    follow: Callable[[Hear], None] = unasked  # is handed who hears what the model answers later
    at_work: Callable[[], Mapping[str, int]] = dict  # of a model elsewhere: see Watchdog.look
    vetted: bool = False  # see CpuLanes


class Engine:
    """Speaks utterances. Start it, submit, and take events from ``deliver``.

    ``deliver`` runs on the engine's thread, at most once per turn, and must not block. When the
    engine itself breaks, or work in it does not come back, every live utterance fails at once and
    ``dead`` says why; what is submitted from then on is refused, on the caller's thread.
    """

    def __init__(
        self,
        runner: Runner,
        config: EngineConfig,
        deliver: Deliver,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.info = runner.info
        self._scheduler = Scheduler(runner.info, config.lanes, config.policy)
        self._scheduler.capacity = config.capacity or self._scheduler.capacity
        self._intake = Intake(runner, self._scheduler)
        self._deliver = deliver
        self._counts = config.counts
        self._elsewhere = config.at_work
        self._clock = clock
        self._inbox: deque[_Command] = deque()
        self._reports: dict[int, tuple[Report, float]] = {}
        self._completions: deque[Completion] = deque()
        self._lanes = CpuLanes(runner, config.lanes, self._completed, clock, vetted=config.vetted)
        self._wake = threading.Event()
        self._resting = False  # reports wake the thread
        self._stopping = False
        self._stats = snapshot(self._scheduler, 0.0)
        self._thread = threading.Thread(target=self._run, name="playhead-engine", daemon=True)
        self._turns = 0  # twice those taken; odd: one is being taken
        self._telling = threading.Lock()  # nothing is told after the last word
        self._overseer = Overseer(config.stuck_after, self._at_work, self._condemn, clock)
        self.dead: BaseException | None = None
        config.follow(lambda news: self._post(lambda _: self._intake.hear(news)))

    # -- any thread -------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread and the lanes."""
        self._lanes.start()
        self._thread.start()
        self._overseer.start()

    def stop(self) -> None:
        """Stop at the end of the running work. Utterances still live get no terminal event. Work
        that does not end within ``STOP_PATIENCE`` is left to the end of the process."""
        self._stopping = True
        self._wake.set()
        self._thread.join(STOP_PATIENCE)
        self._lanes.stop(STOP_PATIENCE)
        self._overseer.stop(STOP_PATIENCE)

    def submit(self, request: Request) -> None:
        """Speak an utterance. A refusal arrives as ``Finished`` with reason ``FAILED``."""
        self._post(lambda now: self._intake.submit(request, now), submits=request.utterance)

    def push_text(
        self, utterance: int, delta: str, *, flush: bool = False, end: bool = False
    ) -> None:
        """Add text to an utterance; ``end`` says that no more follows."""
        self._post(lambda _: self._intake.text(utterance, delta, flush, end))

    def cancel(self, utterance: int) -> None:
        """End an utterance at once."""
        self._post(lambda now: self._scheduler.cancel(utterance, now))

    def report(self, report: Report, now: float) -> None:
        """A listener's report that arrived at ``now``. The latest per utterance wins."""
        self._reports[report.utterance] = (report, now)
        if self._resting:
            self._wake.set()

    def hold(self, utterance: int, state: ListenerState | None, now: float) -> None:
        """Freeze an utterance's listener (``PAUSED``, ``SUSPENDED``), or release it."""
        self._post(lambda _: self._scheduler.hold(utterance, state, now))

    def delay(self, client: str, one_way: float) -> None:
        """The measured one-way network delay to a client, seconds."""
        self._post(lambda _: self._scheduler.delay(client, one_way))

    def forget(self, client: str) -> None:
        """A client is gone for good."""
        self._post(lambda _: self._scheduler.forget(client))

    def paused(self, seconds: float, now: float, gateway: int = 0) -> None:
        """The event loop of a gateway stood still for ``seconds`` until ``now``."""
        self._post(lambda _: self._scheduler.meters.pauses.told(gateway, seconds, now))

    tells = True  # its figures are this process's own, unlike those of an engine elsewhere

    def stats(self) -> EngineStats:
        """The state after the last turn."""
        return self._stats

    def look(self, utterances: Collection[int], see: Callable[[EnginePicture], None]) -> None:
        """Call ``see`` with a picture of now, on the engine's thread; never once it is dead."""
        self._post(lambda now: see(picture(self._scheduler, utterances, now)))

    # -- the engine's thread ----------------------------------------------------------------

    def step(self, now: float) -> float | None:
        """One turn. Returns when to take the next if nothing happens before."""
        while self._inbox:
            self._inbox.popleft().act(now)
        while self._reports:
            _, (report, arrived) = self._reports.popitem()
            self._scheduler.report(report, arrived)
        while self._completions:
            self._commit(self._completions.popleft(), now)
        plan = self._scheduler.plan(now)
        for work in plan.dispatches:
            self._lanes.dispatch(work)
        self._hand_over()
        if now >= self._stats.at + PICTURES:
            self._scheduler.tally.model = self._counts()
            self._stats = snapshot(self._scheduler, now)
        return plan.wake_at

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._wake.clear()
                now = self._clock()
                self._turns += 1
                wake_at = self.step(now)
                self._turns += 1
                self._rest(wake_at, now)
            self._stats = snapshot(self._scheduler, self._clock())
        except Exception as fault:
            # Top of the thread: a fault in the scheduler itself leaves nothing to go on with.
            log.critical("the engine died", exc_info=True)
            self._die(fault)

    def _rest(self, wake_at: float | None, turn: float) -> None:
        """Wait for the next turn, after the one at ``turn``: due at ``wake_at`` at the latest."""
        self._wait(turn + PACE if wake_at is None else min(wake_at, turn + PACE))
        if self._stats.at < turn:
            refresh = self._stats.at + PICTURES
            wake_at = refresh if wake_at is None else min(wake_at, refresh)
        self._resting = True
        if not self._reports:
            self._wait(wake_at)
        self._resting = False

    def _wait(self, until: float | None) -> None:
        if not self._inbox and not self._completions:
            self._wake.wait(None if until is None else max(0.0, until - self._clock()))

    def _hand_over(self) -> None:
        with self._telling:
            events = self._take_events()
            if events and self.dead is None:
                self._deliver(events)
        for utterance in self._scheduler.closed():
            self._intake.close(utterance)

    def _take_events(self) -> list[EngineEvent]:
        return self._intake.refusals() + self._scheduler.events()

    def _commit(self, completion: Completion, now: float) -> None:
        work = completion.dispatch
        if isinstance(completion.fault, RunnerDead):
            raise completion.fault
        if completion.fault is not None:
            self._scheduler.commit_fault(work, completion.fault, completion.service, now)
        elif completion.steps is not None:
            self._scheduler.commit_steps(work, completion.steps, completion.service, now)
        else:
            chunks = completion.chunks
            assert chunks is not None
            self._scheduler.commit_chunks(work, chunks, completion.service, now)

    def _completed(self, completion: Completion) -> None:
        self._completions.append(completion)
        self._wake.set()

    def _post(self, act: Callable[[float], None], submits: int | None = None) -> None:
        self._inbox.append(_Command(act, submits))
        self._wake.set()
        if self.dead is not None:
            self._refuse_rest(self.dead)

    def _die(self, fault: BaseException) -> None:
        """Tell everybody who is owed a terminal event; from here on all are refused."""
        with self._telling:
            if self.dead is not None:
                return
            self.dead = fault
            owed = [stream for stream in list(self._scheduler.streams()) if not stream.dead]
            events = self._take_events()
            events += [died(s.request.utterance, s.playhead.sent, fault) for s in owed]
            if events:
                self._deliver(events)
        self._refuse_rest(fault)

    def _refuse_rest(self, fault: BaseException) -> None:
        """Answer what nobody will act upon any more. Each entry is taken by one thread only."""
        while True:
            try:
                command = self._inbox.popleft()
            except IndexError:
                return
            if command.submits is not None:
                self._deliver([died(command.submits, 0, fault)])

    # -- the watchdog's thread --------------------------------------------------------------

    def _condemn(self, stuck: Stuck) -> None:
        self._stopping = True
        self._wake.set()
        self._thread.join(LAST_WORD)  # unless it is the one that hangs
        self._die(stuck)

    def _at_work(self) -> dict[str, int]:
        at_work = {**self._lanes.at_work(), **self._elsewhere()}
        turns = self._turns
        return at_work | ({"the engine's thread": turns} if turns % 2 else {})
