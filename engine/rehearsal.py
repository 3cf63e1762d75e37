"""What speech costs on this machine, measured before anybody listens.

A few utterances are spoken to nobody by the lanes that will serve, several at a time, so that cores
and memory are shared as they will be. Admission so knows from the first request what fits.
"""

import logging
import math
from collections.abc import Callable
from queue import Empty, SimpleQueue

from playhead.engine.capacity import Capacity
from playhead.engine.intake import Intake
from playhead.engine.lanes import Completion, CpuLanes
from playhead.engine.lead import LeadLimits
from playhead.engine.policy import LaneLimits, PolicyConfig
from playhead.engine.scheduler import Scheduler
from playhead.engine.types import Finish, Request, Runner

log = logging.getLogger(__name__)

TEXT = "Good morning, everybody. These two sentences are only thought, and nobody will hear them."

EACH = 2
"""Utterances per worker: enough for batches, as a crowd makes them."""

ROUNDS = 6
"""How often, where a model says so little of the text that once does not tell enough."""

PATIENCE = 2.0
"""Seconds after which a rehearsal is given up: the machine is then measured as it serves."""

FAR = 60.0
"""Seconds of lead: nobody plays."""


def rehearse(
    runner: Runner, limits: LaneLimits, clock: Callable[[], float], patience: float = PATIENCE
) -> Capacity:
    """Speak :data:`TEXT` a few times and return what it took. Blocks while it does, for about
    ``patience`` seconds at most. A model that fails at it is left to fail for those who ask it."""
    policy = PolicyConfig(lead=LeadLimits(fixed=FAR), max_utilisation=math.inf)
    scheduler = Scheduler(runner.info, limits, policy)
    intake = Intake(runner, scheduler)
    done: SimpleQueue[Completion] = SimpleQueue()
    lanes = CpuLanes(runner, limits, done.put, clock)
    lanes.start()
    until = clock() + patience
    each = EACH * limits.workers
    for first in range(-ROUNDS * each, 0, each):
        numbers = range(first, first + each)
        for number in numbers:
            intake.submit(Request(number, "", runner.info.voices[0]), clock())
            intake.text(number, TEXT, flush=True, end=True)
        while scheduler.live and clock() < until:
            for work in scheduler.plan(clock()).dispatches:
                lanes.dispatch(work)
            if not scheduler.dispatcher.running or not _take(scheduler, done, clock, until):
                break  # nothing is made of this text, or it does not come back
        for number in numbers:
            scheduler.cancel(number, clock())
        if scheduler.capacity.known or scheduler.tally.finished[Finish.FAILED] or clock() >= until:
            break
    lanes.stop(max(0.0, until - clock()))
    for number in scheduler.closed():
        intake.close(number)
    if not scheduler.capacity.known:
        log.warning("the rehearsal did not come to its end: costs are measured as speech is served")
    return scheduler.capacity


def _take(
    scheduler: Scheduler, done: "SimpleQueue[Completion]", clock: Callable[[], float], until: float
) -> bool:
    """Commit the next piece of work that comes back; False when none does in time."""
    try:
        completion = done.get(timeout=max(0.0, until - clock()))
    except Empty:
        return False
    work, service = completion.dispatch, completion.service
    if completion.steps is not None:
        scheduler.commit_steps(work, completion.steps, service, clock())
    elif completion.chunks is not None:
        scheduler.commit_chunks(work, completion.chunks, service, clock())
    else:
        fault = completion.fault or RuntimeError("no answer")
        scheduler.commit_fault(work, fault, service, clock())
    scheduler.events()
    return True
