#!/usr/bin/env python3
"""SIGTERM while every one of 100 streams speaks, 100 times: every announced sample comes.

    bench/reliability/drain.py [--runs 100] [--streams 100] [--seed 1] [--seconds 540]

The signal comes when each stream has been heard and none has got its last sample, which is seen
here and asserted again from what came afterwards. The voice is a known wave that costs nothing: the
bundled one makes some 14 streams at a time on two cores, and its sound could not be compared
sample by sample. Listeners play at twice the speed. Every tenth run has one more, paused for good:
it must not keep the process beyond its drain time. The next process starts while this one drains.
Exit status 0 when all were speaking each time, no sample was lost, and every process ended in time
with status 0.
"""

import argparse
import asyncio
import contextlib
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reliability")]

from kit import Bare, client, served  # noqa: E402
from live import sound  # noqa: E402
from playhead.gateway import messages as m  # noqa: E402
from websockets.exceptions import ConnectionClosed  # noqa: E402

WORDS = [
    "speech",
    "that",
    "is",
    "going",
    "on",
    "when",
    "the",
    "signal",
    "comes",
    "must",
    "be",
    "heard",
    "to",
    "its",
    "very",
    "end",
]
DRAIN = 8.0
PATIENCE = 30.0
MARGIN = 3.0
"""Seconds beyond the drain time within which the process must have ended."""


@dataclass
class Run:
    lost: int = 0  # streams that did not get all of their sound
    told_after: float = 0.0  # seconds from the signal until the last stream knew of it
    ended_after: float = 0.0  # and until the process was gone
    status: int | None = None
    speaking: int = 0  # streams that had been heard, and got more after the signal
    stuck: str = ""

    def good(self, streams: int) -> bool:
        """All as promised."""
        ended = self.status == 0 and self.ended_after <= DRAIN + MARGIN
        return self.speaking == streams and not self.lost and ended


async def begin(bare: Bare, text: str) -> int:
    """Say it until it is let in and heard; the epoch."""
    for epoch in range(1, 100):
        await bare.send(m.Text(text), m.End())
        first = await bare.until(m.Audio, m.Failed)
        if isinstance(first, m.Audio):
            return epoch
        await asyncio.sleep((first.retry_after or 100.0) / 1000)
    raise TimeoutError("never let in")


@dataclass
class Stream:
    """One listener and what it hears."""

    bare: Bare
    text: str
    final: bool = False  # the last sample has come
    after: int = 0  # samples that came after the drain was announced
    told: float = 0.0  # when that was

    @property
    def speaking(self) -> bool:
        """It has been heard, and is not at its end."""
        return bool(self.bare.sound) and not self.final

    async def speak(self) -> bool:
        """Hear it to the end: whether all of it came."""
        epoch = await begin(self.bare, self.text)
        with contextlib.suppress(ConnectionClosed):
            while True:
                self._note(await self.bare.receive())
        whole = bool(np.array_equal(self.bare.heard(epoch), sound(self.text)))
        return whole and isinstance(self.bare.endings.get(epoch), m.Done)

    def _note(self, message: m.ServerMessage) -> None:
        if isinstance(message, m.Draining):
            self.told = time.monotonic()
        elif isinstance(message, m.Audio):
            self.final = message.final
            self.after += message.samples if self.told else 0


async def hold(bare: Bare) -> str:
    """A listener that has paused for good; what it is told in the end."""
    await bare.send(m.Text("This one is stuck."), m.End(), m.Pause())
    with contextlib.suppress(ConnectionClosed):
        while True:
            await bare.receive()
    ending = bare.endings.get(1)
    return ending.code if isinstance(ending, m.Failed) else str(ending)


async def all_speaking(streams: Sequence[Stream]) -> None:
    """Wait until everybody has been heard. Raises ``AssertionError`` when somebody is at its end
    before the last one is let in: the texts are too short for this machine."""
    async with asyncio.timeout(PATIENCE):
        while not all(stream.bare.sound for stream in streams):
            await asyncio.sleep(0.005)
    done = sum(stream.final for stream in streams)
    assert not done, f"{done} streams were at their end before all were speaking: --words"


