"""One WebSocket connection: a reader that never waits for the engine, a writer, a keepalive.

What the session sends is queued here and written by one task. The queue is bounded: speech is
held as soon as the socket has taken nothing for a while or half of the bound is filled, and the
connection ends when that did not help.
"""

import asyncio
import contextlib
import logging
from collections import deque
from dataclasses import dataclass
from typing import Final

from playhead.engine import clock
from playhead.gateway.effects import Close, Send
from playhead.gateway.host import SessionHost
from playhead.gateway.hub import Hub
from playhead.gateway.messages import Hello, Ready, ServerMessage
from playhead.gateway.peer import FAREWELL, POLICY_VIOLATION, Peer
from playhead.gateway.protocol import ProtocolError, Wire
from playhead.gateway.registry import new_secret
from playhead.gateway.session import refuse_resume
from playhead.gateway.settings import Settings
from websockets.exceptions import ConnectionClosed

log: Final = logging.getLogger("playhead.gateway.connection")

SLOW_CONSUMER: Final = "slow_consumer"
INTERNAL_ERROR: Final = 1011
READ_BURST: Final = 8
"""Messages read before others get a turn: queued ones are had without waiting."""
BACKLOG_SECONDS: Final = 5.0
"""Unsent audio that one connection may have whatever its format: fast engines make a listener's
whole lead at once, and 48 kHz floats need more bytes for it than the plain bound allows."""
BYTES_PER_SAMPLE: Final = {"pcm_f32le": 4, "pcm_s16le": 2}
BASE64_GROWTH: Final = 4 / 3
ROUND_TRIPS: Final = 8
FIRST_PING: Final = 0.05


@dataclass(frozen=True, slots=True)
class _CloseAfter:
    code: int
    reason: str


