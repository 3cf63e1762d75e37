#!/usr/bin/env python3
"""SIGTERM under 100 speaking streams, 100 times: every announced sample comes, the process ends.

    bench/reliability/drain.py [--runs 100] [--streams 100] [--seed 1]

Every tenth run has a listener that is paused for good: it must not keep the process beyond its
drain time. Listeners play at twice the speed, so that a hundred runs take minutes. Exit status 0
when no sample was lost and every process ended in time with status 0.
"""

import argparse
import asyncio
import contextlib
import random
import sys
import time
from collections.abc import Sequence
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
MARGIN = 3.0
"""Seconds beyond the drain time within which the process must have ended."""


@dataclass
class Run:
    lost: int = 0  # streams that did not get all of their sound
    told_after: float = 0.0  # seconds from the signal until the last stream knew of it
    ended_after: float = 0.0  # and until the process was gone
    status: int | None = None
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


async def speak(bare: Bare, text: str, epoch: int) -> tuple[bool, float]:
    """Hear it to the end: whether all of it came, and when the drain was announced."""
    told = 0.0
    with contextlib.suppress(ConnectionClosed):
        while True:
            if isinstance(await bare.receive(), m.Draining):
                told = time.monotonic()
    whole = bool(np.array_equal(bare.heard(epoch), sound(text)))
    return whole and isinstance(bare.endings.get(epoch), m.Done), told


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
        bares = [await stack.enter_async_context(client(url, playback_rate=2.0)) for _ in texts]
        if stuck:
            holder = asyncio.create_task(hold(await stack.enter_async_context(client(url))))
        epochs = await asyncio.gather(*map(begin, bares, texts))
        tasks = [asyncio.create_task(speak(*who)) for who in zip(bares, texts, epochs, strict=True)]
        await asyncio.sleep(wait)
        process.terminate()  # type: ignore[attr-defined]
        signalled = time.monotonic()
        heard = await asyncio.gather(*tasks)
        run.lost = sum(not whole for whole, _ in heard)
        run.told_after = max(told for _, told in heard) - signalled
        if stuck:
            run.stuck = await holder
        run.status = await asyncio.to_thread(process.wait, 30)  # type: ignore[attr-defined]
        run.ended_after = time.monotonic() - signalled
    return run


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600.0, help="begin no run after that")
    args = parser.parse_args()
    flags = ("--max-connections-per-address", "1000", "--drain-timeout", str(DRAIN))
    runs: list[Run] = []
    began = time.monotonic()
    for number in range(args.runs):
        if time.monotonic() - began > args.seconds:
            break
        rng = random.Random(f"{args.seed} {number}")
        texts = [
            " ".join(rng.choice(WORDS) for _ in range(rng.randint(6, 10)))
            for _ in range(args.streams)
        ]
        stuck = number % 10 == 9
        with served(*flags, stderr=None, FAULTY_PACE="2000") as (process, url):
            run = asyncio.run(drain(url, process, texts, stuck, rng.uniform(0.0, 0.7)))
        runs.append(run)
        if run.lost or run.status:
            print(f"run {number}: {run}", flush=True)
    held = [run for run in runs if run.stuck]
    bad = sum(bool(run.lost or run.status or run.ended_after > DRAIN + MARGIN) for run in runs)
    told = sorted(run.told_after for run in runs)
    print(
        f"{len(runs)} runs of {args.streams} streams: {sum(r.lost for r in runs)} streams lost "
        f"samples, {bad} runs not as promised; all told within {told[-1] * 1e3:.0f} ms (median "
        f"{told[len(told) // 2] * 1e3:.0f}); ended after at most "
        f"{max((r.ended_after for r in runs if not r.stuck), default=0):.1f} s, with a stuck "
        f"stream {max((r.ended_after for r in held), default=0):.1f} s "
        f"({sorted({r.stuck for r in held})})"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
