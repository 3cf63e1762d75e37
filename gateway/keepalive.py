"""One timer that pings all connections: a task for each would cost more than its session.

Lines stand in slots of time; each tick takes the slots that have come. Event loop only.
"""

import asyncio
from collections.abc import Iterable
from typing import Final, Protocol

from playhead.engine import clock

TICK: Final = 0.05
STOOD_STILL: Final = 1.0
"""Seconds that a timer is late from which the whole machine, or this process, stood still: what
came meanwhile is in the sockets and must be read before anybody is found to be silent."""


class Beating(Protocol):
    """A connection that is pinged."""

    slot: int

    def beat(self, now: float) -> float | None:
        """Do what is due; the time (monotonic seconds) of the next beat, or None."""


class Keepalive:
    """Calls :meth:`Beating.beat` of each connection when it has asked for it, or a tick later."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._slots: dict[int, set[Beating]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._done = 0  # the last slot that was taken
        self._ticked = 0.0  # when that was

    def enter(self, line: Beating, due: float) -> None:
        """Call ``line`` at ``due``."""
        if self._timer is None:
            self._ticked = clock.monotonic()
            self._done = int(self._ticked / TICK)
            self._timer = self._loop.call_later(TICK, self._tick)
        line.slot = max(int(due / TICK), self._done) + 1
        self._slots.setdefault(line.slot, set()).add(line)

    def leave(self, line: Beating) -> None:
        """Call it no more."""
        found = self._slots.get(line.slot)
        if found is not None:
            found.discard(line)

    def _tick(self) -> None:
        now = clock.monotonic()
        stood_still = now - self._ticked >= STOOD_STILL
        self._ticked = now
        last = int(now / TICK)
        passed: Iterable[int] = range(self._done + 1, last + 1)
        if len(self._slots) < last - self._done:  # the machine was suspended, or nearly so
            passed = sorted(slot for slot in self._slots if slot <= last)
            self._done = last
        for slot in passed:
            self._done = max(self._done, slot)
            for line in self._slots.pop(slot, ()):
                due = now + STOOD_STILL if stood_still else line.beat(now)
                if due is not None:
                    self.enter(line, due)
        self._timer = self._loop.call_later(TICK, self._tick) if self._slots else None
