"""The socket under one WebSocket connection: options, bounds, and when it blocks.

What a peer does not read must not pile up here. The kernel keeps little (small send buffer,
low unsent mark), the transport is bounded, and a blocked or freed transport is told to whoever
feeds it, so that no audio is made for a client that does not read. What a peer sends is worked
through in small pieces, so that others get their turns between, and counted: a flood ends its
connection.
"""

import asyncio
from functools import partial
from typing import Any, Final, Protocol, cast

from playhead.engine import clock
from playhead.gateway.accepts import Pace
from playhead.gateway.access import Grant
from playhead.gateway.admission import address_key
from playhead.gateway.commons import Commons
from playhead.gateway.dialects.base import Dialect
from playhead.gateway.flood import FrameBudget
from playhead.gateway.inbox import QUEUE, Inbox
from playhead.gateway.letting_go import UNUSED, let_go
from playhead.gateway.sockets import set_up, unacknowledged
from playhead.gateway.turns import Turns
from websockets.asyncio.messages import Assembler
from websockets.asyncio.server import Server, ServerConnection
from websockets.frames import Frame, Opcode
from websockets.protocol import Event, State
from websockets.server import ServerProtocol

POLICY_VIOLATION: Final = 1008
TOO_BIG: Final = 1009
PIECE: Final = 1024
"""Bytes worked through at once: at most 170 frames, a fraction of a millisecond."""
SMALL_READ: Final = 2048
"""Bytes read at once that honest clients send: a few reports, a piece of text."""
INPUTRATE: Final = 256 * 1024
"""Bytes a second that larger reads are slowed to."""
FAREWELL: Final = 1.0
"""Seconds that a peer which broke the rules has to take its close frame."""
MOST_IGNORED: Final = 64 * 1024
"""Bytes that are read, to find the answer to a close frame, of a peer that broke the rules."""

RATE, PIECES, OVER = 2, 4, 8  # why reading is paused; and QUEUE


