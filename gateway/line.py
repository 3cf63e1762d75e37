"""What one WebSocket connection is whatever protocol it speaks: messages in, frames out, a pulse.

What is sent goes to the transport at once, and is queued here while that takes nothing. The queue
is bounded: speech is held as soon as the socket has taken nothing for a while or half of the bound
is filled, and the connection ends when that did not help. No task waits for any of it: ten
thousand connections that do nothing should cost little more than their sockets.
"""

import asyncio
import logging
from collections import deque
from typing import Final, Protocol

from playhead.engine import clock
from playhead.gateway.inbox import INTERNAL_ERROR
from playhead.gateway.keepalive import STOOD_STILL
from playhead.gateway.peer import POLICY_VIOLATION, Peer
from playhead.gateway.pulse import Pulse
from playhead.gateway.settings import Settings

log: Final = logging.getLogger("playhead.gateway.connection")

SLOW_CONSUMER: Final = "slow_consumer"
"""Why a peer that does not read is closed."""
BYTES_PER_SAMPLE: Final = {"pcm_f32le": 4, "pcm_s16le": 2}
BASE64_GROWTH: Final = 4 / 3
BACKLOG_SECONDS: Final = 5.0
"""Unsent audio that one connection may have whatever its format: fast engines make a listener's
whole lead at once, and 48 kHz floats need more bytes for it than the plain bound allows."""


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


class _Nobody:
    """Who speaks over a line that has ended: it and its user would hold each other for ever."""

    def take(self, frame: bytes | str, now: float) -> None: ...

    def hold(self, held: bool, now: float) -> None: ...

    def delay(self, one_way: float) -> None: ...

    def gave_up(self, now: float) -> None: ...


_NOBODY: Final = _Nobody()


class Line:
    """Frames in and out of one peer, until either side is done. Event loop only."""

    def __init__(self, peer: Peer, settings: Settings, user: LineUser) -> None:
        self.peer = peer
        self.closing = False
        self.slot = 0  # of the keepalive
        self._user = user
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._queue: deque[bytes | str] | None = None  # while the transport takes nothing
        self._queued = 0  # bytes in the queue
        self._position = 0
        self._farewell: tuple[int, str] | None = None
        self._bound = settings.max_unsent
        self._blocked_timer: asyncio.TimerHandle | None = None
        self._unsent_before = 0
        self._progress_at = 0.0
        self._look_at = 0.0  # when that is looked at next
        self._held = False
        self._pulse = Pulse(settings.ping_interval, settings.ping_timeout)

    async def run(self) -> None:
        """Serve until the connection is closed. Raises nothing for a peer that vanishes."""
        self.peer.deliver_to(self)
        now = clock.monotonic()
        self._pulse.start(now)
        self.peer.commons.pacemaker.enter(self, self._pulse.due(now))
        try:
            await self.peer.wait_closed()
        finally:
            self.peer.commons.pacemaker.leave(self)
            self._stop_watching()
            self.closing = True
            self._user = _NOBODY

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
        """Send a frame, or queue it. ``extra``: beside the bound, which grows by it."""
        if self.closing:
            return
        self._position += len(frame) + _header(len(frame))
        if extra:
            self._bound += len(frame)
        if self._queue is None and self._takes:
            self.peer.write(frame)
        else:
            self._queue = self._queue or deque()
            self._queue.append(frame)
            self._queued += len(frame)
        self._pulse.speaks()
        backlog = self.backlog
        if backlog > self._bound:
            self._give_up()
        elif backlog > self._bound // 2:
            self._hold(True)

    def close(self, code: int, reason: str) -> None:
        """Close once everything queued has been written."""
        if not self.closing:
            self.closing = True
            self._farewell = (code, reason)
            self._flush()

    def allow(self, size: int) -> None:
        """Raise the bound of unsent bytes to ``size``."""
        self._bound = max(self._bound, size)
        self.peer.max_unsent = max(self.peer.max_unsent, self._bound)

    @property
    def backlog(self) -> int:
        """Bytes queued here and in the transport."""
        return self._queued + self.peer.unsent

    @property
    def _takes(self) -> bool:
        return self.peer.open and not self.peer.paused

    def _flush(self) -> None:
        while self._queue and self._takes:
            frame = self._queue.popleft()
            self._queued -= len(frame)
            self.peer.write(frame)
        if self._queue and self.peer.open:
            return
        self._queue, self._queued = None, 0
        if self._farewell is not None:
            self.peer.hang_up(*self._farewell)

    # -- reading ----------------------------------------------------------------------------

    def take(self, message: bytes | str) -> None:
        """A message has come."""
        if not self.closing:
            self._user.take(message, self.peer.read_at)

    # -- peers that do not read ---------------------------------------------------------------

    def blocked(self) -> None:
        """The transport takes no more; watch for how long."""
        self._progress_at = clock.monotonic()
        self._unsent_before = self.peer.unsent
        self._watch(self._settings.slow_hold)

    def unblocked(self) -> None:
        """The transport takes more again."""
        self._stop_watching()
        try:
            self._flush()
        # Top of a callback: a writer that fails must not leave a connection that looks alive.
        except Exception:
            log.exception("connection %s failed", self.peer.id)
            self.peer.fail(INTERNAL_ERROR, "internal_error")
        self._release_if_drained()

    def _watch(self, delay: float) -> None:
        self._stop_watching()
        self._look_at = clock.monotonic() + delay
        self._blocked_timer = self._loop.call_later(delay, self._look)

    def _look(self) -> None:
        now = clock.monotonic()
        if (late := now - self._look_at) >= STOOD_STILL:
            self._progress_at += late
        self._hold(True)
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
        if self._held and self.backlog <= self._bound // 4 and self._blocked_timer is None:
            self._hold(False)

    def _hold(self, held: bool) -> None:
        self._held = held
        self._user.hold(held, clock.monotonic())

    def _give_up(self) -> None:
        log.info("connection %s does not read: closed", self.peer.id)
        self.closing = True
        self._queue, self._queued = None, 0
        self._stop_watching()
        self.peer.fail(POLICY_VIOLATION, SLOW_CONSUMER)
        self._user.gave_up(clock.monotonic())

    # -- keepalive --------------------------------------------------------------------------

    def beat(self, now: float) -> float | None:
        """Ping when it is time, and end a connection whose pong does not come."""
        if not self.peer.open:
            return None
        if self._pulse.lost(now):
            self.peer.fail(INTERNAL_ERROR, "keepalive ping timeout")
            return None
        if (payload := self._pulse.ping(now)) is not None:
            self.peer.write_ping(payload)
        return self._pulse.due(now)

    def pong(self, payload: bytes) -> None:
        """A pong has come: half of the round trip bounds the one-way delay (RFC 6455, 5.5.2)."""
        one_way = self._pulse.pong(payload, self.peer.read_at)
        if one_way is not None:
            self._user.delay(one_way)


def _header(size: int) -> int:
    """Bytes before an unmasked frame's payload (RFC 6455, 5.2)."""
    if size < 126:
        return 2
    return 4 if size < 65_536 else 10


def audio_bytes(codec: str, sample_rate: int) -> int:
    """Bytes that a connection may leave unsent in that format, base64 included."""
    width = BYTES_PER_SAMPLE.get(codec, 1) * BASE64_GROWTH
    return int(BACKLOG_SECONDS * sample_rate * width)
