"""The door under attack: requests of every wrong shape, on raw sockets."""

import asyncio
import contextlib
import logging

import pytest
import uvloop
from harness import Gateway, eventually, gateway
from machine import AT_ONCE, PATIENCE
from playhead.gateway.messages import ErrorEvent, Text

UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: playhead.v1.json\r\n"
)


async def ask(running: Gateway, request: bytes) -> bytes:
    """All that comes back; the server must end the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    try:
        writer.write(request)
        async with asyncio.timeout(PATIENCE):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def get(path: str = "/v1/session", headers: str = UPGRADE, version: str = "1.1") -> bytes:
    return f"GET {path} HTTP/{version}\r\nHost: 127.0.0.1\r\n{headers}\r\n".encode()


SHAPES = {
    "a line of 9 KiB": (get("/" + "x" * 9_000), (b"414", b"400")),
    "a header of 9 KiB": (get(headers=UPGRADE + "X-A: " + "x" * 9_000 + "\r\n"), (b"431", b"400")),
    "200 headers": (
        get(headers=UPGRADE + "".join(f"X-{n}: 1\r\n" for n in range(200))),
        (b"431", b"400"),
    ),
    "a body on GET": (get(headers=UPGRADE + "Content-Length: 5\r\n") + b"hello", (b"400",)),
    "two lengths": (
        get(headers=UPGRADE + "Content-Length: 0\r\nContent-Length: 5\r\n"),
        (b"400",),
    ),
    "chunked": (get(headers=UPGRADE + "Transfer-Encoding: chunked\r\n"), (b"400", b"501")),
    "length and chunked": (
        get(headers=UPGRADE + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        (b"400", b"501"),
    ),
    "a folded header": (get(headers=UPGRADE + "X-A: b\r\n c\r\n"), (b"400",)),
    "a space before the colon": (get(headers=UPGRADE + "X-A : b\r\n"), (b"400",)),
    "HTTP/0.9": (b"GET /\r\n\r\n", (b"400", b"505")),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (b"400", b"505")),
    "no version": (get(version="x"), (b"400", b"505")),
    "NUL in the path": (get("/v1/\x00session"), (b"400", b"404")),
    "bytes beyond ASCII in the path": (b"GET /\xff\xfe HTTP/1.1\r\n\r\n", (b"400",)),
    "a TLS hello": (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500) + b"\n",
        (b"400",),
    ),
    "an old WebSocket": (get(headers=UPGRADE.replace("13", "8")), (b"400", b"426")),
    "a key that is none": (
        get(headers=UPGRADE.replace("dGhlIHNhbXBsZSBub25jZQ==", "x")),
        (b"400",),
    ),
    "a climbing path": (get("/../../etc/passwd", headers=""), (b"404",)),
    "an escaped climbing path": (get("/%2e%2e/%2e%2e/etc/passwd", headers=""), (b"404",)),
    "two keys in the query": (get("/v1/session?token=a&ticket=b"), (b"101",)),
}


@pytest.mark.parametrize(("request_", "statuses"), SHAPES.values(), ids=SHAPES.keys())
def test_wrong_requests(
    request_: bytes, statuses: tuple[bytes, ...], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        # Whoever is let in is let in on a busy machine too.
        within = PATIENCE if b"101" in statuses else 0.5
        async with gateway(hello_timeout=0.1, close_timeout=0.2, open_timeout=within) as running:
            answer = await ask(running, request_)
            # What is no HTTP at all gets no answer in HTTP: its connection ends.
            told = answer.split(b" ", 2)[1] if answer else b"ended"
            assert told in (*statuses, b"ended")
            assert told != b"ended" or statuses != (b"101",)
            await eventually(lambda: running.server.caps.total == 0)

    with caplog.at_level(logging.WARNING):
        uvloop.run(main())
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("first", [get("/healthz", headers=""), get()], ids=["plain", "upgrade"])
@pytest.mark.parametrize("second", [get("/metrics", headers=""), b"\xff\xff"], ids=["GET", "noise"])
def test_a_second_request_behind_the_first_is_not_served(
    first: bytes, second: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """What follows a request at once and is no frame ends the connection, before its answer or
    behind it."""

    async def main() -> None:
        async with gateway() as running:
            answer = await ask(running, first + second)
            assert not answer or answer.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 101 "))
            assert answer.count(b"HTTP/1.1") == bool(answer)
            assert b"playhead_" not in answer
            await eventually(lambda: running.server.caps.total == 0)

    with caplog.at_level(logging.WARNING):
        uvloop.run(main())
    assert "Traceback" not in caplog.text


def test_dripping_headers_do_not_keep_others_out() -> None:
    """64 may be half open at a time here; whoever comes then ends the oldest of them."""

    async def main() -> None:
        async with gateway(max_connections_per_address=1_000, open_timeout=60.0) as running:
            running.server.caps.total_limit = 100
            running.server._arrivals.half_open._most = 20
            drips = []
            for _ in range(60):
                reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
                writer.write(b"GET /v1/session HTTP/1.1\r\nX-A: ")
                drips.append((reader, writer))
            await eventually(lambda: running.server.caps.total == 20)
            # Not once the oldest have run out of their time.
            async with asyncio.timeout(AT_ONCE):
                client = await running.greeted()
            await client.socket.close()
            for _, writer in drips:
                with contextlib.suppress(ConnectionError):
                    writer.close()

    uvloop.run(main())


def test_an_address_that_comes_too_fast_is_told_so_and_then_cut() -> None:
    async def main() -> None:
        async with gateway(max_connections_per_address=5) as running:
            foreign = get(headers=UPGRADE + "Origin: null\r\n")
            answers = [await ask(running, foreign)]
            async with asyncio.timeout(PATIENCE):
                while answers[-1]:  # until the address is cut, all of them at once
                    answers += await asyncio.gather(*(ask(running, foreign) for _ in range(25)))
            kinds = [answer.split(b" ", 2)[1] if answer else b"cut" for answer in answers]
            assert kinds[0] == b"403"  # pages are looked at before all else
            assert kinds[-1] == b"cut"
            refused = await ask(running, get(headers=UPGRADE))
            assert refused.startswith(b"HTTP/1.1 429") or not refused
            await asyncio.sleep(2.5)
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            writer.write(get())
            answer = await reader.readuntil(b"\r\n")
            assert b" 429 " in answer or b" 101 " in answer
            writer.close()

    uvloop.run(main())


def test_resets_leave_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with gateway(grace=0.05) as running:
            for _ in range(40):
                client = await running.greeted()
                client.reset()
            await eventually(lambda: running.server.caps.total == 0)
            await eventually(lambda: len(running.server.hub.registry) == 0)
            assert running.server.hub.routes == 0

    with caplog.at_level(logging.INFO):
        uvloop.run(main())
    ours = [record for record in caplog.records if record.name.startswith("playhead")]
    assert len(ours) <= 40
    assert "Traceback" not in caplog.text


def test_what_clients_say_is_not_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Neither their texts, spoken or refused, nor anything that would begin a line of its own."""

    async def main() -> None:
        async with gateway() as running:
            client = await running.client()
            await client.hello(voice="alto\r\nERROR all is lost \x1b[31m")
            await client.hello()
            await client.say("Zanzibar one two")
            await client.ending()
            await client.send(Text("Zanzibar " * 1_000))
            await client.until(ErrorEvent)
            await client.socket.send(b"\xa8Zanzibar\r\n")
            await client.until(ErrorEvent)
            client.reset()
            await eventually(lambda: running.server.caps.total == 0)

    with caplog.at_level(logging.DEBUG):
        uvloop.run(main())
    lines = [record.getMessage() for record in caplog.records]
    assert lines
    assert not any("Zanzibar" in line for line in lines)
    assert all(line.isprintable() for line in lines)
