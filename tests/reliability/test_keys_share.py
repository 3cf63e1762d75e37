"""Two API keys over real sockets, on a machine that cannot speak all that is asked of it: each has
about half of what is made, however many sessions one of them opens. To within 5 %, over longer
times than a test has: ``bench/reliability/overload.py``."""

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from kit import Bare, client
from live import FRAME, RATE, WaveRunner, live_server
from machine import PATIENCE
from playhead.engine.policy import PolicyConfig
from playhead.engine.types import ChunkWork, Pcm, Request
from playhead.gateway import messages as m
from playhead.gateway.access_file import edit
from playhead.gateway.access_keys import KeyRing, new_key

PACE = 3.0
"""Seconds of sound that one of two lanes makes a second: six listeners of those who come."""
GREEDY, MODEST = 20, 8
"""Sessions of each key. Both want more than half of what is made, and have as many as chunks
are made at a time: who has fewer cannot take its half. Were sessions alike, it were 71 and 29 %."""
COUNTED = 12.0
"""Seconds of sound that are counted, once all of them have begun."""
MOST = 0.64
"""Of all that is made. Who begins when, and what is in work when counting begins and ends, has been
seen to make it 0.58."""

pytestmark = pytest.mark.slow  # sound takes its time


class Counting(WaveRunner):
    """The wave in short chunks, counted by who is answerable for them: what clients have read says
    as much of how busy they are."""

    info = replace(WaveRunner.info, chunk_frames=(8,))

    def __init__(self) -> None:
        super().__init__(PACE)
        self.payers: dict[int, str] = {}
        self.begun: set[int] = set()
        self.made: Counter[str] = Counter()  # frames, since all have begun

    def open(self, request: Request) -> None:
        self.payers[request.utterance] = request.payer
        super().open(request)

    def decode(self, chunks: Sequence[ChunkWork]) -> list[Pcm | BaseException]:
        for chunk in chunks:
            if len(self.begun) == GREEDY + MODEST:
                self.made[self.payers[chunk.utterance]] += chunk.frames
            self.begun.add(chunk.utterance)
        return super().decode(chunks)

    @property
    def shares(self) -> list[float]:
        """Seconds of sound of each key."""
        return [frames * FRAME / RATE for frames in self.made.values()]


def two_keys(folder: Path) -> tuple[str, str]:
    first, first_key = new_key("greedy", 1_700_000_000.0)
    second, second_key = new_key("modest", 1_700_000_000.0)
    with edit(folder / "keys.json") as put:
        put(KeyRing((first_key, second_key)))
    return first, second


async def listen(bare: Bare) -> None:
    await bare.send(m.Text("It goes on and on and on. " * 40), m.End())
    while True:
        message = await bare.receive()
        assert not isinstance(message, m.Failed), message


def test_a_key_that_floods_has_no_more_than_one_that_does_not(tmp_path: Path) -> None:
    greedy, modest = two_keys(tmp_path)
    runner = Counting()
    policy = PolicyConfig(max_live=100, max_utilisation=math.inf)

    async def main() -> list[float]:
        async with contextlib.AsyncExitStack() as stack:
            server = live_server(runner, policy, keys=str(tmp_path / "keys.json"))
            url = await stack.enter_async_context(server) + "/v1/session"
            keys = [greedy] * GREEDY + [modest] * MODEST
            bares = [await stack.enter_async_context(client(url, key=key)) for key in keys]
            tasks = [asyncio.create_task(listen(bare)) for bare in bares]
            while sum(runner.shares) < COUNTED:
                await asyncio.sleep(0.01)
                assert not any(task.done() for task in tasks), tasks
            for task in tasks:
                task.cancel()
            return runner.shares

    first, second = asyncio.run(asyncio.wait_for(main(), 2 * PATIENCE))
    assert max(first, second) <= MOST * (first + second), (first, second)
