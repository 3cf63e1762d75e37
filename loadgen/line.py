"""A TCP connection of a virtual client, read by callbacks: no task is woken for what arrives.

Plain connections are read from the socket itself, for the kernel's stamp of each arrival
(stamp.py). Behind TLS a stamp cannot be told from the read, and the read's own time counts.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Sequence
from typing import Any, Protocol, cast

from playhead.engine.clock import monotonic, wall
from playhead.loadgen.stamp import CONTROL, TIMESTAMPNS, arrival, known_here

_READ = 256 * 1024


class Receiver(Protocol):
    """Takes what a line brings. Times on :func:`monotonic`."""

    def received(self, data: bytes, at: float) -> None:
        """Bytes that arrived ``at``."""

    def settled(self, now: float) -> None:
        """All that had arrived by ``now`` has been given."""

    def closed(self, reason: str) -> None:
        """Nothing more comes; ``reason`` is empty when the other end closed in good order."""


class Line(Protocol):
    """One open connection. ``stamped``: arrivals are the kernel's, not the moments of reading."""

    stamped: bool

    def write(self, data: bytes) -> None:
        """Send, or keep until it can be sent."""

    def poll(self) -> None:
        """Give what has arrived now, and then ``settled``."""

    def abort(self) -> None:
        """Close at once; the receiver is told nothing more but what it polls for."""


class PlainLine:
    """Over a connected, non-blocking socket."""

    def __init__(self, sock: socket.socket, receiver: Receiver) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = sock
        self._receiver = receiver
        self._unsent = b""
        self._open = True
        self._refused: OSError | None = None  # why nothing can be sent any more
        self.stamped = False
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if known_here():
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, TIMESTAMPNS, 1)
                self.stamped = True
        self._loop.add_reader(sock.fileno(), self.poll)

    def write(self, data: bytes) -> None:
        """See :class:`Line`."""
        if not self._open:
            return
        if not self._unsent:
            data = data[self._send(data) :]
            if data and self._open:
                self._loop.add_writer(self._socket.fileno(), self._writable)
        self._unsent += data

    def poll(self) -> None:
        """See :class:`Line`."""
        # Before the read: what it does not find arrives after this.
        now = monotonic()
        while self._open and self._read():
            pass
        self._receiver.settled(now)

    def abort(self) -> None:
        """See :class:`Line`."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._socket.fileno())
            self._loop.remove_writer(self._socket.fileno())
            self._socket.close()

    def _read(self) -> bool:
        """Whether there may be more."""
        try:
            data, control, _, _ = self._socket.recvmsg(_READ, CONTROL)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._end(error)
            return False
        if not data:
            self._end(self._refused)
            return False
        self._receiver.received(data, arrival(control, monotonic(), wall()))
        return len(data) == _READ

    def _send(self, data: bytes) -> int:
        try:
            return self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            # What the other end said before it went away is still to be read, and then its end.
            self._refused = error
            return len(data)

    def _writable(self) -> None:
        self._unsent = self._unsent[self._send(self._unsent) :]
        if not self._unsent:
            self._loop.remove_writer(self._socket.fileno())

    def _end(self, error: OSError | None) -> None:
        self.abort()
        self._receiver.closed("" if error is None else told(error))


class SecureLine(asyncio.Protocol):
    """Over TLS, as the event loop does it."""

    def __init__(self, receiver: Receiver) -> None:
        self.stamped = False
        self._receiver = receiver
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        if self._transport is not None:
            now = monotonic()
            self._receiver.received(data, now)
            self._receiver.settled(now)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        if self._transport is not None:
            self._transport = None
            self._receiver.closed(told(exc) if isinstance(exc, OSError) else "")

    def write(self, data: bytes) -> None:
        """See :class:`Line`."""
        if self._transport is not None:
            self._transport.write(data)

    def poll(self) -> None:
        """See :class:`Line`."""
        self._receiver.settled(monotonic())

    def abort(self) -> None:
        """See :class:`Line`."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()


async def connect(host: str, port: int, secure: bool, receiver: Receiver) -> Line:
    """Dial the first address that answers. Raises ``OSError``."""
    loop = asyncio.get_running_loop()
    if secure:
        _, line = await loop.create_connection(lambda: SecureLine(receiver), host, port, ssl=True)
        return line
    failed: OSError | None = None
    for family, kind, number, _, address in await _addresses(host, port):
        sock = socket.socket(family, kind, number)
        sock.setblocking(False)
        try:
            await loop.sock_connect(sock, address)
            return PlainLine(sock, receiver)
        except OSError as error:
            sock.close()
            failed = error
        except BaseException:
            sock.close()
            raise
    raise failed or OSError(f"{host} has no address")


async def _addresses(host: str, port: int) -> Sequence[tuple[Any, Any, int, str, Any]]:
    loop = asyncio.get_running_loop()
    return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def told(error: OSError) -> str:
    """Why, in the system's words: event loops put addresses and numbers in their place."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error) or "the connection dropped"
