"""Accepting for a while."""

import asyncio
import contextlib
import errno
import logging
import os
import socket
import ssl
from collections.abc import AsyncIterator

import pytest
import trustme
from machine import PATIENCE, eventually
from playhead.gateway import acceptor
from playhead.gateway.acceptor import Acceptor
from playhead.gateway.listener import bind

pytestmark = pytest.mark.slow


async def hello(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hello")
    writer.close()


@contextlib.asynccontextmanager
async def accepting(
    listener: socket.socket, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Acceptor]:
    with listener:
        made = Acceptor(
            listener, hello, most=2, patience=PATIENCE, limit=1024, options={"ssl": tls}
        )
        made.open()
        yield made
        await made.close()
        assert listener.fileno() >= 0


async def ask(listener: socket.socket, said: bytes = b"") -> bytes:
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    writer.write(said)
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


class Short(socket.socket):
    """Of a machine that has no descriptor left until it is told ``enough``."""

    enough = False

    def accept(self) -> tuple[socket.socket, object]:
        if not self.enough:
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def short() -> Short:
    return Short(fileno=bind("127.0.0.1", 0).detach())


def test_more_than_there_is_room_for_are_spoken_to_in_turn() -> None:
    listener = bind("127.0.0.1", 0)

    async def run() -> None:
        async with accepting(listener):
            assert await asyncio.gather(*(ask(listener) for _ in range(10))) == [b"hello"] * 10

    asyncio.run(run())


def test_a_shortage_of_descriptors_is_told_and_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(acceptor, "SHORTAGE", 0.01)
    listener = short()

    async def run() -> None:
        async with accepting(listener):
            waits = asyncio.create_task(ask(listener))
            await eventually(lambda: len(told(caplog)) >= 2)
            listener.enough = True
            assert await waits == b"hello"

    asyncio.run(run())
    assert {*told(caplog)} == {"nobody is accepted for 0.01 s: [Errno 24] Too many open files"}


def test_who_was_not_accepted_for_want_of_descriptors_is_left_to_the_next(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(acceptor, "SHORTAGE", 0.01)
    listener = short()

    async def run() -> None:
        with socket.socket(fileno=os.dup(listener.fileno())) as following:
            async with accepting(listener):
                with socket.create_connection(listener.getsockname()):
                    await eventually(lambda: told(caplog))
                listener.enough = True
            await asyncio.sleep(0.03)
            following.accept()[0].close()

    asyncio.run(run())


def test_what_is_no_handshake_is_hung_up_on_without_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(tls)
    listener = bind("127.0.0.1", 0)

    async def run() -> None:
        async with accepting(listener, tls):
            assert b"hello" not in await ask(listener, b"GET / HTTP/1.1\r\n\r\n")

    asyncio.run(run())
    assert not told(caplog)
