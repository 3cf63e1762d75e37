"""Keys that come in a message, tickets in a path, and Twilio's signatures, over real sockets."""

import asyncio
import contextlib
import json
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from harness import Gateway, eventually, gateway
from machine import PATIENCE
from playhead.gateway.access_file import edit
from playhead.gateway.access_keys import KeyRing, new_key
from playhead.gateway.dialects.twilio_signature import HEADER, signature
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

SINGLE = "/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM/stream-input?output_format=pcm_24000"
MULTI = SINGLE.replace("stream-input", "multi-stream-input")
WALL = 1_800_000_000.0


@contextlib.asynccontextmanager
async def locked(folder: Path, **settings: Any) -> AsyncIterator[tuple[Gateway, str]]:
    """A server that asks for keys, and one that it knows."""
    text, key = new_key("a client", WALL)
    with edit(folder / "keys.json") as put:
        put(KeyRing((key,)))
    async with gateway(keys=str(folder / "keys.json"), **settings) as running:
        yield running, text


def url(running: Gateway, target: str) -> str:
    return f"ws://127.0.0.1:{running.port}{target}"


async def ticket(running: Gateway, key: str) -> str:
    def ask() -> str:
        request = urllib.request.Request(
            f"http://127.0.0.1:{running.port}/v1/tickets",
            method="POST",
            headers={"Authorization": f"Bearer {key}"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return str(json.load(response)["ticket"])

    return await asyncio.to_thread(ask)


async def read(client: ClientConnection) -> tuple[list[Any], int | None]:
    """All frames up to the close, and its code."""
    frames = []
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionClosed):
            while True:
                frames.append(json.loads(await client.recv()))
    return frames, client.close_code


def grants(running: Gateway) -> int:
    """Connections counted on the account of a key."""
    kept = [peer.grant for peer in running.server.peers if peer.grant is not None]
    return sum(grant.account.connections for grant in kept if grant.account is not None)


@pytest.mark.parametrize("target", [SINGLE, MULTI])
@pytest.mark.parametrize("field", ["xi_api_key", "authorization"])
def test_elevenlabs_key_in_the_first_message(tmp_path: Path, target: str, field: str) -> None:
    async def main() -> None:
        async with locked(tmp_path) as (running, key), connect(url(running, target)) as client:
            assert grants(running) == 0
            await client.send(json.dumps({"text": " ", field: key}))
            await client.send(json.dumps({"text": "one two "}))
            await client.send(json.dumps({"text": "", "close_socket": target == MULTI}))
            frames, code = await read(client)
            assert (frames[-1]["isFinal"], code) == (True, 1000)
            assert len(frames) > 1

    uvloop.run(main())


def test_a_key_in_a_message_counts_for_its_account_until_the_socket_is_gone(tmp_path: Path) -> None:
    async def main() -> None:
        async with locked(tmp_path) as (running, key):
            async with connect(url(running, MULTI)) as client:
                message = {"text": "!endless ", "context_id": "c", "xi_api_key": key}
                await client.send(json.dumps(message))
                await client.recv()
                assert grants(running) == 1
                await client.send(json.dumps({"text": "x", "context_id": "c", "xi_api_key": "no"}))
                await client.recv()
                (peer,) = running.server.peers
                assert peer.grant is not None, "the first one counts"
                account = peer.grant.account
            await eventually(lambda: not running.engine.live)
            assert account is not None
            assert account.connections == 0

    uvloop.run(main())


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"text": "one two ", "xi_api_key": "ph_abcdefgh_wrong"}, "invalid_api_key"),
        ({"text": "one two ", "xi_api_key": "pht_wrong"}, "invalid_api_key"),
        ({"text": "one two "}, "invalid_api_key"),
        ({"text": "one ", "xi_api_key": "a", "authorization": "b"}, "invalid_input_message"),
    ],
)
def test_elevenlabs_without_a_right_key(
    tmp_path: Path, message: dict[str, Any], error: str
) -> None:
    async def main() -> None:
        async with locked(tmp_path) as (running, _), connect(url(running, SINGLE)) as client:
            await client.send(json.dumps(message))
            (told,), code = await read(client)
            assert (told["error"], told["code"], code) == (error, 1008, 1008)
            assert not running.engine.live
            assert not len(running.server.hub.registry)

    uvloop.run(main())


