"""Options of the sockets that clients are served on."""

import fcntl
import socket
import sys
import termios
from typing import Final

from playhead.gateway.settings import Settings

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
