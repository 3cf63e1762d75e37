"""Every door that takes a key: one answer for whoever guesses, the same limit, and room for others.

Answers are compared whole, as bytes, but for the date and what is made up for each answer.
"""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest
import uvloop
from api_kit import ApiClient, api
from machine import PATIENCE
from playhead.gateway.access import FAILURES_PER_MINUTE
from playhead.gateway.access_file import edit
from playhead.gateway.access_keys import KeyRing, new_key

WALL = 1_700_000_000.0
UPGRADE = (
    "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Protocol: playhead.v1.json\r\n"
)
ASK = "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\n"
VOICE = "/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM"
SOCKETS = (
    *("/v1/session", "/v1/speak", "/v2/speak", "/tts/websocket", "/v1/realtime"),
    *("/api/tts_streaming", f"{VOICE}/stream-input", f"{VOICE}/multi-stream-input"),
)
REQUESTS = (
    *(("POST", "/v1/audio/speech"), ("POST", "/v1/speak"), ("POST", "/tts/bytes")),
    *(("POST", "/tts/sse"), ("POST", VOICE), ("POST", f"{VOICE}/stream/with-timestamps")),
    *(("GET", "/v1/models"), ("GET", "/v1/models/tts-1"), ("GET", "/v1/voices")),
)
DOORS = {
    **{f"socket {path}": (UPGRADE.format(path=path), False) for path in SOCKETS},
    "socket /v1/twilio": (UPGRADE.format(path="/v1/twilio"), False),
    "tickets": (ASK.format(method="POST", path="/v1/tickets"), False),
    **{
        f"{method} {path}": (ASK.format(method=method, path=path), True)
        for method, path in REQUESTS
    },
}
"""Name: the head of a request without its end, and whether it is for the HTTP API's port."""


class Guesses:
    """A key file with one key that is good and one that was revoked, and what is no key."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "keys.json"
        self.good, good = new_key("good", WALL)
        was, revoked = new_key("revoked", WALL)
        with edit(self.path) as put:
            put(KeyRing([good, replace(revoked, revoked=WALL)]))
        unknown = new_key("unknown", WALL)[0]
        last = "A" if self.good[-1] != "A" else "B"
        self.wrong = {
            "an unknown key": unknown,
            "a known id": self.good[:12] + unknown[12:],
            "all but one character": self.good[:-1] + last,
            "a revoked key": was,
            "another vendor's key": "sk-proj-0123456789",
            "a long one": "k" * 4_000,
            "a ticket": "pht_" + "A" * 32,
        }


@pytest.fixture(autouse=True)
def without_forgetting(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a try takes on a busy machine, guesses are not forgiven meanwhile."""
    monkeypatch.setattr("playhead.gateway.access.MINUTE", 1e6)


async def ask(client: ApiClient, door: str, key: str) -> bytes:
    """The whole answer."""
    head, http = DOORS[door]
    port = client.port if http else client.gateway.port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{head}Authorization: Bearer {key}\r\n\r\n".encode())
    async with asyncio.timeout(PATIENCE):
        answer = await reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 101"):
            answer += await reader.read()
    writer.transport.abort()
    return answer


def alike(answer: bytes) -> bytes:
    """Without what differs between any two answers."""
    answer = re.sub(rb"(?im)^date: .*\r\n", b"", answer)
    return re.sub(rb"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", b"ID", answer)


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def forgive(client: ApiClient) -> None:
    client.gateway.server.access._failures.clear()


@pytest.mark.parametrize("door", DOORS)
def test_every_wrong_key_gets_the_same_answer_and_then_none_is_looked_at(
    tmp_path: Path, door: str
) -> None:
    guesses = Guesses(tmp_path)

    async def main() -> None:
        async with api(keys=str(guesses.path), max_connections_per_address=1_000) as client:
            wrong = dict(guesses.wrong)
            if door == "tickets":
                del wrong["a ticket"]  # buys none, so it is not looked at: as if nothing were shown
            (answer,) = {alike(await ask(client, door, key)) for key in wrong.values()}
            assert status(answer) == 401
            assert not any(key.encode() in answer for key in guesses.wrong.values())
            forgive(client)
            told = [status(await ask(client, door, guesses.wrong["a known id"])) for _ in range(12)]
            assert told == [401] * int(FAILURES_PER_MINUTE) + [429] * 2
            slow = await ask(client, door, guesses.wrong["all but one character"])
            assert int(re.findall(rb"(?i)retry-after: (\d+)", slow)[0]) > 0
            assert status(await ask(client, door, guesses.good)) not in (401, 403, 429)

    uvloop.run(main())


def test_guesses_are_counted_together_whatever_door_they_try(tmp_path: Path) -> None:
    guesses = Guesses(tmp_path)

    async def main() -> None:
        async with api(keys=str(guesses.path), max_connections_per_address=1_000) as client:
            told = [
                status(await ask(client, door, guesses.wrong["an unknown key"])) for door in DOORS
            ]
            most = int(FAILURES_PER_MINUTE)
            assert told == [401] * most + [429] * (len(DOORS) - most)

    uvloop.run(main())
