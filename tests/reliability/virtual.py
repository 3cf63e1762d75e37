"""Hub, sessions and engine under a virtual clock: no thread, no socket, no wait.

The event loop jumps from one timer to the next; the engine takes its turns on it; lanes are timers.
Everything else is the code that serves.
"""

import asyncio
import heapq
from collections.abc import Callable
from typing import Any

from playhead.engine import clock
from playhead.engine.lanes import CpuLanes
from playhead.engine.loop import Engine, EngineConfig
from playhead.engine.plan import Dispatch
from playhead.engine.types import EngineEvent, Runner

TURN = 0.0005
"""Seconds between a wish and the engine's turn: its thread's own pace."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Never waits: when nothing is ready, it is the next timer's time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        scheduled: list[Any] = self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
        if not self._ready and scheduled:  # type: ignore[attr-defined]
            self.now = max(self.now, scheduled[0]._when)
        super()._run_once()  # type: ignore[misc]


def run_virtually(case: Any) -> Any:
    """Run a coroutine on a virtual loop, whose clock is everybody's while it runs."""
    loop, before = VirtualLoop(), clock.monotonic
    clock.monotonic = loop.time
    try:
        return loop.run_until_complete(case)
    finally:
        clock.monotonic = before
        loop.close()


class VirtualEngine(Engine):
    """The engine, with its turns on the loop. ``cost`` gives the seconds of a dispatch."""

    def __init__(
        self,
        runner: Runner,
        config: EngineConfig,
        deliver: Callable[[list[EngineEvent]], None],
        cost: Callable[[Dispatch], float],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        super().__init__(runner, config, deliver, clock=self._loop.time)
        self._due: asyncio.TimerHandle | None = None
        self._cost = cost
        self._worker = CpuLanes(runner, config.lanes, self._completed, self._loop.time)
        self._resting = True
        # A wish for a turn and a dispatch are timers here.
        self._wake.set = lambda: self._wish(self._loop.time() + TURN)  # type: ignore[method-assign]
        self._lanes.dispatch = self._dispatch  # type: ignore[method-assign]

    def start(self) -> None:
        """No threads."""

    def stop(self) -> None:
        """None to stop."""

    @property
    def scheduler(self) -> Any:
        return self._scheduler

    def _wish(self, when: float) -> None:
        if self._due is not None:
            if self._due.when() <= when:
                return
            self._due.cancel()
        self._due = self._loop.call_at(when, self._turn)

    def _turn(self) -> None:
        self._due = None
        now = self._loop.time()
        wake_at = self.step(now)
        if wake_at is not None:
            self._wish(max(wake_at, now + TURN))

    def _dispatch(self, work: Dispatch) -> None:
        self._loop.call_later(self._cost(work), lambda: self._completed(self._worker._run(work)))
