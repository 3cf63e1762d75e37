"""A secret through every place at every door: the table of places is true, and nothing that is
logged (by whatever library, at whatever level), answered or measured shows a part of one."""

import asyncio
import json
import struct
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvloop
from api_kit import ApiClient, api
from machine import PATIENCE
from places_kit import who
from playhead.engine import clock
from playhead.gateway.access_file import edit
from playhead.gateway.access_keys import KeyRing, new_key
from playhead.gateway.access_places import PLACES, Place, Use, Where
from playhead.gateway.api.app import Api
from playhead.gateway.dialects import table
from secret_ear import all_ears, parts_of
from starlette.routing import Route

FOREIGN = "hU5hhush0hush9hush7hush3hush1hush8hush2"
"""A key of another service, as a client sends it that has only been given another address."""
VOICE = "/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM"
SOCKETS = {
    "playhead": "/v1/session",
    "deepgram-v1": "/v1/speak",
    "deepgram-v2": "/v2/speak",
    "elevenlabs": f"{VOICE}/stream-input",
    "elevenlabs-multi": f"{VOICE}/multi-stream-input",
    "kyutai": "/api/tts_streaming",
    "cartesia": "/tts/websocket",
    "realtime": "/v1/realtime",
    "twilio": "/v1/twilio",
}
DOOR_OF = {
    **{name: name for name in ("playhead", "elevenlabs", "kyutai", "cartesia", "twilio")},
    **{"openai": "realtime", "deepgram": "deepgram-v1"},
}
LATE = ("elevenlabs", "elevenlabs-multi", "twilio")
REQUESTS = (
    *("GET /v1/models", "GET /v1/models/tts-1", "GET /v1/voices", "GET /v1/audio/voices"),
    *("POST /v1/audio/speech", "POST /v1/speak", "POST /tts/bytes", "POST /tts/sse"),
    *(f"POST {VOICE}", f"POST {VOICE}/stream", f"POST {VOICE}/with-timestamps"),
    *(f"POST {VOICE}/stream/with-timestamps", "GET /openapi.json"),
)
BY_SHAPE = ("POST /v1/audio/speech", "POST /v1/speak", "POST /tts/bytes", f"POST {VOICE}")
"""One of REQUESTS for each vendor."""
UPGRADE = (
    *("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"),
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
)
SPECIAL = (Where.MESSAGE, Where.BODY)
HEADED = [place for place in PLACES if place.where not in SPECIAL]
"""Places in a request's line and headers."""
NAMED = sorted({place.name for place in PLACES if place.where in (*SPECIAL, Where.QUERY)})
PUBLIC = len("ph_abcdefgh_")
READ = sorted({place.name for place in PLACES if place.where is Where.MESSAGE})
SPELT = (*NAMED, "apiKey", "xiApiKey", "accessToken", "Authorization", "api_keys")


@dataclass
class Head:
    """A request's line and headers. ``protocols``: subprotocols offered."""

    method: str
    path: str
    headers: list[str] = field(default_factory=list)
    protocols: list[str] = field(default_factory=list)

    def put(self, place: Place, secret: str) -> None:
        match place.where:
            case Where.HEADER:
                scheme = "Bearer " if place.name.endswith("Authorization") else ""
                self.headers.append(f"{place.name}: {scheme}{secret}")
            case Where.PROTOCOL:
                self.protocols.append(place.name + secret)
            case Where.PROTOCOL_NEXT:
                self.protocols += [place.name, secret]
            case Where.QUERY:
                self.path += f"?{place.name}={secret}"
            case Where.PATH:
                self.path += f"/{secret}"
            case _:
                self.path = f"http://user:{secret}@127.0.0.1{self.path}"

    def text(self, body: bytes = b"") -> bytes:
        lines = [f"{self.method} {self.path} HTTP/1.1", "Host: 127.0.0.1", *self.headers]
        if self.protocols:
            lines.append("Sec-WebSocket-Protocol: " + ", ".join(self.protocols))
        if "Upgrade: websocket" not in lines:
            lines += ["Connection: close", f"Content-Length: {len(body)}"]
        return "\r\n".join([*lines, "", ""]).encode() + body


