"""The engine's own thread: drain the inbox, commit, plan, dispatch, deliver.

:class:`Engine` is the only door. Its methods may be called from any thread and never wait; answers
come as events through one ``deliver`` call per turn.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from playhead.engine.clock import monotonic
from playhead.engine.lanes import Completion, CpuLanes
from playhead.engine.policy import LaneLimits, PolicyConfig
from playhead.engine.scheduler import Scheduler
from playhead.engine.stats import EngineStats, snapshot
from playhead.engine.types import (
    EngineEvent,
    Finish,
    Finished,
    ListenerState,
    Report,
    Request,
    Runner,
)

log = logging.getLogger(__name__)

Deliver = Callable[[list[EngineEvent]], None]


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How the engine runs."""

    lanes: LaneLimits
    policy: PolicyConfig = field(default_factory=PolicyConfig)


class Engine:
    """Speaks utterances. Start it, submit, and take events from ``deliver``.

    ``deliver`` runs on the engine's thread, at most once per turn, and must not block.
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
        self._runner = runner
        self._scheduler = Scheduler(runner.info, config.lanes, config.policy)
        self._deliver = deliver
        self._clock = clock
        self._inbox: deque[Callable[[float], None]] = deque()
        self._reports: dict[int, tuple[Report, float]] = {}
        self._completions: deque[Completion] = deque()
        self._lanes = CpuLanes(runner, config.lanes, self._completed, clock)
        self._wake = threading.Event()
        self._stopping = False
        self._refused: list[EngineEvent] = []
        self._stats = snapshot(self._scheduler, 0.0)
        self._thread = threading.Thread(target=self._run, name="playhead-engine", daemon=True)
        self.dead: BaseException | None = None

    # -- any thread -------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread and the lanes."""
        self._lanes.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop at the end of the running work. Utterances still live get no terminal event."""
        self._stopping = True
        self._wake.set()
        self._thread.join()
        self._lanes.stop()

    def submit(self, request: Request) -> None:
        """Speak an utterance. A refusal arrives as ``Finished`` with reason ``FAILED``."""
        self._post(lambda now: self._on_submit(request, now))

    def push_text(
        self, utterance: int, delta: str, *, flush: bool = False, end: bool = False
    ) -> None:
        """Add text to an utterance; ``end`` says that no more follows."""
        self._post(lambda _: self._on_text(utterance, delta, flush, end))

    def cancel(self, utterance: int) -> None:
        """End an utterance at once."""
        self._post(lambda now: self._scheduler.cancel(utterance, now))

    def report(self, report: Report, now: float) -> None:
        """A listener's report that arrived at ``now``. The latest per utterance wins."""
        self._reports[report.utterance] = (report, now)
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

    def stats(self) -> EngineStats:
        """The state after the last turn."""
        return self._stats

    # -- the engine's thread ----------------------------------------------------------------

    def step(self, now: float) -> float | None:
        """One turn. Returns when to take the next if nothing happens before."""
        while self._inbox:
            self._inbox.popleft()(now)
        while self._reports:
            report, arrived = self._reports.pop(next(iter(self._reports)))
            self._scheduler.report(report, arrived)
        while self._completions:
            self._commit(self._completions.popleft(), now)
        plan = self._scheduler.plan(now)
        for work in plan.dispatches:
            self._lanes.dispatch(work)
        self._hand_over()
        self._stats = snapshot(self._scheduler, now)
        return plan.wake_at

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._wake.clear()
                wake_at = self.step(self._clock())
                if not self._inbox and not self._completions and not self._reports:
                    timeout = None if wake_at is None else max(0.0, wake_at - self._clock())
                    self._wake.wait(timeout)
        except Exception as fault:
            # Top of the thread: a fault in the scheduler itself leaves nothing to go on with.
            log.critical("the engine died", exc_info=True)
            self.dead = fault
            self._tell_all_dead(fault)

    def _hand_over(self) -> None:
        events = self._refused + self._scheduler.events()
        self._refused = []
        if events:
            self._deliver(events)
        for utterance in self._scheduler.closed():
            self._runner.close(utterance)

    def _on_submit(self, request: Request, now: float) -> None:
        try:
            self._runner.open(request)
        except ValueError as fault:
            self._refuse(request.utterance, "bad_value", str(fault), None)
            return
        refusal = self._scheduler.submit(request, now)
        if refusal:
            self._runner.close(request.utterance)
            self._refuse(request.utterance, refusal.code, refusal.message, refusal.retry_after)

    def _refuse(self, utterance: int, code: str, message: str, retry_after: float | None) -> None:
        self._refused.append(Finished(utterance, Finish.FAILED, 0, code, message, retry_after))

    def _on_text(self, utterance: int, delta: str, flush: bool, end: bool) -> None:
        if self._scheduler.speaks(utterance):
            steppable = self._runner.push_text(utterance, delta, flush=flush, end=end)
            self._scheduler.text(utterance, steppable)

    def _commit(self, completion: Completion, now: float) -> None:
        work = completion.dispatch
        if completion.fault is not None:
            self._scheduler.commit_fault(work, completion.fault, completion.service)
        elif completion.steps is not None:
            self._scheduler.commit_steps(work, completion.steps, completion.service)
        else:
            chunks = completion.chunks
            assert chunks is not None
            self._scheduler.commit_chunks(work, chunks, completion.service, now)

    def _completed(self, completion: Completion) -> None:
        self._completions.append(completion)
        self._wake.set()

    def _post(self, command: Callable[[float], None]) -> None:
        self._inbox.append(command)
        self._wake.set()

    def _tell_all_dead(self, fault: BaseException) -> None:
        message = f"the engine stopped: {type(fault).__name__}"
        self._deliver(
            [
                Finished(
                    stream.request.utterance,
                    Finish.FAILED,
                    stream.playhead.sent,
                    "engine_error",
                    message,
                )
                for stream in self._scheduler.streams()
                if not stream.dead
            ]
        )
