"""Options of the sockets that clients are served on."""

import asyncio
import fcntl
import socket
import sys
import termios
from typing import Final, Protocol, cast

from playhead.gateway.settings import Settings

UNDECIPHERED: Final = 4 * 1024
"""Bytes that may wait to be deciphered while a connection reads no more. Then all is done at once,
with what the kernel has kept: some 16 KiB. Event loops would let 256 KiB wait."""

TELLS_UNACKNOWLEDGED: Final = sys.platform == "linux"


def unacknowledged(sock: socket.socket | None) -> int | None:
    """Bytes sent that the peer's machine has not acknowledged (SIOCOUTQ, tcp(7)); None on systems
    that do not tell."""
    if not TELLS_UNACKNOWLEDGED or sock is None:
        return None
    answer = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
    return int.from_bytes(answer, sys.byteorder)


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


class _Deciphering(Protocol):
    """What TLS transports have in both event loops."""

    def set_read_buffer_limits(self, high: int) -> None: ...


def bound_deciphering(transport: asyncio.BaseTransport) -> None:
    """Let little wait that has not been deciphered. Does nothing where nothing is."""
    if transport.get_extra_info("ssl_object") is not None:
        cast(_Deciphering, transport).set_read_buffer_limits(UNDECIPHERED)


def set_up(transport: asyncio.BaseTransport, settings: Settings) -> None:
    """Set the options of a connection that has been accepted."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        set_socket_options(sock, settings)
    bound_deciphering(transport)
