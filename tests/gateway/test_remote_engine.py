"""The engine's door over a Unix socket: what gateways ask, what they hear, and who may vanish."""

import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from fake_engine import CHUNK, INFO, FakeEngine, wave
from machine import AT_ONCE, PATIENCE, eventually
from playhead.engine import garbage
from playhead.engine.loop import Engine
from playhead.engine.picture import EnginePicture
from playhead.engine.remote import door, server, wire
from playhead.engine.remote.door import NoEngine, RemoteEngine, introduce
from playhead.engine.remote.server import EngineServer
from playhead.engine.types import (
    AudioChunk,
    EngineEvent,
    Finish,
    Finished,
    ListenerState,
    Report,
    Request,
)
from playhead.gateway import engine_process, engines
from playhead.gateway.models import StartError

PROGRAM = Path(__file__).with_name("fake_runner.py")
TIMEOUT = PATIENCE


def packed(*messages: wire.FromGateway | wire.FromEngine) -> bytes:
    return b"".join(wire.Packer().pack(messages))


class World:
    """An engine's process and its gateways, all on one loop."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.server = EngineServer(self._open)

    def _open(self, deliver: Callable[[list[EngineEvent]], None]) -> Engine:
        self.engine = FakeEngine(deliver)
        self.engine.start()
        return cast("Engine", self.engine)

    async def gateway(self) -> "Gateway":
        introduction = await asyncio.to_thread(introduce, self.path, TIMEOUT)
        return Gateway(introduction)


class Gateway:
    """A gateway's end, and what it heard."""

    def __init__(self, introduction: door.Introduction) -> None:
        self.events: list[EngineEvent] = []
        self.first = introduction.hello.first
        self.engine = RemoteEngine(introduction, self.events.extend)
        self.engine.start()

    def ask(self, utterance: int, text: str = "") -> None:
        self.engine.submit(Request(utterance, f"client-{utterance}", "alto"))
        if text:
            self.engine.push_text(utterance, text, end=True)

    def finished(self, utterance: int) -> Finished | None:
        found = (e for e in self.events if isinstance(e, Finished) and e.utterance == utterance)
        return next(found, None)

    def pcm(self, utterance: int) -> list[float]:
        chunks = [e for e in self.events if isinstance(e, AudioChunk) and e.utterance == utterance]
        return [float(x) for chunk in chunks for x in chunk.pcm]


class FakeGc:
    """As much has come and stayed as is told; a collection frees all of it."""

    def __init__(self) -> None:
        self.count = 0

    def get_count(self) -> tuple[int, int, int]:
        return self.count, 0, 0

    def collect(self) -> int:
        found, self.count = self.count, 0
        return found


@contextlib.asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    made = World(str(folder / "engine"))
    await made.server.start(made.path)
    try:
        yield made
    finally:
        made.server.stop()


def run(folder: Path, test: Callable[[World], Awaitable[None]]) -> None:
    async def inside() -> None:
        async with world(folder) as made:
            await asyncio.wait_for(test(made), TIMEOUT)

    asyncio.run(inside())