def door(name: str) -> Head:
    """An empty request to a socket of SOCKETS, or one of REQUESTS."""
    if name not in SOCKETS:
        return Head(*name.split(" "))
    protocols = ["playhead.v1.json"] if name == "playhead" else []
    return Head("GET", SOCKETS[name], list(UPGRADE), protocols)


def frame(payload: bytes, opcode: int = 1) -> bytes:
    """A whole frame of a client, masked with zeros (RFC 6455, 5.2)."""
    return struct.pack("!BBHI", 0x80 | opcode, 0x80 | 126, len(payload), 0) + payload


GOODBYE = frame(b"\x03\xe8", opcode=8)


class Doors:
    """A server with both ports, which knows ``key`` and gives tickets."""

    def __init__(self, client: ApiClient, key: str, owner: str) -> None:
        self.key = key
        self.answers: list[bytes] = []
        self._client = client
        self._owner = owner
        self._access = client.gateway.server.access

    def ticket(self) -> str:
        return self._access._tickets.give(self._owner, clock.monotonic()) or ""

    async def ask(self, name: str, data: bytes, then: bytes = b"") -> bytes:
        """The whole answer; a socket that opens is told ``then``, and closed: what comes
        with the end of its connection is still taken, what comes with a close frame is not."""
        port = self._client.port if name not in SOCKETS else self._client.gateway.port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        async with asyncio.timeout(PATIENCE):
            try:
                answer = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError as ended:
                answer = ended.partial
            if answer.startswith(b"HTTP/1.1 101 "):
                writer.write(then or GOODBYE)
                writer.write_eof()
            answer += await reader.read()
        writer.transport.abort()
        self._access._failures.clear()
        self.answers.append(answer)
        return answer

    async def show(self, name: str, place: Place, secret: str) -> bytes:
        """A request whose line or headers hold a secret."""
        head = door(name)
        head.put(place, secret)
        return await self.ask(name, head.text())

    async def tell(self, name: str, message: object) -> bytes:
        """A message in a socket, or a body, of a client that has shown its key."""
        head, data = door(name), json.dumps(message).encode()
        if name not in LATE:
            head.headers.append(f"Authorization: Bearer {self.key}")
        if name in SOCKETS:
            return await self.ask(name, head.text(), frame(data))
        return await self.ask(name, head.text(data))


def fate(answer: bytes) -> str:
    """What the door made of what it was shown."""
    status = int(answer.split(b" ", 2)[1])
    if status == 400 and b"must not stand" in answer:
        return "misplaced"
    return {101: "let in", 401: "unknown", 404: "nowhere"}.get(status, str(status))


Visit = Callable[[Doors], Awaitable[None]]


def heard(folder: Path, visit: Visit, *, asked: bool = True) -> tuple[list[str], list[bytes], str]:
    """What was logged of secrets, every answer with those of the pages that tell how the server
    does, and what of the good key is secret. Keys are ``asked`` for, or they are not."""
    key, kept = new_key("a client", 0.0)
    with edit(folder / "keys.json") as put:
        put(KeyRing([kept]))

    async def main() -> list[bytes]:
        asks = {"keys": str(folder / "keys.json")} if asked else {}
        async with api(max_connections_per_address=100_000, **asks) as client:
            doors = Doors(client, key, kept.id)
            await visit(doors)
            for path in ("/metrics", "/readyz", "/healthz", "/v1/sessions"):
                head = Head("GET", path, [f"Authorization: Bearer {key}"])
                assert b"HTTP/1.1 200" in await doors.ask("playhead", head.text())
            return doors.answers

    with all_ears([FOREIGN, key[PUBLIC:]]) as ear:
        answers = uvloop.run(main())
    return ear.found, answers, key[PUBLIC:]


def shown(answers: list[bytes], *secrets: str) -> list[bytes]:
    """The answers that show a part of a secret."""
    return [
        answer
        for answer in answers
        if any(parts_of(secret, answer.decode("latin-1")) for secret in secrets)
    ]


