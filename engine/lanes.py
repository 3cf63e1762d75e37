"""Lanes as worker threads over the processor's cores.

The scheduler binds late: it hands work over only when a worker is free, so urgent work never stands
in a queue behind background work, and there is nothing to preempt.
"""

import contextlib
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue

from playhead.engine import conform
from playhead.engine.plan import Dispatch
from playhead.engine.policy import LaneLimits
from playhead.engine.sound import all_checked
from playhead.engine.types import Lane, Pcm, Runner, StepResult

log = logging.getLogger(__name__)

NICENESS = 5
"""Workers yield to the thread that serves sockets, which needs microseconds at a time."""

LmResults = list[StepResult]
ChunkResults = list[Pcm | BaseException]


@dataclass(frozen=True, slots=True)
class Completion:
    """A dispatch and what came of it; ``service`` in seconds. ``fault``: the whole batch failed."""

    dispatch: Dispatch
    service: float
    steps: LmResults | None = None
    chunks: ChunkResults | None = None
    fault: BaseException | None = None


def cpu_limits(cores: int) -> LaneLimits:
    """Lanes for ``cores`` cores: one worker each, background never on the last free one."""
    return LaneLimits(
        workers=cores,
        slots={Lane.LM: cores, Lane.URGENT: cores, Lane.BACKGROUND: cores},
        batch={Lane.LM: 1, Lane.URGENT: 4, Lane.BACKGROUND: 4},
        reserve=1,
    )


class CpuLanes:
    """Runs dispatches on worker threads and calls ``done`` from them, once per dispatch."""

    def __init__(
        self,
        runner: Runner,
        limits: LaneLimits,
        done: Callable[[Completion], None],
        clock: Callable[[], float],
        *,
        vetted: bool = False,
    ) -> None:
        """``vetted``: results of steps have been held to what was asked where they were made."""
        self.limits = limits
        self._vetted = vetted
        self._runner = runner
        self._info = runner.info
        self._done = done
        self._clock = clock
        self._work: SimpleQueue[Dispatch | None] = SimpleQueue()
        self._pieces: list[tuple[Lane, int] | None] = [None] * limits.workers
        self._threads = [
            threading.Thread(target=self._serve, args=(i,), name=f"playhead-lane-{i}", daemon=True)
            for i in range(limits.workers)
        ]

    def start(self) -> None:
        """Start the workers."""
        for thread in self._threads:
            thread.start()

    def stop(self, patience: float) -> None:
        """Let running work end and the workers with it. Those that are still at work after
        ``patience`` seconds are left to the end of the process."""
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join(patience)
            if thread.is_alive():
                log.error("%s does not end", thread.name)
                patience = 0.0

    def dispatch(self, work: Dispatch) -> None:
        """Hand over work; never blocks."""
        self._work.put(work)

    def at_work(self) -> dict[str, int]:
        """The workers that are at work, each with the number of what it is at. Any thread."""
        pieces = enumerate(tuple(self._pieces))
        return {f"worker {i} ({p[0]} lane)": p[1] for i, p in pieces if p is not None}

    def _serve(self, worker: int) -> None:
        _yield_to_others()
        piece = 0
        while (work := self._work.get()) is not None:
            piece += 1
            self._pieces[worker] = (work.lane, piece)
            completion = self._run(work)
            self._pieces[worker] = None
            self._done(completion)

    def _run(self, work: Dispatch) -> Completion:
        started = self._clock()
        try:
            if work.lane is Lane.LM:
                steps = self._runner.step(work.steps)
                if not self._vetted:
                    steps = conform.stepped(work.steps, steps, self._info.step_frames)
                return Completion(work, self._clock() - started, steps=steps)
            chunks = conform.decoded(
                work.chunks, self._runner.decode(work.chunks), self._info.frame_samples
            )
            chunks = all_checked(chunks)
            return Completion(work, self._clock() - started, chunks=chunks)
        except Exception as fault:
            # The runner isolates streams; what gets here broke the whole batch, and only that.
            log.exception("a %s batch failed", work.lane)
            return Completion(work, self._clock() - started, fault=fault)


def _yield_to_others() -> None:
    """Lower this thread's priority where the platform knows thread priorities (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
