"""Paths, who may ask, and the bounds of the listener."""

import asyncio
from typing import Any

import pytest
from api_kit import SPEECH, api, error
from harness import eventually
from machine import AT_ONCE, PATIENCE


def get(path: str, method: str = "GET", headers: dict[str, str] | None = None) -> tuple[int, Any]:
    async def check() -> tuple[int, Any]:
        async with api() as client:
            return await client.get(path, method, **(headers or {}))

    return asyncio.run(check())


def test_models_and_voices_are_listed() -> None:
    status, models = get("/v1/models")
    assert (status, models["data"][0]["id"]) == (200, "fake")
    assert models["data"][0]["created"] > 1_600_000_000
    assert get("/v1/models/fake")[1]["id"] == "fake"
    assert get("/v1/voices")[1]["voices"] == ["alto", "tenor"]
    assert get("/v1/audio/voices") == get("/v1/voices")
    assert get("/openapi.json")[1]["openapi"].startswith("3.1")


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/v1/models/nothing", "GET", 404),
        ("/nowhere", "GET", 404),
        (SPEECH, "GET", 405),
        ("/v1/models", "POST", 405),
        ("/v1/voices", "POST", 405),  # nobody can bring a voice along
        ("/v1/audio/voices", "POST", 405),
        ("/v1/audio/voices", "PUT", 405),
        ("/v1/audio/voice_consents", "POST", 404),
        ("/v1/voices/add", "POST", 404),
        ("/voices/clone", "POST", 404),
    ],
)
def test_wrong_paths_and_methods_have_the_same_shape(path: str, method: str, status: int) -> None:
    got, body = get(path, method)
    assert got == status
    assert set(body["error"]) == {"message", "type", "param", "code"}


def test_pages_of_other_sites_are_refused() -> None:
    status, body = get("/v1/voices", headers={"origin": "https://evil.example"})
    assert (status, body["error"]["code"]) == (403, "origin")
    assert get("/v1/voices", headers={"origin": "http://127.0.0.1:9"})[0] == 200


def test_a_dead_engine_is_told() -> None:
    async def check() -> None:
        async with api() as client:
            client.engine.dead = RuntimeError("gone")
            status, fault = await error(await client.speak("hello"))
            assert (status, fault["code"]) == (503, "not_ready")

    asyncio.run(check())


def test_an_address_has_so_many_connections() -> None:
    async def check() -> None:
        async with api(max_connections_per_address=2) as client:
            idle = [await client.connect() for _ in range(2)]
            status, body = await client.get("/v1/voices")
            assert (status, body["error"]["code"]) == (429, "connections_per_address")
            assert body["error"]["type"] == "rate_limit_error"
            for each in idle:
                each.leave()

            async def served() -> bool:
                return (await client.get("/v1/voices"))[0] == 200

            async with asyncio.timeout(PATIENCE):
                while not await served():
                    await asyncio.sleep(0.01)

    asyncio.run(check())


def test_a_flood_of_connections_is_cut() -> None:
    async def check() -> None:
        async with api(max_connections=1) as client:
            crowd = [await client.connect() for _ in range(110)]
            ends = await asyncio.gather(*(each.reader.read() for each in crowd[103:]))
            assert ends == [b""] * len(ends)
            for each in crowd:
                each.leave()

    asyncio.run(check())


@pytest.mark.parametrize(
    "sent", [b"", b"GET /v1/voices HT", b"GET /v1/voices HTTP/1.1\r\nhost: a\r\n"]
)
def test_a_head_that_does_not_come_ends_the_connection(sent: bytes) -> None:
    async def check() -> None:
        async with api(open_timeout=0.2) as client:
            asked = await client.connect()
            asked.writer.write(sent)
            assert await asyncio.wait_for(asked.reader.read(), AT_ONCE) == b""
            asked.leave()

    asyncio.run(check())


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async def check() -> None:
        async with api(open_timeout=0.2) as client:
            asked = await client.connect()
            head = f"POST {SPEECH} HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n"
            asked.writer.write(head.encode())
            line = await asyncio.wait_for(asked.reader.readline(), AT_ONCE)
            assert b"408" in line
            asked.leave()

    asyncio.run(check())


def test_a_client_that_leaves_inside_its_body_is_forgotten() -> None:
    async def check() -> None:
        async with api() as client:
            asked = await client.connect()
            head = f"POST {SPEECH} HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n"
            asked.writer.write(head.encode())
            await asyncio.sleep(0.05)
            asked.leave()
            await eventually(lambda: not len(client.gateway.server.hub.registry))
            assert (await client.get("/v1/voices"))[0] == 200

    asyncio.run(check())


def test_a_body_over_the_limit_is_refused() -> None:
    async def check() -> None:
        async with api() as client:
            asked = await client.connect()
            await asked.begin("POST", SPEECH, b" " * 200_000)
            assert (await error(asked))[0] == 413

    asyncio.run(check())
