"""The end of listening: whoever has come is let in, and whoever comes now finds nobody.

A socket that listens has connections that nobody has accepted yet, and the kernel resets them when
it is closed: their clients were connected and hear nothing. So no further one is begun first.
"""

import asyncio
import ctypes
import logging
import socket
import struct
import sys
from collections.abc import Callable
from typing import Final

from playhead.engine import clock
from playhead.gateway.access_tls_records import shaking

log: Final = logging.getLogger("playhead.gateway.last_call")

LOOK: Final = 0.005
BRIEF: Final = 0.2
"""Seconds for handshakes of TCP that have begun: a long way there and back. No socket tells of
them, and the kernel's table of all connections (/proc/net/tcp) takes 16 to 57 ms to read."""
QUEUE: Final = 5.0
"""Seconds for accepting all, of which uvloop accepts one in each turn."""
HEARD: Final = 1.0
"""Seconds for handshakes of TLS that have begun and for first requests."""
_TURNS: Final = 8  # of a loop, from accepting a connection to answering what it has brought along

_SO_ATTACH_FILTER: Final = 26  # asm-generic/socket.h; Python has no name for it
_TCPI_UNACKED: Final = slice(24, 28)  # struct tcp_info, linux/tcp.h
_NO_SYN: Final = b"".join(
    struct.pack("=HBBI", *instruction)
    for instruction in (  # classic BPF, linux/filter.h; a packet begins with its TCP header
        (0x30, 0, 0, 13),  # A = flags
        (0x54, 0, 0, 0x12),  # A &= SYN | ACK
        (0x15, 0, 1, 0x02),  # SYN alone?
        (0x06, 0, 0, 0),  # drop
        (0x06, 0, 0, 0xFFFF_FFFF),  # take all of it: who is accepted now inherits the filter
    )
)


def never() -> bool:
    """Of an end that nobody hurries."""
    return False


async def last_call(listener: socket.socket, hurried: Callable[[], bool] = never) -> None:
    """Return when whoever connected has been accepted by the running loop, which listens. The next
    thing to do is to close ``listener``. ``hurried``: only for those who are in its queue already.

    On Linux nobody can connect from now on: what asks to is left without an answer, asks again
    after a second, and is refused by then, or meets a successor that listens at the same port. The
    caller must be the only owner: whoever holds a copy of ``listener`` (``dup``, ``fork``) hears of
    nobody any more, and while it is open, its share of a group (``SO_REUSEPORT``) is not served.
    """
    if listener.fileno() < 0:
        return
    _turn_away(listener)
    await _while(lambda: queued(listener) or not hurried(), BRIEF)
    await _while(lambda: queued(listener) and not hurried(), QUEUE)
    for _ in range(_TURNS):
        await asyncio.sleep(0)


async def heard(unasked: Callable[[], object], hurried: Callable[[], bool] = never) -> None:
    """Return when no handshake of TLS is going on, nor anybody ``unasked``; after :data:`HEARD`
    seconds in any case, or as soon as the end is ``hurried``."""
    await _while(lambda: (shaking() or unasked()) and not hurried(), HEARD)


async def _while(true: Callable[[], object], seconds: float) -> None:
    end = clock.monotonic() + seconds
    while true() and clock.monotonic() < end:
        await asyncio.sleep(LOOK)


def _turn_away(listener: socket.socket) -> None:
    """Drop what would begin a connection."""
    fault: object = f"there is no SO_ATTACH_FILTER on {sys.platform}"
    if sys.platform == "linux":
        try:
            attach(listener, _NO_SYN)
        except OSError as error:
            fault = error
        else:
            return
    port = listener.getsockname()[1]
    log.warning("who connects to port %d just before it is closed may be cut off: %s", port, fault)


def attach(sock: socket.socket, program: bytes) -> None:
    """Have the kernel ask a classic BPF program, 8 bytes an instruction, how much of each packet
    ``sock`` gets (socket(7), SO_ATTACH_FILTER; Linux). Raises ``OSError``."""
    code = ctypes.create_string_buffer(program, len(program))
    told = struct.pack("HP", len(program) // 8, ctypes.addressof(code))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, told)


def queued(listener: socket.socket) -> int:
    """How many wait to be accepted; 0 where that is not told."""
    if sys.platform != "linux":
        return 0
    told = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCPI_UNACKED.stop)
    return int.from_bytes(told[_TCPI_UNACKED], sys.byteorder)
