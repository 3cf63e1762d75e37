"""One address before several servers, for machines without HAProxy: connections are dealt out.

    python bench/gpu/front.py 18099 18100,18101,18102

Takes connections at the first port of this machine and joins each, byte for byte, to the next of
the others in turn. Four processes share the port (SO_REUSEPORT). It knows nothing of slack, health
or tokens: enough to measure with, no balancer.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Coroutine, Iterator
from itertools import cycle

import uvloop

PROCESSES = 4
UNREAD = 256 * 1024


class Half(asyncio.Protocol):
    """One end of a joined connection; ``other`` takes what comes in here."""

    def __init__(self, other: "Half | None" = None) -> None:
        self.transport: asyncio.Transport | None = None
        self.other = other
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        assert self.transport is not None
        self.transport.set_write_buffer_limits(UNREAD)
        if sock := transport.get_extra_info("socket"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for data in self._early:
            self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            self.other.give(data)

    def give(self, data: bytes) -> None:
        """Send, or keep until there is a connection."""
        if self.transport is None:
            self._early.append(data)
        else:
            self.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


class Door(Half):
    """The client's end: connects to the next server as soon as it is there."""

    def __init__(self, targets: Iterator[int]) -> None:
        super().__init__()
        self._targets = targets

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.other = Half(self)
        self._joining = asyncio.get_running_loop().create_task(self._join(self.other))

    async def _join(self, far: Half) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: far, "127.0.0.1", next(self._targets))
        except OSError:
            assert self.transport is not None
            self.transport.close()
        else:
            if self.transport is None or self.transport.is_closing():
                assert far.transport is not None
                far.transport.close()


async def serve(port: int, targets: list[int], number: int) -> None:
    """Deal connections out, until killed; processes begin at different servers."""
    first = number % len(targets)
    turns = cycle([*targets[first:], *targets[:first]])
    server = await asyncio.get_running_loop().create_server(
        lambda: Door(turns), "127.0.0.1", port, reuse_port=True, backlog=1024
    )
    await server.serve_forever()


def main() -> None:
    """The parent serves as well and takes its children with it."""
    port, targets = int(sys.argv[1]), [int(part) for part in sys.argv[2].split(",")]
    for number in range(1, PROCESSES):
        if os.fork() == 0:
            uvloop.run(_while_parent(os.getppid(), serve(port, targets, number)))
            os._exit(0)
    uvloop.run(serve(port, targets, 0))


async def _while_parent(parent: int, work: Coroutine[None, None, None]) -> None:
    task = asyncio.ensure_future(work)
    while os.getppid() == parent:
        await asyncio.sleep(0.5)
    task.cancel()


if __name__ == "__main__":
    main()