class Connection:
    """Serves one peer until either side is done. Event loop only."""

    def __init__(self, peer: Peer, hub: Hub, wire: Wire, settings: Settings) -> None:
        self._peer = peer
        self._hub = hub
        self._wire = wire
        self._settings = settings
        self._host: SessionHost | None = None
        self._queue: deque[bytes | str | _CloseAfter] = deque()
        self._queued = 0  # bytes in the queue
        self._bound = settings.max_unsent
        self._wake = asyncio.Event()
        self._replaying = False  # a resumed session sends what it kept, at once
        self._closing = False
        self._blocked_timer: asyncio.TimerHandle | None = None
        self._unsent_before = 0
        self._progress_at = 0.0
        self._round_trips: deque[float] = deque(maxlen=ROUND_TRIPS)

    async def run(self) -> None:
        """Serve until the connection is closed. Raises nothing for a peer that vanishes."""
        self._peer.flow = self
        now = clock.monotonic()
        self._host = self._hub.open(self, now)
        tasks = [asyncio.create_task(self._write()), asyncio.create_task(self._keep_alive())]
        for task in tasks:
            task.add_done_callback(self._task_ended)
        try:
            await self._read()
        finally:
            for task in tasks:
                task.cancel()
            self._stop_watching()
            if self._host is not None:
                self._host.detach(self, clock.monotonic())

    @property
    def _attached(self) -> SessionHost | None:
        """The session, unless a newer connection has taken it over."""
        if self._host is not None and self._host.outlet is self:
            return self._host
        return None

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        """A writer or keepalive that fails must not leave a connection that looks alive."""
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.error("connection %s failed", self._peer.id, exc_info=fault)
            self._peer.fail(INTERNAL_ERROR, "internal_error")

    # -- outlet of the session ----------------------------------------------------------------

    def send(self, message: ServerMessage) -> None:
        """Queue a message for the writer."""
        if self._closing:
            return
        if isinstance(message, Ready):
            self._allow(message)
        for frame in self._wire.encode(message):
            self._queue.append(frame)
            self._queued += len(frame)
            if self._replaying:
                self._bound += len(frame)
        self._wake.set()
        if self._backlog > self._bound:
            self._give_up()
        elif self._backlog > self._bound // 2:
            self._hold(True)

    def close(self, code: int, reason: str) -> None:
        """Close once everything queued has been written."""
        if not self._closing:
            self._closing = True
            self._queue.append(_CloseAfter(code, reason))
            self._wake.set()

    # -- reading ----------------------------------------------------------------------------

    async def _read(self) -> None:
        first = True
        read = 0
        while True:
            try:
                frame = await self._peer.recv()
            except ConnectionClosed:
                return
            if self._closing:
                continue
            first = self._take(frame, first)
            read += 1
            if read % READ_BURST == 0:
                await asyncio.sleep(0)

    def _take(self, frame: bytes | str, first: bool) -> bool:
        """Give a frame to the session; whether the next may still be the first message."""
        assert self._host is not None
        now = self._peer.read_at
        try:
            message = self._wire.decode_client(frame)
        except ProtocolError as error:
            self._host.refuse(error, now)
            return first
        if first and isinstance(message, Hello):
            self._greet(message, now)
        else:
            self._host.receive(message, now)
        return False

    def _greet(self, hello: Hello, now: float) -> None:
        assert self._host is not None
        self._wire.binary_audio = hello.binary_audio
        if hello.resume is None:
            self._host.receive(hello, now)
            return
        self._hub.abandon(self._host)
        self._host = None
        host = self._hub.registry.get(hello.resume.session)
        if host is not None:
            self._replaying = True
            if host.resume(hello.resume, new_secret(), self, now):
                self._host = host
            self._replaying = False
            return
        stone = self._hub.registry.tombstone(hello.resume.session, now)
        for effect in refuse_resume(hello.resume, stone, now):
            if isinstance(effect, Send):
                self.send(effect.message)
            elif isinstance(effect, Close):
                self.close(effect.code, effect.reason)
        self._hub.metrics.refused("resume_failed")

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
                await self._peer.send(item)
                self._release_if_drained()

    async def _shut(self, code: int, reason: str) -> None:
        patience = FAREWELL if code == POLICY_VIOLATION else self._settings.close_timeout
        try:
            async with asyncio.timeout(patience):
                await self._peer.close(code, reason)
        except TimeoutError:
            self._peer.transport.abort()

    @property
    def _backlog(self) -> int:
        return self._queued + self._peer.unsent

    def _allow(self, ready: Ready) -> None:
        width = BYTES_PER_SAMPLE.get(ready.codec, 1) * BASE64_GROWTH
        self._bound = max(self._bound, int(BACKLOG_SECONDS * ready.sample_rate * width))
        self._peer.max_unsent = max(self._peer.max_unsent, self._bound)

    # -- peers that do not read ---------------------------------------------------------------

    def blocked(self) -> None:
        """The transport takes no more; watch for how long."""
        self._progress_at = clock.monotonic()
        self._unsent_before = self._peer.unsent
        self._watch(self._settings.slow_hold)

    def unblocked(self) -> None:
        """The transport takes more again."""
        self._stop_watching()
        self._release_if_drained()

    def _watch(self, delay: float) -> None:
        self._stop_watching()
        self._blocked_timer = self._hub.loop.call_later(delay, self._look)

    def _look(self) -> None:
        now = clock.monotonic()
        self._hold(True)
        if self._peer.unsent < self._unsent_before:
            self._progress_at = now
        self._unsent_before = self._peer.unsent
        if now - self._progress_at >= self._settings.slow_close:
            self._give_up()
            return
        left = self._progress_at + self._settings.slow_close - now
        self._watch(min(max(left, 0.001), self._settings.slow_close / 4))

    def _stop_watching(self) -> None:
        if self._blocked_timer is not None:
            self._blocked_timer.cancel()
            self._blocked_timer = None

    def _hold(self, held: bool) -> None:
        if self._attached is not None:
            self._attached.blocked(held, clock.monotonic())

    def _release_if_drained(self) -> None:
        if self._backlog <= self._bound // 4 and self._blocked_timer is None:
            self._hold(False)

    def _give_up(self) -> None:
        log.info("connection %s does not read: closed", self._peer.id)
        self._hub.metrics.refused(SLOW_CONSUMER)
        self._closing = True
        self._queue.clear()
        self._queued = 0
        self._stop_watching()
        self._peer.fail(POLICY_VIOLATION, SLOW_CONSUMER)
        if self._host is not None:
            self._host.detach(self, clock.monotonic())

    # -- keepalive --------------------------------------------------------------------------

    async def _keep_alive(self) -> None:
        wait = FIRST_PING
        with contextlib.suppress(ConnectionClosed):
            while True:
                await asyncio.sleep(wait)
                if not await self._ping():
                    self._peer.fail(INTERNAL_ERROR, "keepalive ping timeout")
                    return
                wait = min(self._settings.ping_interval, max(1.0, wait * 4))

    async def _ping(self) -> bool:
        """One round trip; its half is an upper bound of the one-way delay (RFC 6455, 5.5.2).

        The library's own latency counts in the event loop's milliseconds, too coarse for a
        local network.
        """
        sent = clock.monotonic()
        pong = await self._peer.ping()
        try:
            async with asyncio.timeout(self._settings.ping_timeout):
                await pong
        except TimeoutError:
            return False
        self._round_trips.append(max(0.0, self._peer.read_at - sent))
        if self._attached is not None:
            # Queued audio delays a ping, nothing makes it early: the least one is the best.
            self._attached.network_delay(min(self._round_trips) / 2)
        return True
