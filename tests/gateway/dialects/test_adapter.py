"""Dialects over real sockets, with a fake engine behind the gateway."""

import asyncio
import base64
import contextlib
import json
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvloop
from fake_engine import wave
from harness import Gateway, eventually, gateway
from machine import AT_ONCE, PATIENCE
from playhead.engine.types import Source
from playhead.gateway.access_file import edit
from playhead.gateway.access_keys import KeyRing, new_key
from playhead.gateway.dialects import upgrade
from playhead.gateway.dialects.base import Actions, Dialect, Frame
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin, Subprotocol

AURA = "/v1/speak?model=aura-2-thalia-en&encoding=linear16&sample_rate=24000"
ENDLESS = {"type": "Speak", "text": "!endless talk "}


def url(running: Gateway, target: str = AURA) -> str:
    return f"ws://127.0.0.1:{running.port}{target}"


@contextlib.asynccontextmanager
async def aura(running: Gateway, **options: Any) -> AsyncIterator[ClientConnection]:
    async with connect(url(running), max_size=None, **options) as socket_:
        assert json.loads(await socket_.recv())["type"] == "Metadata"
        yield socket_


async def send(socket_: ClientConnection, *messages: dict[str, Any]) -> None:
    for message in messages:
        await socket_.send(json.dumps(message))


async def closed(socket_: ClientConnection) -> int | None:
    """Read to the end; the close code."""
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionClosed):
            while True:
                await socket_.recv()
    return socket_.close_code


async def until(socket_: ClientConnection, kind: str) -> bytes:
    """The audio up to the text frame of that type."""
    audio = b""
    async with asyncio.timeout(PATIENCE):
        while True:
            frame = await socket_.recv()
            if isinstance(frame, bytes):
                audio += frame
            elif json.loads(frame)["type"] == kind:
                return audio


def test_speech_arrives_as_it_was_made() -> None:
    async def main() -> None:
        async with gateway() as running, aura(running) as client:
            await send(client, {"type": "Speak", "text": "one two three"}, {"type": "Flush"})
            audio = np.frombuffer(await until(client, "Flushed"), np.int16)
            made = np.rint(wave(0, len(audio)) * 32_767)
            assert len(audio) == 3 * 1_920
            assert np.abs(audio - made).max() <= 1

    uvloop.run(main())


def test_the_socket_has_no_compression_and_needs_no_subprotocol() -> None:
    async def main() -> None:
        async with gateway() as running, aura(running) as client:
            assert client.response is not None
            assert "Sec-WebSocket-Extensions" not in client.response.headers
            assert client.subprotocol is None

    uvloop.run(main())


@pytest.mark.parametrize("how", ["abort", "reset", "close"])
def test_a_lost_socket_frees_the_engine(how: str) -> None:
    async def main() -> None:
        async with gateway() as running:
            before = len(running.server.hub.registry)
            async with aura(running) as client:
                await send(client, ENDLESS)
                assert isinstance(await client.recv(), bytes)
                assert running.engine.live
                if how == "reset":
                    raw = client.transport.get_extra_info("socket")
                    linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                if how == "close":
                    await client.close()
                else:
                    client.transport.abort()  # no closing handshake: 1006
                await eventually(lambda: not running.engine.live, AT_ONCE)
                await eventually(lambda: len(running.server.hub.registry) == before, AT_ONCE)
                assert not running.server.hub.routes

    uvloop.run(main())


def test_a_refused_query_is_told_over_http() -> None:
    async def main() -> None:
        async with gateway() as running:
            with pytest.raises(InvalidStatus) as caught:
                await connect(url(running, "/v1/speak?model=nobody"))
            answer = caught.value.response
            assert answer.status_code == HTTPStatus.BAD_REQUEST
            assert json.loads(answer.body)["err_code"] == "INVALID_QUERY_PARAMETER"
            assert "nobody" in answer.headers["dg-error"]

    uvloop.run(main())


def test_pages_of_other_sites_may_not_connect() -> None:
    async def main() -> None:
        async with gateway() as running:
            with pytest.raises(InvalidStatus) as caught:
                await connect(url(running), origin=Origin("https://evil.example"))
            assert caught.value.response.status_code == HTTPStatus.FORBIDDEN

    uvloop.run(main())


