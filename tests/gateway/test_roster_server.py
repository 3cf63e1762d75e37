"""`/v1/sessions`: who may see it, and what it says of real sessions."""

import asyncio
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from harness import Gateway, gateway
from live import live_server
from machine import PATIENCE
from playhead import client
from playhead.gateway import roster_server


def ask(port: int, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/sessions", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as fault:
        return fault.code, fault.read().decode()


async def rows(port: int) -> list[dict[str, Any]]:
    status, text = await asyncio.to_thread(ask, port)
    assert status == 200, text
    return list(json.loads(text)["rows"])


async def row_with(port: int, what: str) -> dict[str, Any]:
    """The only session's, once this is known."""
    async with asyncio.timeout(PATIENCE):
        while True:
            (row,) = await rows(port)
            if row.get(what) not in (None, ""):
                return row
            await asyncio.sleep(0.02)


def test_a_session_that_is_spoken_to() -> None:
    async def main() -> None:
        async with (
            live_server() as url,
            client.connect(url, codec="mulaw", sample_rate=8000) as voice,
        ):
            port = int(url.rpartition(":")[2])
            (idle,) = await rows(port)
            assert (idle["dialect"], idle["codec"]) == ("playhead", "mulaw")
            assert (len(idle["session"]), idle["utterance"]) == (8, None)
            utterance = voice.speak("a sentence that takes a while to be spoken " * 4)
            async for _ in utterance:
                break
            row = await row_with(port, "lane")
            assert row["session"] == idle["session"]
            assert row["lane"] in ("urgent", "background")
            assert 0 < row["slack"] <= row["lead"] + 1000
            assert row["stalls"] == 0

    asyncio.run(main())


def test_it_is_as_closed_as_the_view_of_the_lanes() -> None:
    async def main() -> None:
        async with gateway(demo="off") as running:
            status, text = await asyncio.to_thread(ask, running.port)
            assert (status, "--demo" in text) == (403, True)
        async with gateway() as running:
            headers = {"Origin": "https://elsewhere.example"}
            status, _ = await asyncio.to_thread(ask, running.port, **headers)
            assert status == 403

    asyncio.run(main())


def test_with_keys_it_takes_one(tmp_path: Path) -> None:
    from playhead.gateway import cli

    file = tmp_path / "keys"
    assert cli.main(["keys", "add", "--name", "me", "--keys", str(file)], {}) == 0

    async def main() -> None:
        async with gateway(keys=str(file)) as running:
            status, _ = await asyncio.to_thread(ask, running.port)
            assert status == 401

    asyncio.run(main())


def test_one_look_serves_all_who_ask_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roster_server, "AS_NEW_AS", 60.0)

    async def main() -> None:
        async with gateway() as running:
            first = await rows(running.port)
            await running.greeted()
            assert await rows(running.port) == first == []

    asyncio.run(main())


def test_an_engine_that_does_not_answer_costs_only_the_beliefs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(roster_server, "PATIENCE", 0.05)

    async def main() -> None:
        async with gateway(interval=1.0) as running:
            silence(running)
            talker = await running.greeted()
            await talker.say("hello there")
            row = await row_with(running.port, "utterance")
            assert "depth" not in row

    asyncio.run(main())


def silence(running: Gateway) -> None:
    def look(utterances: Any, see: Any) -> None:
        """Dead engines never answer."""

    running.engine.look = look  # type: ignore[method-assign]