def test_every_door_is_visited() -> None:
    assert {route.name for route in table.ROUTES} == SOCKETS.keys() - {"playhead"}
    assert all(table.find(path) for name, path in SOCKETS.items() if name != "playhead")

    nothing: Any = None
    for route in Api(nothing, nothing, nothing, since=0).app.routes:
        assert isinstance(route, Route)
        visited = [path for method, path in map(str.split, REQUESTS) if method in route.methods]
        assert any(route.path_regex.fullmatch(path) for path in visited), route.path


def expected(place: Place, secret: str, door_: str) -> str:
    """What the table says of a secret there: a right key, a ticket, or another service's key."""
    if place.where is Where.URL and door_ == "playhead":
        return "nowhere"  # the others read the path of such a target
    late = door_ in LATE
    if place.use is Use.OTHER or (place.where is Where.PATH and secret == FOREIGN):
        return "let in" if late else "unknown"  # as a guest, who has shown nothing
    if place.use is Use.TICKET and not secret.startswith("pht_"):
        return "misplaced"
    return "unknown" if secret == FOREIGN else "let in"


@pytest.mark.slow
def test_the_table_is_true_and_a_secret_in_any_place_is_told_to_nobody(tmp_path: Path) -> None:
    async def visit(doors: Doors) -> None:
        for place in HEADED:
            for name in {DOOR_OF[name] for name in who(place)}:
                for secret in (doors.key, doors.ticket(), FOREIGN):
                    answer = await doors.show(name, place, secret)
                    told = (place, name, secret[:4])
                    assert fate(answer) == expected(place, secret, name), told
            for name in {*SOCKETS, *BY_SHAPE} - {DOOR_OF[name] for name in who(place)}:
                await doors.show(name, place, FOREIGN)

    found, answers, key = heard(tmp_path, visit)
    assert found == []
    assert shown(answers, FOREIGN, key) == []


def messages(key: str) -> Iterator[dict[str, object]]:
    """With a secret in fields that are read, in some that are not, and where something else should
    be."""
    base = {"type": "hello", "event": "start", "text": "Hi."}
    for value in (FOREIGN, [FOREIGN]):
        yield base | dict.fromkeys(SPELT, value)
        yield from (base | {name: value} for name in READ)
        yield base | {"start": {"customParameters": dict.fromkeys(SPELT, value)}}
    for name in ("voice", "model", "type", "event", "language", "codec", "output_format"):
        yield base | {name: key}
    yield base | {"resume": {"session": "s", "token": FOREIGN * 20, "seq": 0}}
    yield {key: 1}


@pytest.mark.slow
def test_a_secret_in_any_message_or_body_is_told_to_nobody(tmp_path: Path) -> None:
    async def visit(doors: Doors) -> None:
        for name in (*SOCKETS, *BY_SHAPE):
            for message in messages(doors.key):
                await doors.tell(name, message)

    found, answers, key = heard(tmp_path, visit)
    assert found == []
    assert shown(answers, FOREIGN, key) == []


UNREADABLE = (
    *("Sec-WebSocket-Protocol: token, SECRET==", "Sec-WebSocket-Protocol: token; SECRET"),
    *("xi-api-key: SECRET\x01", "Authorization Bearer SECRET", "Authorization : Bearer SECRET"),
    *("Cookie: a=SECRET\x00", "Authorization: Bearer SECRET\r\n SECRET", "X-API-Key: \xffSECRET"),
)
NO_REQUESTS = (f"GET /?key={FOREIGN}", f"GET /?key={FOREIGN} HTTP/1.1 x", FOREIGN)


@pytest.mark.slow
@pytest.mark.parametrize("asked", [True, False])
def test_what_cannot_be_read_is_not_repeated(tmp_path: Path, asked: bool) -> None:
    async def visit(doors: Doors) -> None:
        for line in UNREADABLE:
            for name in ("playhead", "deepgram-v1", "GET /v1/models"):
                head = door(name)
                head.headers.append(line.replace("SECRET", FOREIGN))
                await doors.ask(name, head.text())
        for name in ("playhead", "GET /v1/models"):
            for line in NO_REQUESTS:
                await doors.ask(name, f"{line}\r\n\r\n".encode())

    found, answers, _ = heard(tmp_path, visit, asked=asked)
    assert asked or any(b"Protocol header that cannot be read" in answer for answer in answers)
    assert found == []
    assert shown(answers, FOREIGN) == []
