#!/usr/bin/env python3
"""SIGTERM under 100 speaking streams, 100 times: every announced sample comes, the process ends.

    bench/reliability/drain.py [--runs 100] [--streams 100] [--seed 1]

Every tenth run has a listener that is paused for good: it must not keep the process beyond its
drain time. Listeners play at twice the speed, all begin together, and the next process starts
while this one drains, so that a hundred runs take minutes. Exit status 0 when no sample was lost
and every process ended in time with status 0.
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
    speaking: int = 0  # streams that were not at their end when the signal came
    stuck: str = ""


async def begin(bare: Bare, text: str) -> int:
    """Say it until it is let in and heard; the epoch."""
    for epoch in range(1, 100):
        await bare.send(m.Text(text), m.End())
        first = await bare.until(m.Audio, m.Failed)
        if isinstance(first, m.Audio):
            return epoch
        await asyncio.sleep((first.retry_after or 100.0) / 1000)
    raise TimeoutError("never let in")


async def speak(bare: Bare, text: str) -> tuple[bool, float]:
    """Hear it to the end: whether all of it came, and when the drain was announced."""
    epoch = await begin(bare, text)
    told = 0.0
    with contextlib.suppress(ConnectionClosed):
        while True:
            if isinstance(await bare.receive(), m.Draining):
                told = time.monotonic()
    whole = bool(np.array_equal(bare.heard(epoch), sound(text)))
    return whole and isinstance(bare.endings.get(epoch), m.Done), told


def ended(bare: Bare) -> bool:
    """Whether it has heard its text (earlier endings are refusals)."""
    return any(isinstance(end, m.Done) for end in bare.endings.values())


async def hold(bare: Bare) -> str:
    """A listener that has paused for good; what it is told in the end."""
    await bare.send(m.Text("This one is stuck."), m.End(), m.Pause())
    with contextlib.suppress(ConnectionClosed):
        while True:
            await bare.receive()
    ending = bare.endings.get(1)
    return ending.code if isinstance(ending, m.Failed) else str(ending)


async def drain(url: str, process: object, texts: Sequence[str], stuck: bool, wait: float) -> Run:
    run = Run()
    async with contextlib.AsyncExitStack() as stack:
        coming = (stack.enter_async_context(client(url, playback_rate=2.0)) for _ in texts)
        bares = await asyncio.gather(*coming)
        if stuck:
            holder = asyncio.create_task(hold(await stack.enter_async_context(client(url))))
        tasks = [asyncio.create_task(speak(*who)) for who in zip(bares, texts, strict=True)]
        async with asyncio.timeout(PATIENCE):
            while not all(bare.sound for bare in bares):
                await asyncio.sleep(0.005)
        await asyncio.sleep(wait)
        run.speaking = sum(not ended(bare) for bare in bares)
        process.terminate()  # type: ignore[attr-defined]
        signalled = time.monotonic()
        heard = await asyncio.gather(*tasks)
        run.lost = sum(not whole for whole, _ in heard)
        run.told_after = max((told for _, told in heard if told), default=signalled) - signalled
        if stuck:
            run.stuck = await holder
        run.status = await asyncio.to_thread(process.wait, 30)  # type: ignore[attr-defined]
        run.ended_after = time.monotonic() - signalled
    return run


def texts_of(rng: random.Random, streams: int) -> list[str]:
    """About 4 seconds of speech each, which take half of that to play."""
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(10, 12))) for _ in range(streams)]


def one_after_the_other(args: argparse.Namespace) -> list[Run]:
    """All runs; the process of the next is started beside the drain of this one."""
    flags = ("--max-connections-per-address", "1000", "--drain-timeout", str(DRAIN))
    flags += ("--http-port", "off")
    runs: list[Run] = []
    began = time.monotonic()
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(1) as starter:

        def start() -> Future[tuple[subprocess.Popen[str], str]]:
            server = served(*flags, stderr=None, FAULTY_PACE="2000")
            return starter.submit(stack.enter_context, server)

        coming = start()
        for number in range(args.runs):
            process, url = coming.result()
            coming = start()
            rng = random.Random(f"{args.seed} {number}")
            texts, stuck = texts_of(rng, args.streams), number % 10 == 9
            runs.append(asyncio.run(drain(url, process, texts, stuck, rng.uniform(0.0, 0.3))))
            if runs[-1].lost or runs[-1].status:
                print(f"run {number}: {runs[-1]}", flush=True)
            if time.monotonic() - began > args.seconds:
                break
        coming.result()
    return runs


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600.0, help="begin no run after that")
    args = parser.parse_args()
    runs = one_after_the_other(args)
    held = [run for run in runs if run.stuck]
    bad = sum(bool(run.lost or run.status or run.ended_after > DRAIN + MARGIN) for run in runs)
    told = sorted(run.told_after for run in runs)
    speaking = sorted(run.speaking for run in runs)
    print(
        f"{len(runs)} runs of {args.streams} streams, {speaking[0]} to {speaking[-1]} of them "
        f"speaking when the signal came: {sum(r.lost for r in runs)} streams lost samples, "
        f"{bad} runs not as promised; all told within {told[-1] * 1e3:.0f} ms (median "
        f"{told[len(told) // 2] * 1e3:.0f}); ended after at most "
        f"{max((r.ended_after for r in runs if not r.stuck), default=0):.1f} s, with a stuck "
        f"stream {max((r.ended_after for r in held), default=0):.1f} s "
        f"({sorted({r.stuck for r in held})})"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
