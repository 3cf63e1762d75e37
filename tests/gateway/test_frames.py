"""Frame by frame: what RFC 6455 asks of a server, against the running gateway.

The clauses are those that conformance suites walk through (framing, pings, reserved bits, opcodes,
fragmentation, UTF-8, closing, size limits); docs/reliability.md has the recorded run of one.
"""

import asyncio
import contextlib
import json
import struct
from collections.abc import AsyncIterator, Sequence

import pytest
import uvloop
from harness import TIMEOUT, Gateway, eventually, gateway
from machine import PATIENCE
from playhead.gateway import flood
from playhead.gateway.limits import Limits

TEXT, BINARY, CONT, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10
KEY = "dGhlIHNhbXBsZSBub25jZQ=="


@pytest.fixture(autouse=True)
def budgets_do_not_refill(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes seconds for a burst, in which a budget by time would fill again."""
    monkeypatch.setattr(flood, "CONTROL_RATE", 0.01)
    monkeypatch.setattr(flood, "_LIMITS", Limits(frame_rate=0.01))


def frame(
    opcode: int, payload: bytes = b"", *, fin: bool = True, bits: int = 0, masked: bool = True
) -> bytes:
    head = bytes([(0x80 if fin else 0) | bits | opcode])
    flag, size = (0x80 if masked else 0), len(payload)
    if size < 126:
        head += bytes([flag | size])
    elif size < 65_536:
        head += bytes([flag | 126]) + struct.pack("!H", size)
    else:
        head += bytes([flag | 127]) + struct.pack("!Q", size)
    if not masked:
        return head + payload
    mask = b"\x12\x34\x56\x78"
    return head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))


def close(code: int, reason: bytes = b"") -> bytes:
    return frame(CLOSE, struct.pack("!H", code) + reason)


PING_MESSAGE = json.dumps({"type": "ping", "time": 1}).encode()
HELLO = frame(TEXT, json.dumps({"type": "hello"}).encode())


class Raw:
    """A WebSocket of bare bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, running: Gateway) -> "Raw":
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(
            f"GET /v1/session HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Protocol: playhead.v1.json\r\n\r\n".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101")
        assert b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head  # RFC 6455, section 1.3
        return cls(reader, writer)

    @classmethod
    @contextlib.asynccontextmanager
    async def opened(cls, running: Gateway) -> AsyncIterator["Raw"]:
        """The same; gone at the end, for which the gateway need not wait then."""
        raw = await cls.open(running)
        try:
            yield raw
        finally:
            raw.writer.transport.abort()

    async def read(self) -> tuple[int, bytes]:
        """The next frame; opcode -1 at the end of the stream."""
        try:
            first, second = await asyncio.wait_for(self.reader.readexactly(2), TIMEOUT)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", await self.reader.readexactly(2))
            return first & 0x0F, await self.reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return -1, b""

    async def answer(self, wanted: int) -> bytes:
        """The payload of the next frame of that opcode; others are skipped, but not a close."""
        while True:
            opcode, payload = await self.read()
            if opcode == wanted:
                return payload
            assert opcode not in (-1, CLOSE), payload

    async def close_code(self) -> int:
        """The code of the close frame, which must be the end."""
        while True:
            opcode, payload = await self.read()
            if opcode == CLOSE:
                assert (await self.read())[0] == -1
                return int(struct.unpack("!H", payload[:2])[0]) if payload else 1005
            assert opcode != -1, "the connection was cut without a close frame"


def talk(frames: Sequence[bytes], *, hello: bool = True) -> tuple[int, list[bytes]]:
    """Send the frames; the close code that comes of it, and the pongs before. 0: still open."""

    async def main() -> tuple[int, list[bytes]]:
        async with gateway(close_timeout=0.3) as running, Raw.opened(running) as raw:
            if hello:
                raw.writer.write(HELLO)
                assert b"ready" in await raw.answer(TEXT)
            raw.writer.write(b"".join(frames) + frame(PING, b"the last one"))
            pongs: list[bytes] = []
            while True:
                opcode, payload = await raw.read()
                if opcode == PONG and payload == b"the last one":
                    raw.writer.write(frame(PING, b"really"))  # pongs are sent before all else
                    continue
                if opcode == PONG and payload == b"really":
                    return 0, pongs
                if opcode == PONG:
                    pongs.append(payload)
                elif opcode == CLOSE:
                    code = int(struct.unpack("!H", payload[:2])[0]) if payload else 1005
                    return code, pongs
                assert opcode != -1, "the connection was cut without a close frame"

    return uvloop.run(main())


GOOD = {
    "a message": [frame(TEXT, PING_MESSAGE)],
    "a message in two": [frame(TEXT, PING_MESSAGE[:9], fin=False), frame(CONT, PING_MESSAGE[9:])],
    "a message octet by octet": [
        frame(TEXT, PING_MESSAGE[:1], fin=False),
        *(frame(CONT, bytes([byte]), fin=False) for byte in PING_MESSAGE[1:]),
        frame(CONT),
    ],
    "a ping inside a message": [
        frame(TEXT, PING_MESSAGE[:9], fin=False),
        frame(PING, b"between"),
        frame(CONT, PING_MESSAGE[9:]),
    ],
    "a pong that nobody asked for": [frame(PONG, b"hello")],
    "the largest control payload": [frame(PING, b"x" * 125)],
    "a binary frame is told, not punished": [frame(BINARY, b"\x80")],
    "the largest message": [frame(TEXT, b" " * (65_536 - len(PING_MESSAGE)) + PING_MESSAGE)],
    "64 fragments": [
        frame(TEXT, PING_MESSAGE, fin=False),
        *(frame(CONT, fin=False) for _ in range(62)),
        frame(CONT),
    ],
    "a letter cut in two": [
        frame(TEXT, b'{"type":"\xc3', fin=False),
        frame(CONT, b'\xbc"}'),
    ],
}


@pytest.mark.parametrize("frames", GOOD.values(), ids=GOOD.keys())
def test_good_frames(frames: list[bytes]) -> None:
    assert talk(frames)[0] == 0


def test_pongs_carry_what_the_pings_did() -> None:
    code, pongs = talk([frame(PING), frame(PING, b"\x00\xff\xfe"), frame(PING, b"x" * 125)])
    assert (code, pongs) == (0, [b"", b"\x00\xff\xfe", b"x" * 125])


BAD = {
    **{
        f"reserved bits {bits:02x}": (1002, [frame(TEXT, b"{}", bits=bits)])
        for bits in (64, 32, 16)
    },
    **{
        f"reserved opcode {code}": (1002, [frame(code, b"x")])
        for code in (*range(3, 8), *range(11, 16))
    },
    "not masked": (1002, [frame(TEXT, b"{}", masked=False)]),
    "a ping of 126 octets": (1002, [frame(PING, b"x" * 126)]),
    "a ping in pieces": (1002, [frame(PING, b"x", fin=False), frame(CONT, b"y")]),
    "a close of one octet": (1002, [frame(CLOSE, b"\x03")]),
    "a continuation of nothing": (1002, [frame(CONT, b"{}")]),
    "a continuation after the end": (1002, [frame(TEXT, b"{}"), frame(CONT, b"{}")]),
    "a message inside a message": (1002, [frame(TEXT, b"{", fin=False), frame(TEXT, b"}")]),
    "text that is not UTF-8": (1007, [frame(TEXT, b"\xce\xba\xe1\xbd\xb9\xcf\x83\xed\xa0\x80")]),
    "an overlong letter": (1007, [frame(TEXT, b"\xc0\xaf")]),
    "beyond U+10FFFF": (1007, [frame(TEXT, b"\xf4\x90\x80\x80")]),
    "a letter that is not finished": (1007, [frame(TEXT, b"\xc3", fin=False), frame(CONT)]),
    "a reason that is not UTF-8": (1007, [close(1000, b"\xff")]),
    "an octet too long": (1009, [frame(TEXT, b" " * 65_537)]),
    "too long in pieces": (
        1009,
        [frame(TEXT, b" " * 40_000, fin=False), frame(CONT, b" " * 40_000)],
    ),
    "2^63 octets claimed": (1009, [b"\x81\xff" + b"\x7f" + b"\xff" * 7 + bytes(4)]),
    "65 fragments": (1009, [frame(TEXT, b"{", fin=False), *[frame(CONT, fin=False)] * 64]),
    "empty fragments for ever": (1009, [frame(TEXT, fin=False), *[frame(CONT, fin=False)] * 5_000]),
    "41 pings": (1008, [frame(PING)] * 45),
    "41 pongs": (1008, [frame(PONG)] * 45),
    "2,001 messages": (1008, [frame(TEXT, b"{}")] * 2_500),
}


@pytest.mark.parametrize(("code", "frames"), BAD.values(), ids=BAD.keys())
def test_bad_frames(code: int, frames: list[bytes]) -> None:
    assert talk(frames)[0] == code


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        *((code, code) for code in (1000, 1001, 1003, 1007, 1011, 1012, 1014, 3000, 4999)),
        *((code, 1002) for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535)),
    ],
)
def test_close_codes(sent: int, answered: int) -> None:
    assert talk([close(sent)])[0] == answered