def test_speech_crosses_sample_by_sample(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        gateway = await world.gateway()
        assert gateway.engine.info == INFO
        gateway.ask(gateway.first, "one two three")
        await eventually(lambda: gateway.finished(gateway.first))
        finished = gateway.finished(gateway.first)
        assert finished is not None
        assert (finished.reason, finished.samples) == (Finish.COMPLETE, 3 * CHUNK)
        np.testing.assert_array_equal(gateway.pcm(gateway.first), wave(0, 3 * CHUNK))

    run(tmp_path, test)


def test_everything_a_gateway_can_ask_arrives(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        gateway, engine = await world.gateway(), world.engine
        number = gateway.first
        gateway.ask(number, "!endless")
        await eventually(lambda: engine.live)
        report = Report(number, 9, 4, 3, 5, 0, ListenerState.PLAYING)
        gateway.engine.report(report, 1.0)
        gateway.engine.hold(number, ListenerState.PAUSED, 1.5)
        gateway.engine.delay("client", 0.03)
        gateway.engine.forget("client")
        gateway.engine.paused(0.4, 2.0)
        seen: list[EnginePicture] = []
        gateway.engine.look([number, 5], seen.append)
        await eventually(lambda: seen)
        assert engine.reports == [report]
        assert engine.holds == [(number, ListenerState.PAUSED)]
        assert engine.delays == [("client", 0.03)]
        assert engine.forgotten == ["client"]
        slot = gateway.first % wire.STRIDE
        assert engine.pauses == [(0.4, 2.0, slot)]
        assert [request.gateway for request in engine.requests] == [slot]
        assert set(seen[0].beliefs) == {number}
        gateway.engine.cancel(number)
        await eventually(lambda: gateway.finished(number))
        await eventually(lambda: gateway.engine.stats().reports == 1)

    run(tmp_path, test)


def test_one_gateway_shows_the_engine_s_figures_and_another_when_it_leaves(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        mates = [await world.gateway() for _ in range(3)]
        await eventually(lambda: mates[0].engine.tells)
        mates[1].engine.stop()
        await eventually(lambda: len(world.server.gateways) == 2)
        assert [mate.engine.tells for mate in mates] == [True, False, False]
        mates[0].engine.stop()
        await eventually(lambda: mates[2].engine.tells)
        fourth = await world.gateway()
        mates[2].engine.stop()
        await eventually(lambda: fourth.engine.tells)
        fourth.engine.stop()
        await eventually(lambda: not world.server.gateways)
        last = await world.gateway()
        await eventually(lambda: last.engine.tells)

    run(tmp_path, test)


def test_gateways_hear_only_what_is_theirs(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        one, two = await world.gateway(), await world.gateway()
        assert one.first % wire.STRIDE != two.first % wire.STRIDE
        one.ask(one.first, "a b")
        two.ask(two.first, "c")
        await eventually(lambda: one.finished(one.first) and two.finished(two.first))
        assert {event.utterance for event in one.events} == {one.first}
        assert {event.utterance for event in two.events} == {two.first}

    run(tmp_path, test)


def test_a_gateway_that_vanishes_takes_its_speech_along_and_nobody_else_s(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        one, two = await world.gateway(), await world.gateway()
        one.ask(one.first, "!endless")
        two.ask(two.first, "!endless")
        await eventually(lambda: one.pcm(one.first) and two.pcm(two.first))
        one.engine.stop()
        await eventually(lambda: world.engine.cancelled == [one.first])
        await eventually(lambda: world.engine.forgotten == [f"client-{one.first}"])
        assert not [event for event in one.events if isinstance(event, Finished)]
        heard = len(two.events)
        await eventually(lambda: len(two.events) > heard)
        later = await world.gateway()
        assert later.first == one.first + wire.STRIDE, "its number is never used again"

    run(tmp_path, test)


def test_what_ends_late_is_not_told_to_who_came_after(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        one = await world.gateway()
        one.ask(one.first, "!endless")
        await eventually(lambda: world.engine.live)
        one.engine.stop()
        await eventually(lambda: not world.server.gateways)
        later = await world.gateway()
        world.server.deliver([Finished(one.first, Finish.CANCELLED, 0)])
        later.ask(later.first, "word")
        await eventually(lambda: later.finished(later.first))
        assert {event.utterance for event in later.events} == {later.first}

    run(tmp_path, test)


def test_when_the_engine_s_process_ends_all_are_told_once(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        gateway = await world.gateway()
        number = gateway.first
        gateway.ask(number, "!endless")
        await eventually(lambda: gateway.pcm(number))
        world.server.stop()
        await eventually(lambda: gateway.engine.dead)
        finished = gateway.finished(number)
        assert finished is not None
        assert (finished.reason, finished.code) == (Finish.FAILED, "engine_error")
        assert finished.samples == len(gateway.pcm(number))
        gateway.ask(number + wire.STRIDE, "late")
        late = gateway.finished(number + wire.STRIDE)
        assert late is not None
        assert (late.reason, late.samples) == (Finish.FAILED, 0)
        gateway.engine.stop()

    run(tmp_path, test)


def test_an_engine_that_dies_says_why(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        gateway = await world.gateway()
        gateway.ask(gateway.first, "!endless")
        await world.server.tell_dead("RunnerDead: the device is gone")
        await eventually(lambda: gateway.engine.dead)
        assert str(gateway.engine.dead) == "RunnerDead: the device is gone"
        assert gateway.finished(gateway.first)

    run(tmp_path, test)


@pytest.mark.parametrize(
    "frame",
    [
        b"\x00\x00\x00\x01\xc1",
        b"\xff\xff\xff\xff",
        packed(wire.Submit(Request(0, "c", "v"))),
    ],
)
def test_a_gateway_that_talks_nonsense_is_cut_off_alone(tmp_path: Path, frame: bytes) -> None:
    async def test(world: World) -> None:
        good, bad = await world.gateway(), await world.gateway()
        await eventually(lambda: bad.engine._transport)
        transport = bad.engine._transport
        assert transport is not None
        transport.write(frame)
        await eventually(lambda: bad.engine.dead)
        good.ask(good.first, "still here")
        await eventually(lambda: good.finished(good.first))

    run(tmp_path, test)


def test_a_gateway_that_does_not_read_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_UNREAD", 100_000)

    async def test(world: World) -> None:
        deaf = await asyncio.to_thread(introduce, world.path, TIMEOUT)
        frame = packed(
            wire.Submit(Request(deaf.hello.first, "deaf", "alto")),
            wire.Text(deaf.hello.first, "!endless", False, True),
        )
        deaf.sock.sendall(frame)
        await eventually(lambda: world.engine.cancelled == [deaf.hello.first])
        assert world.server.gateways == {}
        deaf.sock.close()

    run(tmp_path, test)


def test_pictures_that_nobody_answers_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "MOST_PICTURES", 2)

    async def test(world: World) -> None:
        gateway = await world.gateway()
        seen: list[int] = []
        for number in range(3):
            gateway.engine.look([], lambda _, number=number: seen.append(number))
        await eventually(lambda: len(seen) == 2)
        assert seen == [1, 2]

    run(tmp_path, test)


def test_a_full_engine_refuses_one_more_gateway(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        gateway = await world.gateway()
        await eventually(lambda: world.server.gateways)
        (held,) = world.server.gateways.values()
        world.server.gateways.update(dict.fromkeys(range(1, wire.STRIDE), held))
        with pytest.raises(NoEngine, match="no room for one more gateway"):
            await asyncio.to_thread(introduce, world.path, TIMEOUT)
        gateway.engine.stop()

    run(tmp_path, test)


def test_where_no_engine_listens_a_gateway_is_told(tmp_path: Path) -> None:
    path = str(tmp_path / "nothing")
    with pytest.raises(NoEngine, match=r"no engine answers at .*nothing"):
        introduce(path, 1.0)
    with pytest.raises(StartError, match=r"--engine .*nothing: .*playhead engine --socket"):
        engines.elsewhere(path, patience=0.0)


def test_a_path_that_can_never_be_an_engine_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="path too long"):
        engines.elsewhere(str(tmp_path / ("x" * 200)))


def test_a_dead_engine_s_socket_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    left = tmp_path / "engine"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left))
    (tmp_path / "file").write_text("mine", encoding="utf-8")

    async def test(world: World) -> None:
        other = EngineServer(world._open)
        for path, why in ((world.path, "another engine answers"), ("file", "is no socket")):
            with pytest.raises(OSError, match=why):
                await other.start(str(tmp_path / path))
        other.stop()
        await world.gateway()

    run(tmp_path, test)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (packed(wire.Dead("")), "does not say hello"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "bytes"),
    ],
)
def test_what_is_no_engine_is_recognized(tmp_path: Path, said: bytes, why: str) -> None:
    path = str(tmp_path / "other")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        async def test() -> None:
            asking = asyncio.create_task(asyncio.to_thread(introduce, path, TIMEOUT))
            other, _ = await asyncio.to_thread(listener.accept)
            with other:
                other.sendall(said)
                with pytest.raises(NoEngine, match=why):
                    await asking

        asyncio.run(test())


def test_a_gateway_may_leave_before_it_has_begun(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        introduction = await asyncio.to_thread(introduce, world.path, TIMEOUT)
        RemoteEngine(introduction, lambda _: None).stop()
        await eventually(lambda: not world.server.gateways)

    run(tmp_path, test)


# -- whole processes --------------------------------------------------------------------------


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url + "readyz", timeout=PATIENCE) as answer:
            return int(answer.status)
    except OSError:
        return 0


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def named(pids: list[int], word: str) -> list[int]:
    return [p for p in pids if word in Path(f"/proc/{p}/cmdline").read_text().split("\0")]


@contextlib.contextmanager
def supervised(*flags: str):  # type: ignore[no-untyped-def]
    command = [sys.executable, str(PROGRAM), "serve", "--port", "0", "--http-port", "off", *flags]
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    environ["PYTHONPATH"] = os.pathsep.join([str(PROGRAM.parent), *sys.path])
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def slots(urls: Iterable[str]) -> list[float]:
    """What gateways show of the number of an engine's slots."""
    found = []
    for url in urls:
        with urllib.request.urlopen(url + "metrics", timeout=PATIENCE) as answer:
            text = answer.read().decode()
        found += re.findall(r"^playhead_engine_max_utterances (\S+)$", text, re.MULTILINE)
    return [float(number) for number in found]


def test_an_engine_that_is_killed_comes_back_with_its_gateways() -> None:
    with supervised("--gateways", "2") as process:
        ready = [process.stdout.readline() for _ in range(2)]
        urls = [line.rpartition(" ")[2].strip() for line in ready]
        assert [status(url) for url in urls] == [200, 200]
        (engine,) = named(children(process.pid), "engine")
        os.kill(engine, signal.SIGKILL)
        again = [process.stdout.readline() for _ in range(2)]
        assert all("is ready" in line for line in again)
        process.terminate()
        out, err = process.communicate(timeout=AT_ONCE)
    assert process.returncode == 0, err
    assert out.count("is stopping") == 2
    assert err.count("ended with 70") == 2, err
    assert "-engine-0 ended with -9; again in 0 s" in err


def test_a_gateway_that_is_killed_comes_back_and_its_mate_never_stops() -> None:
    with supervised("--gateways", "2") as process:
        ready = [process.stdout.readline() for _ in range(2)]
        urls = {line.rpartition(" ")[2].strip() for line in ready}
        assert len(slots(urls)) == 1
        (first, _) = named(children(process.pid), "--engine")
        os.kill(first, signal.SIGKILL)
        again = process.stdout.readline()
        assert "is ready" in again
        assert sorted(status(url) for url in urls) == [0, 200]
        urls = {url for url in urls if status(url)} | {again.rpartition(" ")[2].strip()}
        until = time.monotonic() + PATIENCE
        while slots(urls) != [64.0] and time.monotonic() < until:
            time.sleep(0.02)
        assert slots(urls) == [64.0]  # of the engine that both speak through
        (_,) = named(children(process.pid), "engine")
        process.terminate()
        _, err = process.communicate(timeout=AT_ONCE)
    assert process.returncode == 0, err


def test_an_engine_that_cannot_be_reached_by_its_path_says_so(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROGRAM.parent), *sys.path])}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "engine", "--socket", str(tmp_path / "no" / "where")],
        capture_output=True,
        text=True,
        env=environ,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 1
    assert "--socket" in done.stderr
    assert "cannot be had" in done.stderr


