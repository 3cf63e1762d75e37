"""Utterances leave nothing behind: what a process holds after many is what it held after few.

A whole server runs in a process, its clients block in a thread. What is counted is every object
that can be reached. (Not the allocator's blocks: free lists of libraries fill for a thousand
utterances. Not by tracemalloc: an old entry of a rolling window that gives way to a new one looks
to it like growth.)
"""

import asyncio
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import uvloop
from faulty import FaultyRunner
from harness import eventually
from live import live_gateway
from machine import PATIENCE
from playhead.engine.meters import RollingQuantile
from playhead.gateway.server import GatewayServer
from ways_to_end import Talker

ROUNDS = 3
SESSIONS = 6
EACH = 18
"""Utterances of a session: as many as may be opened without waiting."""
MOST_OBJECTS = 0.5
"""An utterance. 0.1 are its share of its session's tombstone."""
MOST_BYTES = 24.0
"""Of an utterance's share in what contains something: an entry in a dictionary takes more."""


class Growth(NamedTuple):
    """Of an utterance."""

    objects: float
    size: float  # bytes of what contains something

    @property
    def none(self) -> bool:
        """Nothing worth the name."""
        return self.objects < MOST_OBJECTS and self.size < MOST_BYTES


def speaks(port: int, sessions: int) -> None:
    """Sessions one after the other, of utterances that are heard out, cut short, or break."""
    for _ in range(sessions):
        with Talker(port) as talker:
            talker.hello()
            for number in range(EACH):
                one_utterance(talker, number)
            talker.send("close")
            talker.closed()


def one_utterance(talker: Talker, number: int) -> None:
    talker.say("Hm {decode}" if number % 6 == 5 else "Yes.")
    samples = 0
    while True:
        message = talker.until("started", "audio", "done", "cancelled", "failed")
        if message["type"] in ("done", "cancelled", "failed"):
            return
        if message["type"] != "audio":
            continue
        samples += message["samples"]
        if number % 6 == 4:
            talker.send("cancel", epoch=message["epoch"], heard=samples)
        elif message["final"]:
            report(talker, message, samples)


def report(talker: Talker, audio: dict[str, int], samples: int) -> None:
    """All of it has been heard, and everything so far has come."""
    counters = dict.fromkeys(("received", "consumed", "heard"), samples)
    talker.send(
        "report",
        epoch=audio["epoch"],
        **counters,
        buffered=0,
        state="playing",
        time=0.0,
        seq=audio["seq"],
    )


async def held(server: GatewayServer) -> tuple[int, int]:
    """Objects and bytes, once nobody is there and what ran last has returned."""

    def quiet() -> bool:
        return not (len(server.hub.registry) or server.peers or server.hub.routes)

    await eventually(quiet)
    await asyncio.sleep(0.05)
    gc.collect()
    return reachable(gc.get_objects())


def reachable(known: list[Any]) -> tuple[int, int]:
    """How many objects there are, those included that the collector does not know (numbers, bytes,
    tuples of such), and what the known ones take, in bytes."""
    seen: set[int] = set()
    left = gc.get_referents(*known)
    while left:
        new = {id(found): found for found in left if not gc.is_tracked(found)}
        fresh = [found for number, found in new.items() if number not in seen]
        seen.update(new)
        left = gc.get_referents(*(f for f in fresh if isinstance(f, tuple | dict)))
    return len(known) + len(seen), sum(map(sys.getsizeof, known))


def narrow(server: GatewayServer) -> None:
    """The engine's rolling windows: full after a few dispatches, not after hundreds."""
    for meter in server.hub.engine._scheduler.meters.lanes.values():  # type: ignore[attr-defined]
        meter.sojourn, meter.service = RollingQuantile(0.01, 4), RollingQuantile(0.01, 4)


async def growth(
    during: Callable[[GatewayServer], None] = lambda server: None, *, most: int = ROUNDS
) -> Growth:
    """The least of ``most`` rounds, up to the first that leaves nothing. What is bounded fills and
    then rests; a leak is in every round. ``during`` may spoil the server."""
    rounds = []
    async with live_gateway(FaultyRunner(1e5)) as server:
        await asyncio.to_thread(speaks, server.port, 1)
        narrow(server)
        during(server)
        before = await held(server)
        for _ in range(most):
            await asyncio.to_thread(speaks, server.port, SESSIONS)
            after = await held(server)
            count = SESSIONS * EACH
            rounds.append(Growth(*((a - b) / count for a, b in zip(after, before, strict=True))))
            if rounds[-1].none:
                return rounds[-1]
            before = after
    return min(rounds)


def test_what_was_said_leaves_nothing_behind() -> None:
    grown, _ = elsewhere("plain")
    assert grown.none, f"an utterance leaves {grown} behind"


def test_what_one_object_an_utterance_leaves_behind_is_seen() -> None:
    grown, kept = elsewhere("leaking")
    assert kept == 2 * SESSIONS * EACH
    assert grown.objects >= 1.0


def elsewhere(how: str) -> tuple[Growth, int]:
    """One of those below in a process of its own, which holds nothing but a server: to count all
    that a thousand other tests have left takes five times as long."""
    run = subprocess.run(
        [sys.executable, __file__, how],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=2 * PATIENCE,
    )
    grown, kept = json.loads(run.stdout.splitlines()[-1])
    return Growth(*grown), kept


def plain() -> tuple[Growth, int]:
    return uvloop.run(growth()), 0


def leaking() -> tuple[Growth, int]:
    """A server that keeps an object of each utterance, and how many it kept."""
    kept: list[object] = []

    def leak(server: GatewayServer) -> None:
        route = server.hub.route

        def leaking(utterance: int, host: Any) -> None:
            kept.append(object())
            route(utterance, host)

        server.hub.route = leaking  # type: ignore[method-assign]

    return uvloop.run(growth(leak, most=2)), len(kept)


if __name__ == "__main__":
    print(json.dumps({"plain": plain, "leaking": leaking}[sys.argv[1]]()))
