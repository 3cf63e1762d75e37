"""Races for one session, the quick form: ``bench/reliability/races.py`` runs 500 of them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from client_stub import READY
from live import live_gateway
from machine import AT_ONCE, PATIENCE
from playhead.engine.lead import parse_lead
from playhead.gateway import access_watch
from playhead.gateway import messages as m
from playhead.gateway.access_file import edit
from playhead.gateway.access_keys import KeyRing, new_key
from playhead.gateway.protocol import Wire
from playhead.gateway.server import GatewayServer
from races import LOOK, RESTART, TAKEN_OVER, Race, Verdict, nothing_left
from races_plan import Kind, Times, plan
from races_socket import Said, Socket
from websockets.asyncio.server import Response, ServerConnection, serve
from websockets.typing import Subprotocol

BRIEF = Times(words=4)
FLAGS: dict[str, Any] = {
    "lead": parse_lead("0.3"),
    "max_connections_per_address": 1000,
    "hello_timeout": PATIENCE,  # hands are shaken long before, on a busy machine
}


def url_of(server: GatewayServer) -> str:
    return f"ws://127.0.0.1:{server.port}/v1/session"


async def all_of(races: Iterable[Race]) -> list[Verdict]:
    return list(await asyncio.gather(*(race.run() for race in races)))


async def among_themselves() -> list[Verdict]:
    kinds = (Kind.TWINS, Kind.NEWEST, Kind.CLOSE, Kind.END)
    async with live_gateway(**FLAGS) as server:
        url = url_of(server)
        plans = [plan(1, kind, number, BRIEF) for kind in kinds for number in range(3)]
        verdicts = await all_of(Race(url, each) for each in plans)
        await nothing_left(url)
        assert (len(server.hub.registry), server.hub.routes) == (0, 0)
        return verdicts


async def against_a_drain() -> list[Verdict]:
    async with live_gateway(**FLAGS, drain_timeout=20.0) as server:
        url, plans = url_of(server), [plan(1, Kind.DRAIN, number, BRIEF) for number in range(3)]
        together, draining = asyncio.Barrier(3), list[asyncio.Task[None]]()

        async def go() -> None:
            if not draining:
                draining.append(asyncio.create_task(server.drain()))

        verdicts = await all_of(Race(url, p, start=together.wait, strike=go) for p in plans)
        await draining[0]
        return verdicts


async def against_the_grace_time() -> list[Verdict]:
    async with live_gateway(**FLAGS, grace=0.4) as server:
        plans = [plan(1, Kind.GRACE, number, replace(BRIEF, grace=0.4)) for number in range(3)]
        verdicts = await all_of(Race(url_of(server), each) for each in plans)
        await nothing_left(url_of(server))
        return verdicts


async def against_revocation(path: Path) -> list[Verdict]:
    keys = [new_key(f"client {number}", 0.0) for number in range(3)]

    def write(*kept: int) -> None:
        with edit(path) as put:
            put(KeyRing(keys[number][1] for number in kept))

    async def revoke() -> None:
        write()

    write(0, 1, 2)
    async with live_gateway(**FLAGS, keys=str(path)) as server:
        url, times = url_of(server), replace(BRIEF, revoked=0.1)
        verdicts = await all_of(
            Race(url, plan(1, Kind.REVOKED, n, times), key=keys[n][0], strike=revoke)
            for n in range(3)
        )
        await nothing_left(url)
        return verdicts


def test_in_each_race_at_most_one_has_the_session_and_no_sound_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_watch, "CHECK", 0.02)

    async def main() -> list[list[Verdict]]:
        return await asyncio.gather(
            among_themselves(),
            against_a_drain(),
            against_the_grace_time(),
            against_revocation(tmp_path / "keys.json"),
        )

    verdicts = [verdict for found in asyncio.run(main()) for verdict in found]
    assert [(v.plan, v.faults, v.ends) for v in verdicts if v.faults] == []
    assert len(verdicts) == 12 + 3 + 3 + 3
    must = (Kind.TWINS, Kind.NEWEST, Kind.END, Kind.DRAIN)
    assert all(v.won == 1 and v.whole for v in verdicts if v.plan.kind in must)


@pytest.mark.parametrize(
    ("seqs", "fault"),
    [((1, 2, 4), "message 4 came after 2"), ((1, 2, 2), "message 2 came after 2"), ((1, 2, 3), "")],
)
def test_what_is_lost_or_comes_twice_is_found(seqs: tuple[int, ...], fault: str) -> None:
    wire, socket = Wire("msgpack"), Socket("", Said(), None)
    for seq in seqs:
        (frame,) = wire.encode(m.Started(seq=seq, epoch=1))
        socket._take(frame)
    assert [told for told in socket.faults if "came after" in told] == ([fault] if fault else [])
    assert "started came before ready" in socket.faults


DONE = m.Done(seq=17, epoch=1, samples=480, heard=480, estimated=False, reason="played")


def left_with_all(kind: Kind, seq: int, code: int | None) -> tuple[Race, Socket]:
    """A race in which `done`, message 17, came over the old socket, and one that came got hold of
    the session and has the messages up to ``seq``."""
    race = Race("", plan(1, kind, 0, BRIEF))
    old, winner, *others = race._sockets
    old.code, old.ending, old.frames[17] = TAKEN_OVER, DONE, b""
    winner.ready, winner.first, winner.code = READY, seq, code
    for other in others:
        other.code = TAKEN_OVER
    return race, winner


@pytest.mark.parametrize("kind", [Kind.TWINS, Kind.NEWEST, Kind.END])
def test_one_that_asks_for_what_comes_after_the_end_has_all(kind: Kind) -> None:
    async def main() -> None:
        race, winner = left_with_all(kind, 16, None)
        settles = asyncio.create_task(race._settle())
        await asyncio.sleep(2 * LOOK)
        assert not settles.done()
        winner.frames[17] = b""
        async with asyncio.timeout(AT_ONCE):
            await settles
            await left_with_all(kind, 17, None)[0]._settle()

    asyncio.run(main())


def test_who_drains_with_all_has_the_session_though_another_saw_the_end() -> None:
    for seq in (16, 17):
        race, winner = left_with_all(Kind.DRAIN, seq, RESTART)
        assert race._has_won(winner) == (seq == 17)


@contextlib.asynccontextmanager
async def answering(frame: str | None) -> AsyncIterator[str]:
    """The address of a server that takes nobody, or that answers each hello with ``frame``."""

    async def speak(link: ServerConnection) -> None:
        await link.recv()
        await link.send(frame or "")

    def refuse(link: ServerConnection, _: object) -> Response:
        return link.respond(503, "full")

    served = serve(
        speak,
        "127.0.0.1",
        0,
        process_request=refuse if frame is None else None,
        subprotocols=[Subprotocol("playhead.v1.msgpack")],
    )
    async with served as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("frame", "told"), [(None, "HTTP 503, never greeted"), ("{}", "HTTP -1, never greeted")]
)
def test_a_server_that_takes_nobody_or_breaks_the_protocol_is_a_fault_of_the_race(
    frame: str | None, told: str
) -> None:
    async def main() -> tuple[Verdict, int]:
        async with answering(frame) as url:
            verdict = await Race(url, plan(1, Kind.TWINS, 0, BRIEF)).run()
            await asyncio.sleep(0)  # for those that were told to end
            return verdict, len([t for t in asyncio.all_tasks() if "_send" in str(t.get_coro())])

    verdict, senders = asyncio.run(main())
    faults = ["the server takes nobody"]
    assert verdict.faults[:1] == faults
    assert (len(verdict.faults) == 2) == (frame is not None), verdict.faults
    assert (verdict.ends[0], senders) == (told, 0)


def test_a_socket_that_is_given_up_says_nothing_more() -> None:
    async def main() -> None:
        async with live_gateway(**FLAGS) as server:
            said, go = Said(), asyncio.Event()
            go.set()
            socket = Socket(url_of(server), said, None)
            runs = asyncio.create_task(socket.run(go, 0.0, None))
            async with asyncio.timeout(PATIENCE):
                await socket.settled.wait()
            runs.cancel()
            await asyncio.wait([runs])
            await asyncio.sleep(0)  # for the sender to end
            left = [str(task.get_coro()) for task in asyncio.all_tasks()]
            assert [name for name in left if "Socket" in name] == []

    asyncio.run(main())


def test_the_same_seed_makes_the_same_races() -> None:
    for kind in Kind:
        assert plan(7, kind, 3, Times()) == plan(7, kind, 3, Times())
        assert plan(7, kind, 3, Times()) != plan(8, kind, 3, Times())
