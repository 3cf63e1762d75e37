"""A cable that can be pulled: two network namespaces joined by a pair of virtual interfaces.

What happens to a socket then is what happens to it in a house: the kernel keeps the connection, and
sends again and again into nothing. Linux, root and iproute2 are needed.
"""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from playhead.loadgen.namespace import inside, new_namespace

SERVER: Final = "10.78.0.1"
CLIENTS: Final = ("10.78.0.2", "10.78.0.3")
"""What the client's side is called, by turns."""
NEAR, FAR = "phclient", "phserver"
T = TypeVar("T")


class NoWire(RuntimeError):
    """None can be laid here; the message says why."""


def _ip() -> str:
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    if sys.platform != "linux":
        raise NoWire("network namespaces are Linux's")
    if os.geteuid() != 0:
        raise NoWire("network namespaces need root")
    found = shutil.which("ip", path=path)
    if found is None:
        raise NoWire("pulling a cable needs `ip`: install iproute2")
    return found


@dataclass
class Wire:
    """``server`` and ``client`` are the namespaces' descriptors."""

    server: int
    client: int
    _program: str
    _address: int = 0

    def pull(self, end: str) -> None:
        """Between the client's machine and its socket in the wall (``NEAR``), or at the server's
        (``FAR``): then the client's interface stays up and has no carrier."""
        self._at(end, "link", "set", end, "down")

    def plug(self, end: str) -> None:
        """What was pulled is there again."""
        self._at(end, "link", "set", end, "up")

    def move(self) -> None:
        """The client's machine gets another address and loses the one that it had, as a phone that
        leaves the house."""
        before, self._address = self._address, (self._address + 1) % len(CLIENTS)
        self._at(NEAR, "address", "del", f"{CLIENTS[before]}/24", "dev", NEAR)
        self._at(NEAR, "address", "add", f"{CLIENTS[self._address]}/24", "dev", NEAR)

    def lay(self) -> None:
        """Once."""
        there = f"/proc/{os.getpid()}/fd/{self.client}"
        self._at(FAR, "link", "add", FAR, "type", "veth", "peer", "name", NEAR, "netns", there)
        self._at(FAR, "address", "add", f"{SERVER}/24", "dev", FAR)
        self._at(NEAR, "address", "add", f"{CLIENTS[0]}/24", "dev", NEAR)
        for end in (FAR, NEAR):
            self._at(end, "link", "set", end, "up")

    def _at(self, end: str, *words: str) -> None:
        with inside(self.client if end == NEAR else self.server):
            done = subprocess.run(
                [self._program, *words], capture_output=True, text=True, check=False
            )
        if done.returncode:
            raise NoWire(f"ip {' '.join(words)}: {done.stderr.strip()}")

    def run(self, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """``asyncio.run`` on the client's side: its sockets are there."""
        result: Future[T] = Future()

        def there() -> None:
            try:
                with inside(self.client):
                    result.set_result(asyncio.run(main()))
            # Top of a thread: whoever waits for the result raises it.
            except BaseException as fault:  # noqa: BLE001
                result.set_exception(fault)

        thread = threading.Thread(target=there)
        thread.start()
        thread.join()
        return result.result()


@contextlib.contextmanager
def laid() -> Iterator[Wire]:
    """A wire between two namespaces, gone with the block. Raises :class:`NoWire`."""
    program = _ip()
    made: list[int] = []
    failed: list[OSError] = []

    def make() -> None:
        try:
            made.append(new_namespace())
            made.append(new_namespace())
        except OSError as fault:
            failed.append(fault)

    maker = threading.Thread(target=make)  # namespaces belong to threads
    maker.start()
    maker.join()
    try:
        if failed:
            raise NoWire(f"network namespaces are not permitted here: {failed[0]}")
        wire = Wire(*made, program)
        wire.lay()
        yield wire
    finally:
        for descriptor in made:
            os.close(descriptor)