class FlowListener(Protocol):
    """Who a connection speaks to."""

    def take(self, message: bytes | str) -> None:
        """A message has come."""

    def pong(self, payload: bytes) -> None:
        """A pong has come."""

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
        commons: Commons,
        **kwargs: Any,
    ) -> None:
        super().__init__(protocol, server, **kwargs)
        self.commons = commons
        self.read_at = 0.0  # monotonic seconds of the latest bytes read
        self.address = ""  # key of the client's address
        self.flow: FlowListener | None = None  # see :meth:`deliver_to`
        self.dialect: Dialect | None = None  # None: the native protocol
        self.max_unsent = commons.settings.max_unsent
        self.grant: Grant | None = None  # from the moment it is let in
        self.pace = Pace.SERVE
        self._budget = FrameBudget()
        self._pauses = 0
        self._rest = b""  # read, and not yet worked through
        self._inbox: Inbox | None = None
        self.failed = False
        self._ignored = 0  # bytes that came after that
        self.slot = 0  # of the pacemaker, which ends what the peer does not; 0: nothing to end

    @property
    def turns(self) -> Turns:
        """By which its messages are taken."""
        return self.commons.turns

    # -- the transport ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection and set its socket up."""
        super().connection_made(transport)
        # Reading has several reasons to pause, so all pass through one gate.
        self.recv_messages.pause = partial(self.pause, QUEUE)
        self.recv_messages.resume = partial(self.resume, QUEUE)
        name = transport.get_extra_info("peername")
        self.address = address_key(str(name[0]) if name else "")
        set_up(transport, self.commons.settings)
        self.commons.arrivals.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the connection out; what was read before is still taken."""
        self._drain()
        self.commons.arrivals.leave(self)
        if self.grant is not None:
            self.grant.leave()
        self.commons.pacemaker.leave(self)
        super().connection_lost(exc)
        self.flow = self._inbox = None
        let_go(self.protocol, self.recv_messages)

    def eof_received(self) -> None:
        """The peer sends no more."""
        self._drain()
        super().eof_received()

    def admit(self, grant: Grant) -> None:
        """This connection is served under ``grant``, which counts it until it is gone."""
        if self.protocol.state is State.CLOSED:
            return  # it went away while it waited for its turn, and nobody would count it out
        self.grant = grant
        grant.enter()

    # -- reading ------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Stamp what was read, and work through it piece by piece."""
        self.read_at = clock.monotonic()
        if len(data) > SMALL_READ:
            self.pause(RATE)
            self.loop.call_later(len(data) / INPUTRATE, self.resume, RATE)
        if self.failed:
            self._ignored += len(data)
            if self._ignored > MOST_IGNORED:
                self.pause(OVER)  # its close frame has long been sent
        if self._rest or len(data) > PIECE:
            self._rest += data
            self._next_piece()
        else:
            self._feed(data)

    def _next_piece(self) -> None:
        if not self._rest or self._pauses & QUEUE:
            return
        piece, self._rest = self._rest[:PIECE], self._rest[PIECE:]
        self._feed(piece)
        if self._rest:
            self.pause(PIECES)
            self.loop.call_soon(self._next_piece)
        else:
            self.resume(PIECES)

    def _feed(self, data: bytes) -> None:
        super().data_received(data)
        if self.request is not None and self.response is None and self.protocol.eof_sent:
            self.protocol.state = State.CLOSED  # else the library answers, after its own end
            self.transport.close()
        # The library answers pings by itself; unread pongs would pile up without bound.
        if self.unsent > self.max_unsent:
            self.transport.abort()
        if self.protocol.state is State.CLOSING:
            self._await_end(self.commons.settings.close_timeout)

    def _drain(self) -> None:
        """Nothing more will be read: work through what has been."""
        rest, self._rest = self._rest, b""
        if rest:
            super().data_received(rest)
        if self._inbox is not None:
            self._inbox.drain()

    def process_event(self, event: Event) -> None:
        """Pass an event on, unless it is one too many (RFC 6455, 5.4 and 5.5)."""
        if not isinstance(event, Frame) or event.opcode is Opcode.CLOSE:
            self.commons.arrivals.asked(self)
            super().process_event(event)
            return
        if self.failed:
            return
        if event.opcode in (Opcode.PING, Opcode.PONG):
            # Pongs answer our own pings or nobody's; both kinds cost the same.
            why = self._budget.control(self.read_at)
        else:
            why = self._budget.data(self.read_at, final=event.fin)
        if why is not None:
            self.fail(TOO_BIG if why == "too_many_fragments" else POLICY_VIOLATION, why)
        elif event.opcode is Opcode.PONG and self.flow is not None:
            self.flow.pong(bytes(event.data))
        elif event.opcode is Opcode.PING or self._inbox is None:
            super().process_event(event)
        else:
            self._inbox.add(event)

    def deliver_to(self, flow: FlowListener) -> None:
        """Give all messages to ``flow`` from now on, those that came before first."""
        self.flow = flow
        early, self.recv_messages = self.recv_messages.frames.queue, cast(Assembler, UNUSED)
        self._inbox = Inbox(self, flow.take)
        while early:
            self._inbox.add(early.popleft())
        self.resume(QUEUE)

    # -- writing ------------------------------------------------------------------------------

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
    def open(self) -> bool:
        """Whether messages can be sent."""
        return self.protocol.state is State.OPEN

    @property
    def unsent(self) -> int:
        """Bytes in the transport that the kernel has not taken."""
        return self.transport.get_write_buffer_size()

    @property
    def unacknowledged(self) -> int | None:
        """Bytes in the kernel that the peer's machine has not acknowledged; None on systems that
        do not tell."""
        closing = self.transport.is_closing()
        return None if closing else unacknowledged(self.transport.get_extra_info("socket"))

    def write(self, message: bytes | str) -> None:
        """Send a message at once, however full the transport is. Needs ``open``."""
        if isinstance(message, str):
            self.protocol.send_text(message.encode())
        else:
            self.protocol.send_binary(message)
        self.send_data()

    def write_ping(self, payload: bytes) -> None:
        """Send a ping. Needs ``open``."""
        self.protocol.send_ping(payload)
        self.send_data()

    def hang_up(self, code: int, reason: str) -> None:
        """Begin the closing handshake; cut the transport when the peer does not end it in time."""
        if self.open:
            self.protocol.send_close(code, reason)
            self.send_data()
            patience = FAREWELL if code == POLICY_VIOLATION else self.commons.settings.close_timeout
            self._await_end(patience)

    def fail(self, code: int, reason: str) -> None:
        """Close without waiting; cut the transport when the peer does not take part in time."""
        self.failed = True
        if self.open:
            self.protocol.fail(code, reason)
            self.send_data()
            self._await_end(FAREWELL)

    def _await_end(self, patience: float) -> None:
        # No timer of its own: a whole house that leaves would need 570 bytes more for each.
        if not self.slot:
            self.commons.pacemaker.enter(self, clock.monotonic() + patience)

    def beat(self, now: float) -> None:
        """The peer has had its time to end the connection."""
        self.transport.abort()

    # -- pauses -------------------------------------------------------------------------------

    def pause(self, reason: int) -> None:
        """Read nothing, for one more reason."""
        if not self._pauses:
            self.transport.pause_reading()
        self._pauses |= reason

    def resume(self, reason: int) -> None:
        """A reason has gone."""
        if not self._pauses & reason:
            return
        self._pauses &= ~reason
        if reason == QUEUE and self._rest:
            self.loop.call_soon(self._next_piece)
        if not self._pauses and not self.transport.is_closing():
            self.transport.resume_reading()
