"""The end of listening: whoever has come is let in, and whoever comes now finds nobody.

A socket that listens has connections that nobody has accepted yet, and the kernel resets them when
it is closed: their clients were connected and hear nothing. So no further one is begun first.
"""

import asyncio
import ctypes
import math
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

from playhead.engine import clock

LOOK: Final = 0.005
BRIEF: Final = 0.5
"""Seconds for handshakes of TCP that have begun: a long way there and back."""
QUEUE: Final = 5.0
"""Seconds for accepting all, of which uvloop accepts one in each turn."""
_TURNS: Final = 3  # of a loop, from accepting a connection to telling its protocol

_SO_ATTACH_FILTER: Final = 26  # asm-generic/socket.h; Python has no name for it
_TCPI_UNACKED: Final = slice(24, 28)  # struct tcp_info, linux/tcp.h
_SYN_RECV: Final = "03"  # include/net/tcp_states.h
_NO_SYN: Final = b"".join(
    struct.pack("=HBBI", *instruction)
    for instruction in (  # classic BPF, linux/filter.h; a packet begins with its TCP header
        (0x30, 0, 0, 13),  # A = flags
        (0x54, 0, 0, 0x12),  # A &= SYN | ACK
        (0x15, 0, 1, 0x02),  # SYN alone?
        (0x06, 0, 0, 0),  # drop
        (0x06, 0, 0, 0xFFFF),  # take
    )
)


class Coming:
    """Protocols that have a connection and were not told yet: with TLS, while hands are shaken."""

    def __init__(self, patience: float, shaking: Callable[[], bool]) -> None:
        """``patience``: seconds after which a handshake has failed, where nobody tells that.
        ``shaking``: whether any is going on."""
        self._patience = patience
        self._shaking = shaking
        self._since: WeakKeyDictionary[object, float] = WeakKeyDictionary()

    def expect(self, protocol: object, now: float) -> None:
        """A protocol was made for a connection."""
        self._since[protocol] = now

    def came(self, protocol: object) -> None:
        """It was told."""
        self._since.pop(protocol, None)

    def any(self, now: float) -> bool:
        """Whether there are such."""
        waiting = (now < since + self._patience for since in self._since.values())
        return self._shaking() and any(waiting)


def never() -> bool:
    """For a server whose connections are told at once."""
    return False


async def last_call(listener: socket.socket, coming: Callable[[], bool] = never) -> None:
    """Return when whoever connected has been accepted by the running loop, which listens, and
    ``coming`` (:class:`Coming`) is over. The next thing to do is to close the listener.

    On Linux nobody can connect from now on: what asks to is left without an answer, asks again
    after a second, and is refused by then, or meets a successor that listens at the same port.
    """
    if not _turn_away(listener):
        return
    await _while(lambda: begun(listener), BRIEF)
    await _while(lambda: queued(listener), QUEUE)
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    await _while(coming, math.inf)


async def _while(true: Callable[[], object], seconds: float) -> None:
    end = clock.monotonic() + seconds
    while true() and clock.monotonic() < end:
        await asyncio.sleep(LOOK)


def _turn_away(listener: socket.socket) -> bool:
    """Drop what would begin a connection; False for a listener that is closed already."""
    if listener.fileno() < 0:
        return False
    if sys.platform == "linux":
        with suppress(OSError):  # where it cannot be had, little is lost
            attach(listener, _NO_SYN)
    return True


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


def begun(listener: socket.socket) -> bool:
    """Whether somebody has been answered and has to confirm that (SYN_RECV)."""
    port = f":{listener.getsockname()[1]:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError), Path(table).open() as lines:
            if any(
                fields[3] == _SYN_RECV and fields[1].endswith(port)
                for fields in map(str.split, lines)
            ):
                return True
    return False
