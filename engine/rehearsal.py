"""What speech costs on this machine, measured before anybody listens.

A few utterances are spoken to nobody by the lanes that will serve, several at a time, so that cores
and memory are shared as they will be. Admission so knows from the first request what fits.
"""

import logging
import math
from collections.abc import Callable
from queue import Empty, SimpleQueue

from playhead.engine.answers import Hear, News, unasked
from playhead.engine.capacity import Capacity, batches
from playhead.engine.intake import Intake
from playhead.engine.lanes import Completion, CpuLanes
from playhead.engine.lead import LeadLimits
from playhead.engine.policy import LaneLimits, PolicyConfig
from playhead.engine.scheduler import Scheduler
from playhead.engine.types import Finish, Lane, Request, Runner, RunnerDead

log = logging.getLogger(__name__)

TEXT = "Good morning, everybody. These two sentences are only thought, and nobody will hear them."

EACH = 2
"""Utterances per worker: enough for batches, as a crowd makes them."""

ROUNDS = 6
"""How often, where a model says so little of the text that once does not tell enough."""

PATIENCE = 2.0
"""Seconds after which a rehearsal is given up: the machine is then measured as it serves."""

CROWDS = (2, 16, 128)
"""Utterances at a time for a lane that works in batches: few, some and many show what each of them
adds to a batch."""

PATIENCE_BATCHED = 6.0
"""Seconds after which that is given up."""

FAR = 60.0
"""Seconds of lead: nobody plays."""

ENDS_WITHIN = 5.0
"""Seconds in which work ends that is under way when a rehearsal is given up."""

ANSWERED_WITHIN = 1.0
"""Seconds in which a model in another process says that a text can be spoken."""


def crowds(limits: LaneLimits, most: int) -> tuple[int, ...]:
    """How many utterances to speak at a time, one crowd after the other; ``most`` fit."""
    if not batches(limits, Lane.LM):
        return (EACH * limits.workers,) * ROUNDS
    return tuple(min(crowd, limits.batch[Lane.LM], most) for crowd in CROWDS)


def rehearse(
    runner: Runner,
    limits: LaneLimits,
    clock: Callable[[], float],
    patience: float | None = None,
    most: int = 64,
    follow: Callable[[Hear], None] = unasked,
) -> Capacity:
    """Speak :data:`TEXT` a few times, to no more than ``most`` at a time, and return what it took.
    Blocks while it does, for about ``patience`` seconds at most. A model that fails at it is left
    to fail for those who ask it. ``follow`` is handed who hears what the model answers later."""
    in_batches = batches(limits, Lane.LM)
    patience = patience or (PATIENCE_BATCHED if in_batches else PATIENCE)
    stage = _Stage(runner, limits, clock, clock() + patience, follow)
    numbers = range(0)
    for crowd in crowds(limits, most):
        numbers = range(numbers.start - crowd, numbers.start)
        stage.speak(numbers)
        if stage.over or (stage.capacity.known and not in_batches):
            break
    stage.close()
    if not stage.capacity.known:
        log.warning("the rehearsal did not come to its end: costs are measured as speech is served")
    return stage.capacity


class _Stage:
    """A scheduler and lanes without an engine, until ``until``."""

    def __init__(
        self,
        runner: Runner,
        limits: LaneLimits,
        clock: Callable[[], float],
        until: float,
        follow: Callable[[Hear], None],
    ) -> None:
        policy = PolicyConfig(
            lead=LeadLimits(fixed=FAR),
            max_live=limits.batch[Lane.LM] + 64,
            max_utilisation=math.inf,
        )
        self._scheduler = Scheduler(runner.info, limits, policy)
        self._voice = runner.info.voices[0]
        self._intake = Intake(runner, self._scheduler)
        self._done: SimpleQueue[Completion | News] = SimpleQueue()
        self._lanes = CpuLanes(runner, limits, self._done.put, clock)
        self._clock = clock
        self._until = until
        self._answers_later = follow is not unasked
        follow(self._done.put)
        self._lanes.start()

    @property
    def capacity(self) -> Capacity:
        """What was measured."""
        return self._scheduler.capacity

    @property
    def over(self) -> bool:
        """It takes too long, or what is spoken fails."""
        failed = self._scheduler.tally.finished[Finish.FAILED] > 0
        return failed or self._clock() >= self._until

    def speak(self, numbers: range) -> None:
        """An utterance of each number at a time, to its end if it comes in time."""
        scheduler, clock = self._scheduler, self._clock
        for number in numbers:
            self._intake.submit(Request(number, "", self._voice), clock())
            self._intake.text(number, TEXT, flush=True, end=True)
        while scheduler.live and clock() < self._until:
            for work in scheduler.plan(clock()).dispatches:
                self._lanes.dispatch(work)
            if not self._take():
                break  # nothing is made of this text, or it does not come back
        for number in numbers:
            scheduler.cancel(number, clock())
        self._free()

    def close(self) -> None:
        """Stop the lanes. What they are at is waited for: the model keeps places for it, and those
        who come would find them taken."""
        self._lanes.stop(ENDS_WITHIN)
        while not self._done.empty():
            found = self._done.get()
            if isinstance(found, Completion):
                _commit(self._scheduler, found, self._clock())
        self._free()

    def _free(self) -> None:
        for number in self._scheduler.closed():
            self._intake.close(number)

    def _take(self) -> bool:
        """Take the next piece of work that comes back, or answer; False when none does in time."""
        patience = self._until - self._clock()
        if not self._scheduler.dispatcher.running:
            patience = min(patience, ANSWERED_WITHIN if self._answers_later else 0.0)
        try:
            found = self._done.get(timeout=max(0.0, patience))
        except Empty:
            return False
        if isinstance(found, RunnerDead):
            return False  # the engine will be told
        if isinstance(found, Completion):
            _commit(self._scheduler, found, self._clock())
        else:
            self._intake.hear(found)
        return True


def _commit(scheduler: Scheduler, completion: Completion, now: float) -> None:
    work, service = completion.dispatch, completion.service
    if completion.steps is not None:
        scheduler.commit_steps(work, completion.steps, service, now)
    elif completion.chunks is not None:
        scheduler.commit_chunks(work, completion.chunks, service, now)
    else:
        fault = completion.fault or RuntimeError("no answer")
        scheduler.commit_fault(work, fault, service, now)
    scheduler.events()