def test_a_dialects_path_without_an_upgrade_is_no_page() -> None:
    async def main() -> None:
        async with gateway() as running:
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            writer.write(b"GET /v1/speak HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b" 404 " in await reader.readline()
            writer.close()

    uvloop.run(main())


def test_close_message_closes_with_1000() -> None:
    async def main() -> None:
        async with gateway() as running, aura(running) as client:
            await send(client, ENDLESS, {"type": "Close"})
            assert await closed(client) == 1000
            await eventually(lambda: not running.engine.live)

    uvloop.run(main())


def test_a_client_that_does_not_read_is_held_and_closed() -> None:
    async def main() -> None:
        patience = {"slow_hold": 0.05, "slow_close": 0.3}
        async with gateway(interval=0.0, **patience) as running, aura(running) as client:
            client.transport.pause_reading()  # type: ignore[attr-defined]
            await send(client, ENDLESS)
            await eventually(lambda: not running.engine.live and bool(running.engine.requests))
            assert running.engine.holds, "speech was held before"
            client.transport.abort()  # it reads no farewell either, which would be waited for

    uvloop.run(main())


def test_the_server_goes_down() -> None:
    async def main() -> None:
        async with gateway() as running, aura(running) as client:
            await send(client, ENDLESS)
            assert isinstance(await client.recv(), bytes)
            drained = asyncio.create_task(running.server.drain())
            assert await closed(client) == 1012
            await drained

    uvloop.run(main())


REFUSED = [
    (AURA, {"Authorization": "Token wrong"}, ("err_code",), "INVALID_AUTH"),
    ("/v2/speak?model=flux-haley-en", {}, ("err_code",), "INVALID_AUTH"),
    ("/v1/realtime", {"Authorization": "Bearer wrong"}, ("error", "code"), "invalid_api_key"),
    (
        "/v1/text-to-speech/x/stream-input?model_id=eleven_flash_v2_5",
        {"xi-api-key": "wrong"},
        ("detail", "status"),
        "invalid_api_key",
    ),
]


@pytest.mark.parametrize(("target", "headers", "where", "code"), REFUSED)
def test_a_missing_or_wrong_key_is_refused_in_the_vendors_words(
    tmp_path: Path, target: str, headers: dict[str, str], where: tuple[str, ...], code: str
) -> None:
    key, kept = new_key("first", 1.0)
    with edit(tmp_path / "keys.json") as put:
        put(KeyRing((kept,)))

    async def main() -> None:
        async with gateway(keys=str(tmp_path / "keys.json")) as running:
            with pytest.raises(InvalidStatus) as caught:
                await connect(url(running, target), additional_headers=headers)
            answer = caught.value.response
            assert answer.status_code == HTTPStatus.UNAUTHORIZED
            told = json.loads(answer.body)
            for name in where:
                told = told[name]
            assert told == code
            right = {"Authorization": f"Token {key}"}
            async with connect(url(running, target), additional_headers=right):
                pass

    uvloop.run(main())


def test_a_call_plays_and_its_marks_come_back() -> None:
    """The other side of Twilio Media Streams, which plays at once what it is sent."""

    async def main() -> None:
        async with gateway() as running, connect(url(running, "/v1/twilio")) as call:
            custom = {"text": "one two three"}
            start = {"streamSid": "MZ1", "start": {"customParameters": custom}}
            await send(call, {"event": "connected"}, {"event": "start", **start})
            sound = 0
            with contextlib.suppress(ConnectionClosed):
                async for frame in call:
                    told = json.loads(frame)
                    if told["event"] == "media":
                        sound += len(base64.b64decode(told["media"]["payload"]))
                    if told["event"] == "mark":
                        await call.send(frame)
            assert call.close_code == 1000, "all was played: the call's next verb runs"
            assert sound == 3 * 1_920 // 3  # three words at 24 kHz, heard at 8 kHz
            assert {report.source for report in running.engine.reports} == {Source.MARK}
            assert running.engine.reports[-1].consumed == 3 * 1_920

    uvloop.run(main())


class _Clock(Dialect):
    """Says tick at a time, with a fault at the second tick."""

    subprotocol = "tick"

    def __init__(self) -> None:
        self._due: float | None = None
        self._ticks = 0

    def opened(self, now: float) -> Actions:
        self._due = now + 0.02
        return [Frame("open")]

    def receive(self, frame: bytes | str, now: float) -> Actions:
        raise RuntimeError("a fault of the dialect")

    def get_timer(self) -> float | None:
        return self._due

    def handle_timer(self, now: float) -> Actions:
        self._ticks += 1
        if self._ticks == 2:
            raise RuntimeError("a fault of the dialect")
        self._due = now + 0.02
        return [Frame("tick")]


@pytest.fixture
def clock_dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "open_dialect", lambda *args: _Clock())


@pytest.mark.usefixtures("clock_dialect")
def test_a_dialect_has_a_timer_and_its_fault_ends_the_connection() -> None:
    async def main() -> None:
        async with gateway() as running:
            offered = [Subprotocol("tock"), Subprotocol("tick")]
            async with connect(url(running), subprotocols=offered) as client:
                assert client.subprotocol == "tick"
                assert [await client.recv(), await client.recv()] == ["open", "tick"]
                assert await closed(client) == 1011

    uvloop.run(main())


@pytest.mark.usefixtures("clock_dialect")
def test_a_fault_while_reading_ends_the_connection() -> None:
    async def main() -> None:
        async with gateway() as running, connect(url(running)) as client:
            await client.send("anything")
            assert await closed(client) == 1011

    uvloop.run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="SIOCOUTQ is Linux's")
def test_the_socket_tells_where_a_silent_listener_is() -> None:
    async def main() -> None:
        async with gateway() as running:
            running.server.hub.facts = replace(running.server.hub.facts, observed=True)
            async with aura(running) as client:
                text = {"type": "Speak", "text": "one " * 120}  # nearly ten seconds of sound
                await send(client, text, {"type": "Flush"})
                await until(client, "Flushed")
                await eventually(lambda: bool(running.engine.reports))
                before = len(running.engine.reports)
                await send(client, {"type": "Clear"})
                await eventually(lambda: len(running.engine.reports) > before)
                report = running.engine.reports[-1]
                assert report.source is Source.SOCKET
                assert report.received == 120 * 1_920
                assert 0 < report.consumed < report.received

    uvloop.run(main())
