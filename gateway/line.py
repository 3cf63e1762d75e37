"""What one WebSocket connection is whatever protocol it speaks: a reader that never waits for the
engine, a writer, a keepalive.

What is sent is queued here and written by one task. The queue is bounded: speech is held as soon
as the socket has taken nothing for a while or half of the bound is filled, and the connection
ends when that did not help.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final, Protocol

from playhead.engine import clock
from playhead.gateway.peer import FAREWELL, POLICY_VIOLATION, Peer
from playhead.gateway.settings import Settings
from websockets.exceptions import ConnectionClosed

log: Final = logging.getLogger("playhead.gateway.connection")

INTERNAL_ERROR: Final = 1011
READ_BURST: Final = 8
"""Messages read before others get a turn: queued ones are had without waiting."""
ROUND_TRIPS: Final = 8
FIRST_PING: Final = 0.05
SLOW_CONSUMER: Final = "slow_consumer"
"""Why a peer that does not read is closed."""
BYTES_PER_SAMPLE: Final = {"pcm_f32le": 4, "pcm_s16le": 2}
BASE64_GROWTH: Final = 4 / 3
BACKLOG_SECONDS: Final = 5.0
"""Unsent audio that one connection may have whatever its format: fast engines make a listener's
whole lead at once, and 48 kHz floats need more bytes for it than the plain bound allows."""


@dataclass(frozen=True, slots=True)
class _CloseAfter:
    code: int
    reason: str


class LineUser(Protocol):
    """Who speaks over a line."""

    def take(self, frame: bytes | str, now: float) -> None:
        """A frame that was read at ``now``."""

    def hold(self, held: bool, now: float) -> None:
        """The peer takes nothing, or does again. Repeated calls mean nothing new."""

    def delay(self, one_way: float) -> None:
        """A bound of the one-way network delay, seconds."""

    def gave_up(self, now: float) -> None:
        """The peer was closed for not reading."""


class Line:
    """Frames in and out of one peer, until either side is done. Event loop only."""

    def __init__(self, peer: Peer, settings: Settings, user: LineUser) -> None:
        self.peer = peer
        self.closing = False
        self._user = user
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._queue: deque[bytes | str | _CloseAfter] = deque()
        self._queued = 0  # bytes in the queue
        self._position = 0
        self._bound = settings.max_unsent
        self._wake = asyncio.Event()
        self._blocked_timer: asyncio.TimerHandle | None = None
        self._unsent_before = 0
        self._progress_at = 0.0
        self._round_trips: deque[float] = deque(maxlen=ROUND_TRIPS)

    async def run(self) -> None:
        """Serve until the connection is closed. Raises nothing for a peer that vanishes."""
        self.peer.flow = self
        tasks = [self._task(self._write()), self._task(self._keep_alive())]
        try:
            await self._read()
        finally:
            for task in tasks:
                task.cancel()
            self._stop_watching()

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        task.add_done_callback(self._task_ended)
        return task

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        """A writer or keepalive that fails must not leave a connection that looks alive."""
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.error("connection %s failed", self.peer.id, exc_info=fault)
            self.peer.fail(INTERNAL_ERROR, "internal_error")

    # -- sending ----------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """Bytes of all frames so far, with their headers, as they go over the wire."""
        return self._position

    def delivered(self) -> int | None:
        """How many of them the peer's machine has acknowledged; None where nobody can tell."""
        kernel = self.peer.unacknowledged
        return None if kernel is None else self._position - self.backlog - kernel

    def send(self, frame: bytes | str, *, extra: bool = False) -> None:
        """Queue a frame for the writer. ``extra``: beside the bound, which grows by it."""
        if self.closing:
            return
        self._queue.append(frame)
        self._queued += len(frame)
        self._position += len(frame) + _header(len(frame))
        if extra:
            self._bound += len(frame)
        self._wake.set()
        if self.backlog > self._bound:
            self._give_up()
        elif self.backlog > self._bound // 2:
            self._user.hold(True, clock.monotonic())

    def close(self, code: int, reason: str) -> None:
        """Close once everything queued has been written."""
        if not self.closing:
            self.closing = True
            self._queue.append(_CloseAfter(code, reason))
            self._wake.set()

    def allow(self, size: int) -> None:
        """Raise the bound of unsent bytes to ``size``."""
        self._bound = max(self._bound, size)
        self.peer.max_unsent = max(self.peer.max_unsent, self._bound)

    @property
    def backlog(self) -> int:
        """Bytes queued here and in the transport."""
        return self._queued + self.peer.unsent

    # -- reading ----------------------------------------------------------------------------

    async def _read(self) -> None:
        read = 0
        while True:
            try:
                frame = await self.peer.recv()
            except ConnectionClosed:
                return
            if self.closing:
                continue
            self._user.take(frame, self.peer.read_at)
            read += 1
            if read % READ_BURST == 0:
                await asyncio.sleep(0)

    # -- writing ----------------------------------------------------------------------------

    async def _write(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                while not self._queue:
                    self._wake.clear()
                    await self._wake.wait()
                item = self._queue.popleft()
                if isinstance(item, _CloseAfter):
                    await self._shut(item.code, item.reason)
                    return
                self._queued -= len(item)
                await self.peer.send(item)
                self._release_if_drained()

    async def _shut(self, code: int, reason: str) -> None:
        patience = FAREWELL if code == POLICY_VIOLATION else self._settings.close_timeout
        try:
            async with asyncio.timeout(patience):
                await self.peer.close(code, reason)
        except TimeoutError:
            self.peer.transport.abort()

    # -- peers that do not read ---------------------------------------------------------------

    def blocked(self) -> None:
        """The transport takes no more; watch for how long."""
        self._progress_at = clock.monotonic()
        self._unsent_before = self.peer.unsent
        self._watch(self._settings.slow_hold)

    def unblocked(self) -> None:
        """The transport takes more again."""
        self._stop_watching()
        self._release_if_drained()

    def _watch(self, delay: float) -> None:
        self._stop_watching()
        self._blocked_timer = self._loop.call_later(delay, self._look)

    def _look(self) -> None:
        now = clock.monotonic()
        self._user.hold(True, now)
        if self.peer.unsent < self._unsent_before:
            self._progress_at = now
        self._unsent_before = self.peer.unsent
        if now - self._progress_at >= self._settings.slow_close:
            self._give_up()
            return
        left = self._progress_at + self._settings.slow_close - now
        self._watch(min(max(left, 0.001), self._settings.slow_close / 4))

    def _stop_watching(self) -> None:
        if self._blocked_timer is not None:
            self._blocked_timer.cancel()
            self._blocked_timer = None

    def _release_if_drained(self) -> None:
        if self.backlog <= self._bound // 4 and self._blocked_timer is None:
            self._user.hold(False, clock.monotonic())

    def _give_up(self) -> None:
        log.info("connection %s does not read: closed", self.peer.id)
        self.closing = True
        self._queue.clear()
        self._queued = 0
        self._stop_watching()
        self.peer.fail(POLICY_VIOLATION, SLOW_CONSUMER)
        self._user.gave_up(clock.monotonic())

    # -- keepalive --------------------------------------------------------------------------

    async def _keep_alive(self) -> None:
        wait = FIRST_PING
        with contextlib.suppress(ConnectionClosed):
            while True:
                await asyncio.sleep(wait)
                if not await self._ping():
                    self.peer.fail(INTERNAL_ERROR, "keepalive ping timeout")
                    return
                wait = min(self._settings.ping_interval, max(1.0, wait * 8))

    async def _ping(self) -> bool:
        """One round trip; its half is an upper bound of the one-way delay (RFC 6455, 5.5.2).

        The library's own latency counts in the event loop's milliseconds, too coarse for a
        local network.
        """
        sent = clock.monotonic()
        pong = await self.peer.ping()
        try:
            async with asyncio.timeout(self._settings.ping_timeout):
                await pong
        except TimeoutError:
            return False
        self._round_trips.append(max(0.0, self.peer.read_at - sent))
        # Queued audio delays a ping, nothing makes it early: the least one is the best.
        self._user.delay(min(self._round_trips) / 2)
        return True


def _header(size: int) -> int:
    """Bytes before an unmasked frame's payload (RFC 6455, 5.2)."""
    if size < 126:
        return 2
    return 4 if size < 65_536 else 10


def audio_bytes(codec: str, sample_rate: int) -> int:
    """Bytes that a connection may leave unsent in that format, base64 included."""
    width = BYTES_PER_SAMPLE.get(codec, 1) * BASE64_GROWTH
    return int(BACKLOG_SECONDS * sample_rate * width)