async def drain(url: str, process: object, texts: Sequence[str], stuck: bool, wait: float) -> Run:
    run = Run()
    async with contextlib.AsyncExitStack() as stack:
        coming = (stack.enter_async_context(client(url, playback_rate=2.0)) for _ in texts)
        bares = await asyncio.gather(*coming)
        if stuck:
            holder = asyncio.create_task(hold(await stack.enter_async_context(client(url))))
        streams = [Stream(*who) for who in zip(bares, texts, strict=True)]
        tasks = [asyncio.create_task(stream.speak()) for stream in streams]
        await all_speaking(streams)
        await asyncio.sleep(wait)
        before = sum(stream.speaking for stream in streams)
        process.terminate()  # type: ignore[attr-defined]
        signalled = time.monotonic()
        run.lost = sum(not whole for whole in await asyncio.gather(*tasks))
        run.speaking = min(before, sum(stream.after > 0 for stream in streams))
        run.told_after = max((s.told for s in streams if s.told), default=signalled) - signalled
        if stuck:
            run.stuck = await holder
        run.status = await asyncio.to_thread(process.wait, 30)  # type: ignore[attr-defined]
        run.ended_after = time.monotonic() - signalled
    return run


def texts_of(rng: random.Random, streams: int, words: int) -> list[str]:
    """So many words each, about 0.4 s of speech a word, which takes half of that to play."""
    return [" ".join(rng.choice(WORDS) for _ in range(words)) for _ in range(streams)]


def one_after_the_other(args: argparse.Namespace) -> list[Run]:
    """All runs; the process of the next is started beside the drain of this one."""
    flags = ("--max-connections-per-address", "1000", "--drain-timeout", str(DRAIN))
    flags += ("--http-port", "off")
    runs: list[Run] = []
    began = time.monotonic()
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(1) as starter:

        def start() -> Future[tuple[subprocess.Popen[str], str]]:
            server = served(*flags, stderr=None, FAULTY_PACE="2000", FAULTY_BATCH="32")
            return starter.submit(stack.enter_context, server)

        coming = start()
        for number in range(args.runs):
            process, url = coming.result()
            coming = start()
            rng = random.Random(f"{args.seed} {number}")
            texts, stuck = texts_of(rng, args.streams, args.words), number % 10 == 9
            runs.append(asyncio.run(drain(url, process, texts, stuck, rng.uniform(0.0, args.wait))))
            if not runs[-1].good(args.streams):
                print(f"run {number}: {runs[-1]}", flush=True)
            if time.monotonic() - began > args.seconds:
                break
        coming.result()
    return runs


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--words", type=int, default=15, help="of each text")
    parser.add_argument("--wait", type=float, default=0.2, help="at most so long until the signal")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600.0, help="begin no run after that")
    args = parser.parse_args()
    began = time.monotonic()
    runs = one_after_the_other(args)
    held = [run for run in runs if run.stuck]
    bad = sum(not run.good(args.streams) for run in runs)
    told = sorted(run.told_after for run in runs)
    speaking = sorted(run.speaking for run in runs)
    print(
        f"{len(runs)} runs of {args.streams} streams, {speaking[0]} to {speaking[-1]} of them "
        f"speaking at the signal: {sum(r.lost for r in runs)} streams lost samples, "
        f"{bad} runs not as promised; all told within {told[-1] * 1e3:.0f} ms (median "
        f"{told[len(told) // 2] * 1e3:.0f}); ended after at most "
        f"{max((r.ended_after for r in runs if not r.stuck), default=0):.1f} s, with a stuck "
        f"stream {max((r.ended_after for r in held), default=0):.1f} s "
        f"({sorted({r.stuck for r in held})}); {time.monotonic() - began:.0f} s in all"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
