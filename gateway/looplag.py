"""How late the event loop runs its callbacks.

A timer is due every ``interval``; the time by which it fires late is the delay that every
socket of this process suffers. Whatever keeps the interpreter busy shows here first.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from playhead.engine import clock

INTERVAL: Final = 0.1


class LoopLag:
    """Measures loop lag (seconds) and hands each sample to ``observe``."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        observe: Callable[[float], None],
        *,
        interval: float = INTERVAL,
        now: Callable[[], float] = clock.monotonic,
    ) -> None:
        self._loop = loop
        self._observe = observe
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
        self._observe(max(0.0, self._now() - self._due))
        self._arm()
