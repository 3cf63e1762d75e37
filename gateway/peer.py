"""The socket under one WebSocket connection: options, bounds, and when it blocks.

What a peer does not read must not pile up here. The kernel keeps little (small send buffer,
low unsent mark), the transport is bounded, and a blocked or freed transport is told to whoever
feeds it, so that no audio is made for a client that does not read.
"""

import asyncio
import fcntl
import socket
import sys
import termios
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from playhead.engine import clock
from playhead.gateway.access import Grant
from playhead.gateway.admission import ConnectionCaps, address_key
from playhead.gateway.dialects.base import Dialect
from playhead.gateway.settings import Settings
from websockets.asyncio.server import Server, ServerConnection
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import Event, State
from websockets.server import ServerProtocol

CONTROL_RATE: Final = 20.0
CONTROL_BURST: Final = 40.0
POLICY_VIOLATION: Final = 1008
SMALL_READ: Final = 2048
"""Bytes read at once that honest clients send: a few reports, a piece of text."""
INPUT_RATE: Final = 256 * 1024
"""Bytes a second that larger reads are slowed to: a read can hold thousands of tiny frames, and
the loop works through all of them before anybody else has a turn."""
MAX_WAITING_FRAMES: Final = 2000
"""Frames read and not yet taken: a session's whole burst (limits.frame_burst). More is a flood
that the session need not work through to be sure."""
TELLS_UNACKNOWLEDGED: Final = sys.platform == "linux"
FAREWELL: Final = 1.0
"""Seconds that a peer which broke the rules has to take its close frame."""


class FlowListener(Protocol):
    """Told when the transport takes no more, and when it does again."""

    def blocked(self) -> None:
        """Unsent bytes passed the write limit."""

    def unblocked(self) -> None:
        """They have been taken."""


class Peer(ServerConnection):
    """A server connection that knows its bounds. Attributes are for the event loop only."""

    def __init__(
        self,
        protocol: ServerProtocol,
        server: Server,
        *,
        settings: Settings,
        caps: ConnectionCaps,
        **kwargs: Any,
    ) -> None:
        super().__init__(protocol, server, **kwargs)
        self.read_at = 0.0  # monotonic seconds of the latest bytes read
        self.address = ""  # key of the client's address
        self.flow: FlowListener | None = None
        self.dialect: Dialect | None = None  # None: the native protocol
        self.max_unsent = settings.max_unsent
        self.grant: Grant | None = None  # from the moment it is let in
        self._settings = settings
        self._caps = caps
        self._pauses: set[str] = set()
        self._control_tokens = CONTROL_BURST
        self._control_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection and set its socket up."""
        super().connection_made(transport)
        # Reading has two reasons to pause, so both pass through one gate.
        self.recv_messages.pause = partial(self._pause, "queue")
        self.recv_messages.resume = partial(self._resume, "queue")
        name = transport.get_extra_info("peername")
        self.address = address_key(str(name[0]) if name else "")
        self._caps.enter(self.address)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            set_socket_options(sock, self._settings)
        if self._caps.flooded:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the connection out."""
        self._caps.leave(self.address)
        if self.grant is not None:
            self.grant.leave()
        super().connection_lost(exc)

    def admit(self, grant: Grant) -> None:
        """This connection is served under ``grant``, which counts it until it is gone."""
        if self.protocol.state is State.CLOSED:
            return  # it went away while it waited for its turn, and nobody would count it out
        self.grant = grant
        grant.enter()

    def data_received(self, data: bytes) -> None:
        """Stamp what was read, then let the protocol have it."""
        self.read_at = clock.monotonic()
        super().data_received(data)
        if len(data) > SMALL_READ:
            self._pause("rate")
            self.loop.call_later(len(data) / INPUT_RATE, self._resume, "rate")
        if len(self.recv_messages.frames) > MAX_WAITING_FRAMES:
            self.fail(POLICY_VIOLATION, "message_flood")
        # The library answers pings by itself; unread pongs would pile up without bound.
        if self.unsent > self.max_unsent:
            self.transport.abort()

    def process_event(self, event: Event) -> None:
        """Pass an event on; a flood of control frames ends the connection (RFC 6455, 5.5)."""
        if not isinstance(event, Request) and _is_control(event) and not self._control_allowed():
            self.fail(POLICY_VIOLATION, "control_flood")
            return
        super().process_event(event)

    def pause_writing(self) -> None:
        """The transport took enough."""
        super().pause_writing()
        if self.flow is not None:
            self.flow.blocked()

    def resume_writing(self) -> None:
        """The transport takes more."""
        super().resume_writing()
        if self.flow is not None:
            self.flow.unblocked()

    @property
    def unsent(self) -> int:
        """Bytes in the transport that the kernel has not taken."""
        return self.transport.get_write_buffer_size()

    @property
    def unacknowledged(self) -> int | None:
        """Bytes in the kernel that the peer's machine has not acknowledged (SIOCOUTQ, tcp(7));
        None on systems that do not tell."""
        sock = self.transport.get_extra_info("socket")
        if not TELLS_UNACKNOWLEDGED or sock is None or self.transport.is_closing():
            return None
        answer = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
        return int.from_bytes(answer, sys.byteorder)

    def fail(self, code: int, reason: str) -> None:
        """Close without waiting; cut the transport when the peer does not take part in time."""
        if self.protocol.state is State.OPEN:
            self.protocol.fail(code, reason)
            self.send_data()
            self.loop.call_later(FAREWELL, self.transport.abort)

    def _pause(self, reason: str) -> None:
        if not self._pauses:
            self.transport.pause_reading()
        self._pauses.add(reason)

    def _resume(self, reason: str) -> None:
        self._pauses.discard(reason)
        if not self._pauses and not self.transport.is_closing():
            self.transport.resume_reading()

    def _control_allowed(self) -> bool:
        earned = (self.read_at - self._control_at) * CONTROL_RATE
        self._control_tokens = min(CONTROL_BURST, self._control_tokens + earned) - 1
        self._control_at = self.read_at
        return self._control_tokens >= 0


def _is_control(event: Event) -> bool:
    # Pongs answer our own pings or nobody's; both kinds cost the same.
    return isinstance(event, Frame) and event.opcode in (Opcode.PING, Opcode.PONG)


def set_socket_options(sock: socket.socket, settings: Settings) -> None:
    """Small kernel queues, no Nagle delay, and an end to peers that answer nothing.

    Without these the kernel hides a minute of speech behind a client that does not read.
    """
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer)
    for name, value in (
        ("TCP_NOTSENT_LOWAT", settings.notsent_lowat),
        ("TCP_USER_TIMEOUT", int(1000 * settings.ping_timeout)),
    ):
        option = vars(socket).get(name)  # not on every platform
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


PeerFactory = Callable[..., Peer]
