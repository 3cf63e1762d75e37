"""The ear that listens to every test of the gateway and the client hears what it should."""

import asyncio
import logging
from pathlib import Path

import pytest
import uvloop
from harness import gateway
from playhead.client import ConnectionFailed, connect
from playhead.gateway.access_file import edit
from playhead.gateway.access_keys import KeyRing, new_key
from playhead.gateway.access_tickets import Tickets
from playhead.gateway.messages import ResumeFrom
from playhead.gateway.registry import new_secret
from secret_ear import SERVER, Listening, listening
from websockets.asyncio.server import ServerConnection, serve
from websockets.frames import Frame


@pytest.mark.parametrize("kind", ["key", "ticket", "fault", "token"])
def test_a_secret_in_a_line_or_a_fault_is_heard(kind: str) -> None:
    key, ticket = new_key("a client", 0.0)[0], Tickets().give("abcdefgh", 0.0)
    ear, log = Listening(), logging.Logger("apart")
    log.addHandler(ear)
    if kind == "fault":
        log.error("it broke", exc_info=ValueError(key))
    elif kind == "token":
        log.debug("%s", ResumeFrom("an id", f"node.{new_secret()}", 1))
    else:
        log.warning("shown: %s", key if kind == "key" else ticket)
    (heard,) = ear.found
    assert "SECRET" in heard
    assert key not in heard
    log.warning("ph_abcdefgh and pht_ and token=short are no secrets")
    assert len(ear.found) == 1


@pytest.mark.parametrize("logger", ["playhead.gateway.anything", SERVER, "playhead.client.x"])
def test_every_level_is_heard(logger: str) -> None:
    key = new_key("a client", 0.0)[0]
    log = logging.getLogger(logger)
    before = log.level
    with listening() as ear:
        for level in (logging.DEBUG, logging.INFO, logging.ERROR):
            log.log(level, "%s", key)
    assert len(ear.found) == 3
    assert log.level == before


def test_what_the_library_would_tell_is_heard() -> None:
    """A server that gives the library its own logger shows its clients' keys."""

    async def answer(_: ServerConnection) -> None:
        """Hangs up."""

    async def main() -> None:
        key = new_key("a client", 0.0)[0]
        with listening() as ear:
            async with serve(answer, "127.0.0.1", 0) as server:
                port = server.sockets[0].getsockname()[1]
                with pytest.raises(ConnectionFailed, match="hung up"):
                    async with connect(f"ws://127.0.0.1:{port}", key=key):
                        pass
        assert [line for line in ear.found if line.startswith(f"{SERVER} (DEBUG): < Auth")]

    asyncio.run(main())


def test_our_server_and_client_show_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Handshakes and whole frames of both sides, whatever the levels say."""
    monkeypatch.setattr(Frame, "MAX_LOG_SIZE", 100_000)
    key, kept = new_key("a client", 0.0)
    with edit(tmp_path / "keys.json") as put:
        put(KeyRing([kept]))

    async def main() -> None:
        async with gateway(keys=str(tmp_path / "keys.json")) as running:
            async with connect(running.url, encoding="json", key=key) as voice:
                await voice.ping()
            caplog.clear()
            with pytest.raises(ConnectionFailed):
                async with connect(running.url, key=key[:-1]):
                    pass

    with caplog.at_level(logging.DEBUG, logger="websockets.client"):
        uvloop.run(main())
    assert key[-20:-1] not in caplog.text
