"""Waking at an exact moment: the event loop's own timers have steps of a millisecond.

On Linux one timer of the kernel (timerfd_create(2), CLOCK_BOOTTIME) wakes the loop like a
socket does. Elsewhere the last millisecond is waited for in short turns, which keeps a core busy.
"""

import asyncio
import contextlib
import ctypes
import heapq
import os
import sys
from collections.abc import AsyncIterator

from playhead.engine.clock import monotonic

_CLOCK_BOOTTIME = 7  # the clock that engine/clock.py reads
_ABSOLUTE = 1  # TFD_TIMER_ABSTIME
_FINE = 0.0015


_LIBC = ctypes.CDLL(None)


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Timer(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class Alarm:
    """Event loop only. Use inside of :meth:`running`."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0
        self._file: int | None = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Alarm"]:
        """Holds the kernel's timer, where there is one."""
        self._file = _open()
        if self._file is None:
            yield self
            return
        loop = asyncio.get_running_loop()
        loop.add_reader(self._file, self._ring)
        try:
            yield self
        finally:
            loop.remove_reader(self._file)
            os.close(self._file)
            self._file = None

    async def wait_until(self, at: float) -> None:
        """Until ``at`` on :func:`monotonic`, within the time that the loop takes for a turn."""
        if at <= monotonic():
            return
        if self._file is None:
            await asyncio.sleep(max(0.0, at - _FINE - monotonic()))
            while monotonic() < at:
                await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._waiting, (at, self._count, future))
        if self._waiting[0][2] is future:
            _set(self._file, at)
        await future

    def _ring(self) -> None:
        assert self._file is not None, "the reader is there only while the file is open"
        with contextlib.suppress(BlockingIOError):
            os.read(self._file, 8)
        while self._waiting and self._waiting[0][0] <= monotonic():
            _, _, future = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(None)
        if self._waiting:
            _set(self._file, self._waiting[0][0])


def _open() -> int | None:
    """A timer that does not run yet; ``None`` where the system has none."""
    if sys.platform != "linux":
        return None
    file: int = _LIBC.timerfd_create(_CLOCK_BOOTTIME, os.O_NONBLOCK | os.O_CLOEXEC)
    return file if file >= 0 else None


def _set(file: int, at: float) -> None:
    nanoseconds = max(1, round(at * 1e9))  # 0 would stop it
    value = _Timespec(*divmod(nanoseconds, 1_000_000_000))
    timer = _Timer(_Timespec(0, 0), value)
    if _LIBC.timerfd_settime(file, _ABSOLUTE, ctypes.byref(timer), None):
        raise OSError("the kernel's timer cannot be set")
