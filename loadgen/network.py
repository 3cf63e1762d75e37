"""A TCP proxy inside the generator that shapes what passes, where the kernel has no netem.

A truer run would need the kernel: here both ends see a healthy local socket, so congestion
control plays no part; bytes come late, as an application sees it.
"""

import asyncio
import contextlib
import math
import random
import socket
import struct
from collections.abc import AsyncIterator
from urllib.parse import urlsplit, urlunsplit

from playhead.engine.clock import monotonic
from playhead.loadgen.shaping import Conditions, Shaper, Weather

_PIECE = 4_096
_IN_FLIGHT = 64  # pieces that one direction holds: 256 KiB, then the sender feels it


class Proxy:
    """Relays connections to one server under given conditions; ``url`` is the server's, moved."""

    def __init__(self, url: str, conditions: Conditions, seed: int) -> None:
        self.url = ""
        self._target = urlsplit(url)
        self._conditions = conditions
        self._seed = seed
        self._count = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Proxy"]:
        """Relay while the block runs. Raises ``ValueError`` for a target behind TLS."""
        if self._target.scheme not in ("ws", "http"):
            raise ValueError("only plain targets can be shaped: the name in TLS would not fit")
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        self.url = urlunsplit(self._target._replace(netloc=f"127.0.0.1:{port}"))
        try:
            yield self
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._relay(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(
                self._target.hostname, self._target.port or 80
            )
        except OSError:
            _reset(writer)
            return
        self._count += 1
        # Of their own, so that stalls do not depend on how many packets drew their jitter before.
        weather = Weather(self._conditions, self._rng("weather"), monotonic())
        up = Shaper(self._conditions, weather, self._rng("up"))
        down = Shaper(self._conditions, weather, self._rng("down"))
        pumps = (_pump(reader, far_writer, up), _pump(far_reader, writer, down))
        end = self._conditions.reset_after
        try:
            async with asyncio.timeout(None if math.isinf(end) else end):
                await asyncio.gather(*pumps)
        except (TimeoutError, ConnectionError):
            _reset(writer)
            _reset(far_writer)
        finally:
            for each in (writer, far_writer):
                each.close()

    def _rng(self, what: str) -> random.Random:
        return random.Random(f"{what} {self._seed} {self._count}")


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, shaper: Shaper) -> None:
    """One direction, until its end has been passed on."""
    line: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_IN_FLIGHT)
    feeder = asyncio.create_task(_feed(reader, line, shaper))
    try:
        await _drain(line, writer)
    finally:
        feeder.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await feeder


async def _feed(
    reader: asyncio.StreamReader, line: asyncio.Queue[tuple[float, bytes]], shaper: Shaper
) -> None:
    data = b"-"
    while data:
        try:
            data = await reader.read(_PIECE)
        except ConnectionError:
            data = b""
        await line.put((shaper.release(len(data), monotonic()), data))


async def _drain(line: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
    while True:
        at, data = await line.get()
        if math.isinf(at):
            await asyncio.Event().wait()  # a black hole; the relay's end cancels this
        await asyncio.sleep(max(0.0, at - monotonic()))
        if not data:
            writer.write_eof()
            return
        writer.write(data)
        await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST rather than FIN, as a network that forgot the connection does."""
    sock = writer.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
