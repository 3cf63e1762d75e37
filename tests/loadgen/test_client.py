"""Virtual clients on real sockets: good turns, and a name for everything that goes wrong."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from machine import PATIENCE, undisturbed
from playhead.engine.clock import monotonic
from playhead.gateway.protocol import Encoding
from playhead.loadgen.client import PlayheadSession, open_session
from playhead.loadgen.habits import Caller, Habits, Reports
from playhead.loadgen.plan import Plan
from playhead.loadgen.record import Record
from playhead.loadgen.scripted import Script, ScriptedServer
from playhead.loadgen.session import SessionError
from playhead.loadgen.targets import endpoint
from playhead.loadgen.turn import Turn

SHORT = ((0.02, 1_200), (0.03, 1_200))


@contextlib.asynccontextmanager
async def talking(script: Script, caller: Caller, **plan: Any) -> AsyncIterator[PlayheadSession]:
    server = ScriptedServer(script)
    async with server.running() as url:
        session = await open_session(url, Plan(url, 1.0, **plan), caller, 7)
        yield session
        await session.close()


async def speak(
    session: PlayheadSession, *, timeout: float = 5.0, habits: Habits | None = None
) -> Record:
    origin = monotonic()
    record = Record(0, 0.0, "Hello there.", sample_rate=24_000, codec="pcm_s16le")
    deadline = origin + timeout
    turn = Turn(
        record, habits or Habits(reports=session.caller.reports), session.link,
        origin=origin, deadline=deadline,
    )  # fmt: skip
    await session.speak(turn, deadline)
    return record


def spoken(script: Script, *, caller: Caller | None = None, **values: Any) -> Record:
    async def talk() -> Record:
        async with talking(script, caller or Caller()) as session:
            return await speak(session, **values)

    return asyncio.run(talk())


@pytest.mark.parametrize("encoding", ["msgpack", "json"])
def test_several_turns_on_one_session(encoding: Encoding) -> None:
    async def talk() -> tuple[PlayheadSession, list[Record]]:
        async with talking(Script(SHORT), Caller(), encoding=encoding) as session:
            return session, [await speak(session) for _ in range(2)]

    session, records = asyncio.run(talk())
    assert session.turns == 2
    for kept in records:
        assert (kept.finish, kept.fault, kept.samples, kept.heard) == ("complete", "", 2_400, 2_400)
        assert kept.dispatched is not None
        assert kept.text_sent is not None
        assert kept.first_playable is not None
        assert 0 <= kept.dispatched <= kept.text_sent < kept.first_playable


def test_clocks_are_compared() -> None:
    async def talk() -> PlayheadSession:
        async with talking(Script(SHORT), Caller()) as session:
            return session

    session = asyncio.run(talk())
    assert session.round_trip is not None
    assert session.offset is not None
    assert 0 <= session.round_trip < 1
    assert abs(session.offset) <= session.round_trip, "both ends use one clock"


@pytest.mark.parametrize(
    ("fault", "finish"),
    [
        ("silence", "complete"),
        ("truncated", "complete"),
        ("overloaded", "failed"),
        ("hang", "timeout"),
        ("drop", "lost"),
        ("garbage", "lost"),
    ],
)
def test_a_bad_server_is_named(fault: str, finish: str) -> None:
    kept = spoken(Script(SHORT, fault), timeout=0.5 if fault == "hang" else PATIENCE)
    names = {"hang": "timeout", "drop": "connection_lost", "garbage": "protocol"}
    assert (kept.finish, kept.fault) == (finish, names.get(fault, fault))


def test_a_barge_in_is_sent_and_answered() -> None:
    def listened() -> float:
        kept = spoken(Script(((0.02, 24_000),)), habits=Habits(barge_in=0.1))
        assert (kept.finish, kept.fault) == ("cancelled", "")
        return kept.heard / 24_000

    assert undisturbed(listened, below=0.16) == pytest.approx(0.1, abs=0.06)


def test_a_silent_client_says_nothing_and_acknowledges() -> None:
    async def talk() -> tuple[Record, ScriptedServer]:
        server = ScriptedServer(Script(((0.02, 24_000),)))
        async with server.running() as url:
            session = await open_session(url, Plan(url, 1.0), Caller(reports=Reports.OFF), 0)
            kept = await speak(session, habits=Habits(barge_in=0.3, reports=Reports.OFF))
            await session.close()
            return kept, server

    kept, server = asyncio.run(talk())
    assert kept.finish == "cancelled"
    assert server.reports == []


def refused(script: Script, url: str = "") -> SessionError:
    async def talk() -> None:
        server = ScriptedServer(script)
        async with server.running() as own:
            await open_session(url or own, Plan(own, 1.0), Caller(), 0)

    with pytest.raises(SessionError) as caught:
        asyncio.run(talk())
    return caught.value


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("wrong_rate", "wrong_format"),
        ("hello", "hello_refused"),
        ("full", "too_many_connections"),
    ],
)
def test_sessions_that_do_not_come_about_are_named(fault: str, name: str) -> None:
    assert refused(Script(fault=fault)).fault == name


def test_an_unreachable_target_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        error = refused(Script(), f"ws://127.0.0.1:{port}/")
    assert error.fault == "unreachable"
    assert str(port) in error.message


def test_a_server_that_never_answers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playhead.loadgen.client.OPEN_TIMEOUT", 0.1)

    async def talk() -> SessionError:
        async with await asyncio.start_server(lambda *pipes: None, "127.0.0.1", 0) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            with pytest.raises(SessionError) as caught:
                await open_session(url, Plan(url, 1.0), Caller(), 0)
            return caught.value

    assert asyncio.run(talk()).fault == "no_answer"


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "too_many_connections"),
        (b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", "refused_key"),
        (b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", "connection_refused"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "connection_refused"),
        (b"SSH-2.0-x\r\n\r\n", "protocol"),
        (b"", "protocol"),
    ],
)
def test_what_is_no_such_server_is_named(answer: bytes, fault: str) -> None:
    async def talk() -> SessionError:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            with pytest.raises(SessionError) as caught:
                await open_session(url, Plan(url, 1.0), Caller(), 0)
            return caught.value

    assert asyncio.run(talk()).fault == fault


@pytest.mark.parametrize(
    ("given", "full"),
    [
        ("ws://h:1", "ws://h:1/v1/session"),
        ("http://h:1/", "ws://h:1/v1/session"),
        ("https://h", "wss://h/v1/session"),
        ("ws://h/other", "ws://h/other"),
    ],
)
def test_addresses_are_completed(given: str, full: str) -> None:
    assert endpoint(given) == full


@pytest.mark.parametrize("given", ["", "h:1", "ftp://h", "ws://"])
def test_what_is_no_address_is_said(given: str) -> None:
    with pytest.raises(ValueError, match="is no address; expected one such as"):
        endpoint(given)
