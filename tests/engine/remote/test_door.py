"""What a gateway tells the engine leaves in few frames, in order, and soon."""

import asyncio
import select
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from machine import PATIENCE
from playhead.engine.remote import door, wire
from playhead.engine.remote.door import Introduction, NotYet, RemoteEngine, introduce
from playhead.engine.stats import EngineStats
from playhead.engine.types import ListenerState, ModelInfo, Report
from virtual import run_virtually

INFO = ModelInfo("model", ("alto",), 24_000, 1_920, (1, 2, 4), 2)


class Transport(asyncio.Transport):
    """Keeps what is written, frame by frame."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[list[wire.FromGateway]] = []

    def close(self) -> None:
        pass

    def writelines(self, parts: object) -> None:
        data = b"".join(cast("list[bytes]", parts))
        self.frames += [wire.Unpacker().from_gateway(each) for each in wire.Frames().feed(data)]


def engine() -> tuple[RemoteEngine, Transport]:
    hello = wire.Hello(INFO, EngineStats(0.0, 0, 1, 0.0, {}, 0, 0, 0, 0, 0, 0, 0.0, {}), 1)
    sock = socket.socket()
    sock.close()
    introduction = Introduction(sock, hello, wire.Frames(), wire.Unpacker(), ())
    made, transport = RemoteEngine(introduction, lambda events: None), Transport()
    made.connection_made(transport)
    return made, transport


def report(received: int) -> Report:
    return Report(1, received, 0, 0, received, 0, ListenerState.PLAYING)


def kinds(transport: Transport) -> list[list[str]]:
    return [[type(message).__name__ for message in frame] for frame in transport.frames]


def test_reports_gather_over_turns_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "GATHER", 0.05)

    async def test() -> None:
        remote, transport = engine()
        for received in range(5):
            remote.report(report(received), 0.0)
            await asyncio.sleep(0)
        assert transport.frames == [], "they wait for each other"
        await asyncio.sleep(0.1)
        assert kinds(transport) == [["Reported"] * 5]
        remote.report(report(9), 0.0)
        await asyncio.sleep(0.1)
        assert kinds(transport)[1:] == [["Reported"]], "and again"

    run_virtually(test())


def test_nothing_is_written_once_the_engine_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "GATHER", 0.01)

    async def test() -> None:
        for ends in (True, False):
            remote, transport = engine()
            remote.report(report(1), 0.0)
            remote.connection_lost(None) if ends else remote.stop()
            written = len(transport.frames)
            remote.report(report(2), 0.0)
            await asyncio.sleep(0.05)
            assert len(transport.frames) == written

    asyncio.run(test())


def test_what_is_asked_takes_the_reports_along_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "GATHER", 60.0)

    async def test() -> None:
        remote, transport = engine()
        remote.report(report(1), 0.0)
        remote.cancel(1)
        remote.report(report(2), 0.0)
        for _ in range(3):
            await asyncio.sleep(0)
        assert kinds(transport) == [["Reported", "Cancel", "Reported"]]

    asyncio.run(test())


def test_an_engine_that_ends_before_it_says_hello_may_be_followed_by_another(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "engine")
    with ThreadPoolExecutor(1) as pool:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            asking = pool.submit(introduce, path, PATIENCE)
            assert select.select([listener], [], [], PATIENCE)[0]
        with pytest.raises(NotYet):
            asking.result(PATIENCE)