def test_an_engine_that_is_told_to_stop_stops(tmp_path: Path) -> None:
    path = tmp_path / "engine"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROGRAM.parent), *sys.path])}
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), "engine", "--socket", str(path)],
        stderr=subprocess.PIPE,
        text=True,
        env=environ,
    ) as process:
        assert process.stderr is not None
        assert any("is ready" in line for line in process.stderr)
        assert path.stat().st_mode & 0o777 == 0o600
        process.terminate()
        assert process.wait(AT_ONCE) == 0


def test_an_engine_s_process_looks_for_garbage_when_nobody_speaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = FakeGc()
    monkeypatch.setattr(garbage, "gc", made)
    monkeypatch.setattr(engine_process, "ENGINE_CHECK", 0.001)

    async def main() -> None:
        async with world(tmp_path) as w:
            looks, look = [], garbage.Keeper.look
            monkeypatch.setattr(garbage.Keeper, "look", lambda own: looks.append(look(own)))
            stop = asyncio.Event()
            watching = asyncio.create_task(engine_process._until_stopped(w.server, stop))
            gateway = await w.gateway()
            assert not w.server.speaking
            gateway.ask(gateway.first)
            await eventually(lambda: w.server.speaking)
            assert w.server.living == 3, "a gateway, an utterance, a client"
            made.count = garbage.FLOOR + 3 * garbage.EACH
            before = len(looks)
            await eventually(lambda: len(looks) > before + 2)
            assert made.count, "somebody speaks"
            gateway.engine.cancel(gateway.first)
            await eventually(lambda: not made.count)
            assert not w.server.speaking
            stop.set()
            assert await watching is False

    asyncio.run(main())
