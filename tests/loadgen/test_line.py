"""Connections read by callbacks: what arrived when, what cannot be sent, and every end."""

import asyncio
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from machine import PATIENCE, eventually
from playhead.engine.clock import monotonic
from playhead.loadgen.line import PlainLine, connect
from playhead.loadgen.stamp import known_here


@dataclass
class Kept:
    """Everything that a line tells."""

    got: list[tuple[bytes, float]] = field(default_factory=list)
    settled_at: list[float] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)

    def received(self, data: bytes, at: float) -> None:
        self.got.append((data, at))

    def settled(self, now: float) -> None:
        self.settled_at.append(now)

    def closed(self, reason: str) -> None:
        self.ends.append(reason)


def pair(talk: Callable[[PlainLine, Kept, socket.socket], Awaitable[None]]) -> None:
    """A line and the other end's blocking socket."""

    async def run() -> None:
        kept = Kept()
        with socket.create_server(("127.0.0.1", 0)) as server:
            line = await connect("127.0.0.1", server.getsockname()[1], False, kept)
            assert isinstance(line, PlainLine)
            far, _ = server.accept()
            with far:
                await talk(line, kept, far)
            line.abort()

    asyncio.run(run())


@pytest.mark.skipif(not known_here(), reason="the kernel's stamps are Linux's")
def test_an_arrival_is_the_kernels_however_late_it_is_read() -> None:
    async def talk(line: PlainLine, kept: Kept, far: socket.socket) -> None:
        far.sendall(b"warm")  # the first packets may go without a stamp
        await eventually(lambda: bool(kept.got))
        before = monotonic()
        far.sendall(b"late")
        after = monotonic()
        time.sleep(0.2)  # the loop is busy with something else
        await eventually(lambda: len(kept.got) == 2)
        data, at = kept.got[1]
        assert data == b"late"
        assert before - 0.001 <= at <= after + 0.05, "not 0.2 s later"
        assert line.stamped

    pair(talk)


def test_polling_gives_what_has_arrived_and_then_settles() -> None:
    async def talk(line: PlainLine, kept: Kept, far: socket.socket) -> None:
        line.poll()
        assert (kept.got, len(kept.settled_at)) == ([], 1)
        far.sendall(b"a")
        now = monotonic()
        while not kept.got:
            line.poll()
            assert monotonic() < now + PATIENCE
        assert kept.settled_at == sorted(kept.settled_at)

    pair(talk)


def test_what_does_not_fit_into_the_socket_is_sent_later() -> None:
    async def talk(line: PlainLine, kept: Kept, far: socket.socket) -> None:
        line.write(b"x" * 8_000_000)
        line.write(b"end")
        got = b""
        while not got.endswith(b"end"):
            got += await asyncio.to_thread(far.recv, 1 << 20)
        assert len(got) == 8_000_003
        line.write(b"more")
        assert await asyncio.to_thread(far.recv, 100) == b"more"

    pair(talk)


def test_a_good_end_and_a_reset_are_told_once() -> None:
    async def good(line: PlainLine, kept: Kept, far: socket.socket) -> None:
        far.sendall(b"bye")
        far.shutdown(socket.SHUT_RDWR)
        await eventually(lambda: bool(kept.ends))
        assert ([data for data, _ in kept.got], kept.ends) == ([b"bye"], [""])
        line.write(b"nobody reads this")
        line.poll()
        assert kept.ends == [""]

    async def reset(line: PlainLine, kept: Kept, far: socket.socket) -> None:
        far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        far.close()
        line.write(b"into the void")
        line.write(b"again")
        await eventually(lambda: bool(kept.ends))
        assert kept.ends in (["Connection reset by peer"], ["Broken pipe"])

    pair(good)
    pair(reset)


def test_where_nobody_listens_the_error_says_so() -> None:
    async def dial() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            await connect("127.0.0.1", taken.getsockname()[1], False, Kept())

    with pytest.raises(ConnectionRefusedError):
        asyncio.run(dial())
