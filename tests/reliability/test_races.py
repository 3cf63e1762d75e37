"""Races for one session, the quick form: ``bench/reliability/races.py`` runs 500 of them."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from live import live_gateway
from machine import PATIENCE
from playhead.engine.lead import parse_lead
from playhead.gateway import access_watch
from playhead.gateway import messages as m
from playhead.gateway.access_file import edit
from playhead.gateway.access_keys import KeyRing, new_key
from playhead.gateway.protocol import Wire
from playhead.gateway.server import GatewayServer
from races import Race, Verdict, nothing_left
from races_plan import Kind, Times, plan
from races_socket import Said, Socket

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


def test_the_same_seed_makes_the_same_races() -> None:
    for kind in Kind:
        assert plan(7, kind, 3, Times()) == plan(7, kind, 3, Times())
        assert plan(7, kind, 3, Times()) != plan(8, kind, 3, Times())
