"""When bytes arrived, by the kernel's own stamp. Pure.

Linux stamps what a TCP socket receives and hands the stamp of the last byte read over with it
(SO_TIMESTAMPNS, Documentation/networking/timestamping.rst): an arrival is then what the network
made of it, however late the generator comes to read it.
"""

import socket
import struct
import sys
from collections.abc import Sequence

TIMESTAMPNS = 35
"""SO_TIMESTAMPNS, and the type of its control message, where a ``timespec`` has two longs."""
_TIMESPEC = struct.Struct("qq")
CONTROL = socket.CMSG_SPACE(_TIMESPEC.size)
"""Bytes of control data to ask for with each read."""
_OLDEST = 60.0
"""Seconds: a stamp that is older comes from a clock that was set meanwhile."""

Control = Sequence[tuple[int, int, bytes]]


def known_here() -> bool:
    """Whether this platform has these stamps in this shape."""
    return sys.platform == "linux" and sys.maxsize > 2**32


def stamp_of(control: Control) -> float | None:
    """Seconds since the Unix epoch from a read's control messages; ``None`` without a stamp."""
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == TIMESTAMPNS and len(data) >= _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack_from(data)
            return float(seconds + nanoseconds * 1e-9)
    return None


def arrival(control: Control, now: float, wall: float) -> float:
    """When the bytes arrived, on the clock of ``now``; ``wall`` is the same moment on the kernel's
    clock. Without a stamp, or with one that the clocks cannot explain, it is ``now``."""
    stamp = stamp_of(control)
    if stamp is None:
        return now
    age = wall - stamp
    return now - age if 0 <= age <= _OLDEST else now
