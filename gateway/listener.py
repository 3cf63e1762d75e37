"""The listening socket."""

import socket
from typing import Final

RECEIVE_BUFFER: Final = 16 * 1024
"""Client messages are small; what one client can throw at the loop in one read is not."""
BACKLOG: Final = 512


def bind(host: str, port: int) -> socket.socket:
    """A listening TCP socket.

    Raises ``OSError`` when the address is not this machine's or the port is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host.strip("[]"), port), family=family, backlog=BACKLOG)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    listener.setblocking(False)
    return listener
