"""The shaping proxy between real sockets, with short times."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from machine import PATIENCE, kept_waiting, undisturbed
from playhead.engine.clock import monotonic
from playhead.loadgen.client import open_session
from playhead.loadgen.habits import STRICT, Caller
from playhead.loadgen.judge import Cause, attribute
from playhead.loadgen.network import Proxy
from playhead.loadgen.plan import Plan
from playhead.loadgen.record import Record, Run
from playhead.loadgen.scripted import Script, ScriptedServer
from playhead.loadgen.shaping import Conditions
from playhead.loadgen.turn import Turn

TRIES = 5
SEED = 6  # its network stops for the first time after 0.8 s


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(4_096):
        writer.write(data)
    writer.close()


@contextlib.asynccontextmanager
async def through(
    conditions: Conditions,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with Proxy(f"ws://127.0.0.1:{port}/path", conditions, 0).running() as proxy:
            assert proxy.url.endswith("/path")
            host, _, moved = proxy.url.removeprefix("ws://").removesuffix("/path").partition(":")
            assert int(moved) != port
            reader, writer = await asyncio.open_connection(host, int(moved))
            yield reader, writer
            writer.close()


def test_bytes_pass_unchanged_and_the_end_too() -> None:
    async def talk() -> bytes:
        async with through(Conditions()) as (reader, writer):
            writer.write(bytes(range(256)) * 400)
            writer.write_eof()
            return await reader.read()

    assert asyncio.run(talk()) == bytes(range(256)) * 400


def test_delay_works_both_ways() -> None:
    async def talk() -> float:
        async with through(Conditions(delay=0.05)) as (reader, writer):
            begun = monotonic()
            writer.write(b"x")
            await reader.readexactly(1)
            return monotonic() - begun

    assert undisturbed(lambda: asyncio.run(talk()), below=0.6) >= 0.1


def test_bandwidth_limits() -> None:
    async def talk() -> float:
        async with through(Conditions(bandwidth=100_000)) as (reader, writer):
            begun = monotonic()
            writer.write(bytes(20_000))
            await reader.readexactly(20_000)
            return monotonic() - begun

    assert undisturbed(lambda: asyncio.run(talk()), below=1.0) >= 0.2


def test_a_reset_is_felt() -> None:
    async def talk() -> None:
        async with through(Conditions(reset_after=0.05)) as (reader, _):
            async with asyncio.timeout(PATIENCE):
                await reader.read()

    with pytest.raises(ConnectionResetError):
        asyncio.run(talk())


def test_a_black_hole_keeps_quiet() -> None:
    async def talk() -> None:
        async with through(Conditions(black_hole_after=0.0)) as (reader, writer):
            writer.write(b"x")
            async with asyncio.timeout(0.15):
                await reader.read()

    with pytest.raises(TimeoutError):
        asyncio.run(talk())


def test_a_server_that_is_not_there_refuses() -> None:
    async def talk() -> bytes:
        async with Proxy("ws://127.0.0.1:9/", Conditions(), 0).running() as proxy:
            host, _, port = proxy.url.removeprefix("ws://").strip("/").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            try:
                return await reader.read()
            finally:
                writer.close()

    with pytest.raises(ConnectionResetError):
        asyncio.run(talk())


def test_tls_cannot_be_shaped() -> None:
    async def talk() -> None:
        async with Proxy("wss://h/", Conditions(), 0).running():
            pass

    with pytest.raises(ValueError, match="only plain targets"):
        asyncio.run(talk())


def caused(script: Script, conditions: Conditions) -> Counter[Cause]:
    """One utterance through the proxy; the seconds of its stalls by cause."""

    async def talk() -> Counter[Cause]:
        async with (
            ScriptedServer(script).running() as own,
            Proxy(own, conditions, 3).running() as p,
        ):
            session = await open_session(p.url, Plan(p.url, 1.0), Caller(), 0)
            origin = monotonic()
            record = Record(0, 0.0, "Hello.", sample_rate=24_000, codec="pcm_s16le")
            record.round_trip = session.round_trip
            assert session.offset is not None
            record.offset = session.offset + origin
            end = origin + PATIENCE
            turn = Turn(record, STRICT, session.link, origin=origin, deadline=end)
            await session.speak(turn, end)
            await session.close()
            assert record.finish == "complete"
            seconds: Counter[Cause] = Counter()
            for each in record.stalls:
                seconds.update(attribute(each, record, Run({}, [record])).shares)
            return seconds

    return asyncio.run(talk())


def assert_guilty(script: Script, conditions: Conditions, guilty: Cause, seconds: float) -> None:
    """For so many seconds at least, and nobody else. Server, network and listener are one thread
    here: what the machine kept it waiting may count for anybody, and the listener may have missed
    as much of the stall. So it is looked at again while the machine kept it waiting for long."""
    for _ in range(TRIES):
        with kept_waiting() as kept:
            found = caused(script, conditions)
        if kept.in_turn < seconds / 2:
            break
    others = sum(found.values()) - found[guilty]
    assert found[guilty] > max(0.0, seconds - kept.in_turn), found
    assert others < 0.05 + kept.in_turn, found


def test_a_stalled_network_is_found_guilty() -> None:
    # A chunk of 100 ms every 100 ms, 300 ms ahead, and a network that stops for 600 ms.
    steady = Script(tuple((max(0.0, 0.1 * n - 0.3), 2_400) for n in range(20)))
    conditions = Conditions(delay=0.01, stall_every=0.5, stall=(0.6, 0.6))
    assert_guilty(steady, conditions, Cause.NETWORK, 0.2)


def test_a_late_server_is_found_guilty_behind_the_same_network() -> None:
    late = Script(((0.0, 2_400), (0.4, 2_400)))
    assert_guilty(late, Conditions(delay=0.01), Cause.ENGINE, 0.25)