@pytest.mark.parametrize("target", [SINGLE, "/v1/twilio"])
def test_who_shows_nothing_does_not_stay(tmp_path: Path, target: str) -> None:
    async def main() -> None:
        async with (
            locked(tmp_path, hello_timeout=0.1) as (running, _),
            connect(url(running, target)) as client,
        ):
            frames, code = await read(client)
            assert code == 1008
            assert [frame["error"] for frame in frames] == (
                ["invalid_api_key"] if target == SINGLE else []
            )

    uvloop.run(main())


def test_other_protocols_want_their_key_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with locked(tmp_path) as (running, _):
            for target in ("/tts/websocket", "/v2/speak", "/v1/realtime", "/api/tts_streaming"):
                with pytest.raises(InvalidStatus) as caught:
                    await connect(url(running, target))
                assert caught.value.response.status_code == 401
                body = caught.value.response.body or b""
                if target == "/api/tts_streaming":
                    assert body == b""
                else:
                    assert b"no API key was sent" in body

    uvloop.run(main())


def call_start(**custom: str) -> str:
    start = {"streamSid": "MZ1", "customParameters": {"text": "one two", **custom}}
    return json.dumps({"event": "start", "streamSid": "MZ1", "start": start})


async def spoken(client: ClientConnection, start: str) -> int | None:
    """Play a call: marks come back. The close code."""
    await client.send(start)
    with contextlib.suppress(ConnectionClosed):
        async for frame in client:
            if json.loads(frame)["event"] == "mark":
                await client.send(frame)
    return client.close_code


def test_twilio_with_a_ticket_in_the_path_or_a_parameter(tmp_path: Path) -> None:
    async def main() -> None:
        async with locked(tmp_path) as (running, key):
            first, second = await ticket(running, key), await ticket(running, key)
            async with connect(url(running, f"/v1/twilio/{first}")) as client:
                assert await spoken(client, call_start()) == 1000
            async with connect(url(running, "/v1/twilio")) as client:
                assert await spoken(client, call_start(ticket=second)) == 1000
            async with connect(url(running, "/v1/twilio")) as client:
                assert await spoken(client, call_start(ticket=second)) == 1008, "used up"
            with pytest.raises(InvalidStatus) as caught:
                await connect(url(running, f"/v1/twilio/{first}"))
            assert caught.value.response.status_code == 401
            with pytest.raises(InvalidStatus) as caught:
                await connect(url(running, f"/v1/twilio/{key}"))
            assert caught.value.response.status_code == 400

    uvloop.run(main())


def test_twilio_must_sign_where_its_token_is_known() -> None:
    async def main() -> None:
        async with gateway(twilio_token="12345", twilio_url="wss://voice.example") as running:
            here = url(running, "/v1/twilio")
            good = {HEADER: signature("12345", "wss://voice.example/v1/twilio")}
            async with connect(here, additional_headers=good) as client:
                assert await spoken(client, call_start()) == 1000
            for bad in ({}, {HEADER: signature("54321", "wss://voice.example/v1/twilio")}):
                with pytest.raises(InvalidStatus) as caught:
                    await connect(here, additional_headers=bad)
                assert caught.value.response.status_code == 403
                assert json.loads(caught.value.response.body or b"")["code"] == "signature"
            async with connect(url(running, "/v1/speak?model=aura-2-thalia-en")):
                pass  # another vendor's client is not asked
        async with gateway(twilio_token="12345") as running:
            here = url(running, "/v1/twilio")
            good = {HEADER: signature("12345", here.replace("ws://", "wss://", 1))}
            async with connect(here, additional_headers=good):
                pass

    uvloop.run(main())
