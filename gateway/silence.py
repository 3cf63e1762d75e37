"""Reports on behalf of a client that sends none, from what its machine acknowledges."""

import asyncio
from collections.abc import Callable
from typing import Final

from playhead.engine import clock
from playhead.gateway.delivery import Delivery
from playhead.gateway.line import Line
from playhead.gateway.messages import (
    Audio,
    Cancelled,
    Done,
    Failed,
    Hello,
    PlaybackReport,
    ServerMessage,
)

INTERVAL: Final = 0.2
"""Seconds between looks at a socket: the density of an honest listener's reports."""


class SilentListener:
    """Watches one session's audio on its line. Event loop only.

    ``report`` takes what the client could have said by itself.
    """

    def __init__(
        self, line: Line, hello: Hello, report: Callable[[PlaybackReport, float], None]
    ) -> None:
        rate = hello.sample_rate * hello.playback_rate
        self._line = line
        self._report = report
        self._delivery = Delivery(rate, hello.start_threshold / 1_000)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def sent(self, message: ServerMessage, now: float) -> None:
        """The session's ``message`` has just been put on the line."""
        match message:
            case Audio(epoch=epoch, samples=samples, final=final):
                end = self._line.position
                self._delivery.on_audio(epoch, samples, end, final=final, now=now)
                if self._timer is None:
                    self._timer = self._loop.call_later(INTERVAL, self._tick)
            case Cancelled(epoch=epoch) | Failed(epoch=epoch):
                self._delivery.cut(epoch, now)
            case Done(epoch=epoch):
                self._delivery.ended(epoch)

    def look(self, now: float) -> None:
        """Report as of now. Call it before anything that asks where the listener is."""
        position = self._line.delivered() if self._delivery.busy else None
        if position is None:
            return
        self._delivery.on_delivered(position, now)
        report = self._delivery.report(now)
        if report is not None:
            self._report(report, now)

    def stop(self) -> None:
        """The line is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = None
        self.look(clock.monotonic())
        if self._delivery.busy and not self._line.closing:
            self._timer = self._loop.call_later(INTERVAL, self._tick)
