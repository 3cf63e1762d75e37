"""Ports for what must be told its port before it binds it, and for neighbours it takes unasked."""

import contextlib
import random
import socket
import sys
from pathlib import Path

LOWEST = 10_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_held: list[socket.socket] = []


def free_ports(count: int = 1) -> int:
    """The first of ``count`` ports of 127.0.0.1 side by side that nobody has.

    They lie below those that the system hands out to connections and to who asks for any: nobody
    gets one by chance between this choice and its use. Nor does another process that chooses here
    while this one lives, where names of sockets need no file (Linux).
    """
    choice = random.SystemRandom()
    for _ in range(1000):
        first = choice.randrange(LOWEST, _given_out() - count)
        with contextlib.suppress(OSError), contextlib.ExitStack() as until_sure:
            names = [until_sure.enter_context(_name(first + n)) for n in range(count)]
            for number in range(count):
                with socket.create_server(("127.0.0.1", first + number)):
                    pass
            until_sure.pop_all()
            _held.extend(names)
            return first
    raise AssertionError(f"no {count} free ports side by side")


def _given_out() -> int:
    """The lowest port that the system chooses by itself."""
    return int(_RANGE.read_text().split()[0]) if _RANGE.exists() else 49_152


def _name(port: int) -> socket.socket:
    """Holds a port among those who choose here. Raises ``OSError`` where another holds it."""
    holder = socket.socket(socket.AF_UNIX)
    try:
        if sys.platform == "linux":
            holder.bind(f"\0playhead-tests-{port}")
    except OSError:
        holder.close()
        raise
    return holder