def test_a_close_without_a_code_is_answered_in_kind() -> None:
    assert talk([frame(CLOSE)])[0] == 1005


def test_what_follows_a_close_is_ignored() -> None:
    assert talk([close(1000), frame(TEXT, b"\xff"), frame(15)])[0] == 1000


def test_frames_may_come_octet_by_octet() -> None:
    async def main() -> None:
        async with gateway() as running, Raw.opened(running) as raw:
            for byte in HELLO + frame(PING, b"slow"):
                raw.writer.write(bytes([byte]))
                await asyncio.sleep(0)
            assert await raw.answer(PONG) == b"slow"

    uvloop.run(main())


def test_who_does_not_answer_a_close_is_cut() -> None:
    async def main() -> None:
        async with gateway(hello_timeout=0.05) as running:
            raw = await Raw.open(running)
            assert await raw.answer(CLOSE)
            # Half closed by the server; this side keeps its half.
            await eventually(lambda: running.server.readiness().load["connections"] == 0)
            raw.writer.close()

    uvloop.run(main())


@pytest.mark.parametrize("greeted", [False, True])
def test_who_closes_its_half_is_let_go(greeted: bool) -> None:
    """A connection that only listens cannot answer anything any more."""

    async def main() -> None:
        async with gateway(hello_timeout=2 * PATIENCE) as running, Raw.opened(running) as raw:
            if greeted:
                raw.writer.write(HELLO + frame(PING, b"here"))
                assert await raw.answer(PONG) == b"here"
            raw.writer.write_eof()
            await eventually(lambda: running.server.caps.total == 0)

    uvloop.run(main())


def test_every_connection_here_is_counted_out_again() -> None:
    async def main() -> None:
        async with gateway() as running:
            for _, frames in list(BAD.values())[::4]:
                raw = await Raw.open(running)
                raw.writer.write(HELLO + b"".join(frames))
                await raw.close_code()
                raw.writer.close()
            await eventually(lambda: running.server.caps.total == 0)
            assert len(running.server.hub.registry) <= 1 + len(BAD) // 4

    uvloop.run(main())
