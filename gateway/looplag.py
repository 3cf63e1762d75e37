"""How late the event loop runs its callbacks.

A timer is due every ``interval``; the time by which it fires late is the delay that every
socket of this process suffers. Whatever keeps the interpreter busy shows here first, and so does a
process that was stopped. The engine hears of each delay that is the worst of late, since listeners
do: their leads cover it from then on.

A chore that keeps everybody waiting has its place here too, between one sample and the next: what
it takes is told as any other delay.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from playhead.engine import clock
from playhead.engine.pauses import Worst

INTERVAL: Final = 0.1


class LoopLag:
    """Measures loop lag (seconds) and hands each sample to ``observe``; those that are worse than
    what is remembered also to ``paused``, with the time. ``chore`` is done after each sample; it
    returns the seconds that the loop stood still for it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        observe: Callable[[float], None],
        paused: Callable[[float, float], None],
        chore: Callable[[], float] = lambda: 0.0,
        *,
        interval: float = INTERVAL,
        now: Callable[[], float] = clock.monotonic,
    ) -> None:
        self._loop = loop
        self._observe = observe
        self._paused = paused
        self._chore = chore
        self._worst = Worst()
        self._interval = interval
        self._now = now
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin measuring; one sample per interval until :meth:`stop`."""
        self._arm()

    def stop(self) -> None:
        """Measure no more. May be called twice."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        self._due = self._now() + self._interval
        self._timer = self._loop.call_later(self._interval, self._fire)

    def _fire(self) -> None:
        # uvloop's timers have millisecond steps and may fire a little early.
        now = self._now()
        try:
            self._note(max(0.0, now - self._due), now)
            if kept := self._chore():
                self._note(kept, self._now())
        finally:
            self._arm()

    def _note(self, late: float, now: float) -> None:
        self._observe(late)
        if self._worst.note(late, now):
            self._paused(late, now)
