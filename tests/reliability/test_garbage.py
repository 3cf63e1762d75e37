"""No collection of garbage while people come, speak and go; what leaks is found all the same.

A whole server runs in a process of its own, with garbage as `playhead serve` has it; its clients
block in a thread.
"""

import asyncio
import contextlib
import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import uvloop
from faulty import FaultyRunner
from live import live_gateway
from machine import PATIENCE, eventually
from playhead.engine import garbage
from playhead.engine.garbage import EACH, GUARD
from playhead.gateway.serve import share_interpreter
from playhead.gateway.server import GatewayServer
from ways_to_end import Talker

FLOOR = 10_000
"""Instead of 50,000, which take seconds to leak."""
CROWD = 60
"""Sessions at once: more containers than Python collects after, and than our own thresholds once
were."""
SAMPLES = 2
"""Of the loop's lag: the keeper looks after each."""


@contextlib.contextmanager
def collections() -> Iterator[list[int]]:
    """What is collected in this block: the generations."""
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    gc.callbacks.append(note)
    try:
        yield seen
    finally:
        gc.callbacks.remove(note)


def leak(count: int) -> None:
    """So many containers that only a collection can free."""
    for _ in range(count):
        own: list[Any] = []
        own.append(own)


def crowd(port: int) -> int:
    """Many sessions at once, who all go again; how many containers they took."""
    before = gc.get_count()[0]
    with contextlib.ExitStack() as stack:
        for _ in range(CROWD):
            stack.enter_context(Talker(port)).hello()
        return gc.get_count()[0] - before


def speaker(port: int) -> Talker:
    """Who speaks until told to stop: the text never ends."""
    talker = Talker(port)
    talker.hello()
    talker.send("text", text="This goes on and on. " * 9)
    talker.until("audio")
    return talker


async def looked(server: GatewayServer) -> None:
    """Until the keeper has had its turn a few times."""

    def samples() -> float:
        return server.metrics.registry.get_sample_value("playhead_loop_lag_seconds_count") or 0.0

    before = samples()
    await eventually(lambda: samples() >= before + SAMPLES)


async def scenes() -> dict[str, Any]:
    """What was collected by when."""
    async with live_gateway(FaultyRunner(), max_connections_per_address=2 * CROWD) as server:
        share_interpreter()
        keeper, found = server.garbage, dict[str, Any]()
        with collections() as seen:
            talker = await asyncio.to_thread(speaker, server.port)
            found["took"] = await asyncio.to_thread(crowd, server.port)
            await looked(server)
            leak(2 * FLOOR + CROWD * EACH)
            await looked(server)
            found["while one speaks"] = list(seen)
            if seen:
                return found
            leak((GUARD - 1) * FLOOR)
            await eventually(lambda: keeper.looks)
            found["idle"], found["guard"] = server.hub.idle, keeper.freed
            leak(2 * FLOOR + CROWD * EACH)
            await looked(server)
            found["below the guard"] = len(seen)
            await asyncio.to_thread(talker.__exit__, None, None, None)
            await eventually(lambda: keeper.looks == 2)
            found["in silence"] = keeper.freed - found["guard"]
            found["seen"] = seen
    return found


def test_nothing_is_collected_while_somebody_speaks_unless_there_is_a_leak() -> None:
    run = subprocess.run(
        [sys.executable, __file__],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=2 * PATIENCE,
    )
    found = json.loads(run.stdout.splitlines()[-1])
    assert found["while one speaks"] == [], "generations of automatic collections"
    # Their clients are in the process as well.
    assert 10_000 < found["took"] < CROWD * EACH + FLOOR, "more than Python waits for"
    assert found["idle"] is False
    assert found["guard"] >= GUARD * FLOOR
    assert found["below the guard"] == 1
    assert found["in silence"] >= FLOOR
    assert found["seen"] == [2, 2]


if __name__ == "__main__":
    garbage.FLOOR = FLOOR  # type: ignore[misc]
    print(json.dumps(uvloop.run(scenes())))
