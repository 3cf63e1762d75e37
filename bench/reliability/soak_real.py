#!/usr/bin/env python3
"""30 real minutes on loopback: a served voice, a few listeners that come, go, break off and return.

    bench/reliability/soak_real.py [--minutes 30] [--talkers 3] [--seed 1]
    bench/reliability/soak_real.py --minutes 4 --talkers 4 --hurry    # many utterances a second

Watches the server from outside: resident memory, descriptors and threads of the process, and what
its own metrics say of sessions, streams and the lag of the event loop. Growth is told by the hour
and by the utterance: whatever an utterance leaves behind shows in a short run of many of them. An
ended session is remembered for ten minutes by design (about 0.8 KiB, 10,000 at most), so those who
hurry have few sessions of many utterances. Exit status 0 when memory
grows by no more than 1 MiB an hour over the last two thirds, descriptors and threads stand still,
and 99 % of the lags are below 10 ms.
"""

import argparse
import asyncio
import contextlib
import os
import random
import re
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from playhead.client import PlayheadError, connect

EVERY = 10.0
LAG = "playhead_loop_lag_seconds"
ENDED = r"^playhead_utterances_total\{[^}]*\} (\S+)$"
USUAL = 2_500
"""Utterances an hour of three talkers who do not hurry: an hour's growth is reckoned by them."""
SENTENCES = (
    "Good morning, everybody.",
    "This server has been talking for a while, and nobody should notice how long.",
    "What is said at the end must sound like what was said at the beginning.",
    "One more short one.",
)
SHORT = ("Yes.", "Of course.", "One more.", "Good morning, everybody.")


@dataclass(frozen=True)
class Sample:
    at: float
    resident: float  # MiB
    descriptors: int
    threads: int
    sessions: int
    utterances: int


@contextlib.contextmanager
def served() -> Iterator[tuple[int, str]]:
    """The bundled voice in a process of its own: its id and address."""
    command = [sys.executable, "-c", "import sys; from playhead.gateway.cli import main; main()"]
    with subprocess.Popen(
        [*command, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        found = re.search(r"http://(127\.0\.0\.1:\d+)", process.stdout.readline())
        assert found
        try:
            yield process.pid, found[1]
        finally:
            process.terminate()


def scrape(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def value(text: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.M)
    return float(found[1]) if found else 0.0


def look(pid: int, address: str, began: float) -> Sample:
    status = Path(f"/proc/{pid}/status").read_text()
    resident = int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]
    threads = int(re.search(r"Threads:\s+(\d+)", status)[1])  # type: ignore[index]
    descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    text = scrape(address)
    sessions = round(value(text, "playhead_sessions"))
    utterances = round(sum(map(float, re.findall(ENDED, text, re.M))))
    return Sample(time.monotonic() - began, resident, descriptors, threads, sessions, utterances)


def lags(text: str) -> tuple[float, float, float]:
    """Share of lags up to 10 ms, the bound below which 99 % are, and how many there were."""
    buckets = [
        (float(bound), float(count))
        for bound, count in re.findall(rf'^{LAG}_bucket{{le="([^"]+)"}} (\S+)$', text, re.M)
    ]
    total = buckets[-1][1] if buckets else 0.0
    good = max((count for bound, count in buckets if bound <= 0.010), default=0.0)
    p99 = next((bound for bound, count in buckets if count >= 0.99 * total), float("inf"))
    return good / max(1.0, total), p99, total


async def talk(
    address: str, rng: random.Random, until: float, counts: Counter[str], *, hurry: bool
) -> None:
    """Sessions one after the other: some are heard out, some are cut short, some just vanish."""
    sentences = SHORT if hurry else SENTENCES
    while time.monotonic() < until:
        counts["sessions"] += 1
        with contextlib.suppress(PlayheadError, OSError):
            async with connect(f"ws://{address}", playback_rate=2.0 if hurry else 1.0) as voice:
                for _ in range(rng.randint(10, 30) if hurry else rng.randint(1, 3)):
                    if time.monotonic() > until:
                        break
                    utterance = voice.speak(rng.choice(sentences))
                    if rng.random() < 0.2:
                        await asyncio.sleep(rng.uniform(0.2, 2.0))
                        await utterance.cancel()
                        counts["cancelled"] += 1
                    elif rng.random() < 0.1:
                        voice._carrier._link._socket.transport.abort()
                        counts["cut"] += 1
                        await utterance.done()
                    else:
                        await utterance.done()
                        counts["heard"] += 1
        await asyncio.sleep(0.05 if hurry else rng.uniform(0.5, 3.0))


async def soak(pid: int, address: str, args: argparse.Namespace) -> list[Sample]:
    began, counts, samples = time.monotonic(), Counter[str](), list[Sample]()
    until = began + 60 * args.minutes
    talkers = [
        asyncio.create_task(
            talk(address, random.Random(f"{args.seed} {n}"), until, counts, hurry=args.hurry)
        )
        for n in range(args.talkers)
    ]
    while time.monotonic() < until:
        await asyncio.sleep(EVERY)
        samples.append(await asyncio.to_thread(look, pid, address, began))
        if len(samples) % 6 == 0:
            print(samples[-1], dict(counts), flush=True)
    await asyncio.gather(*talkers)
    print(dict(counts))
    return samples


def judge(samples: list[Sample], text: str, *, hurry: bool) -> bool:
    late = samples[len(samples) // 3 :]
    hours = np.array([s.at for s in late]) / 3600
    slope = float(np.polyfit(hours, [s.resident for s in late], 1)[0])
    spoken = [float(s.utterances) for s in late]
    each = float(np.polyfit(spoken, [s.resident for s in late], 1)[0])
    print(
        f"{spoken[-1] - spoken[0]:.0f} utterances: {each * 1024:.3f} KiB each, which is "
        f"{each * USUAL:.2f} MiB an hour at {USUAL} an hour"
    )
    hour = each * USUAL if hurry else slope
    good, p99, total = lags(text)
    spread = {
        name: (min(values), max(values))
        for name in ("descriptors", "threads")
        if (values := [getattr(s, name) for s in late])
    }
    print(
        f"resident {late[0].resident:.1f} to {late[-1].resident:.1f} MiB, slope {slope:.2f} MiB an "
        f"hour; {spread}; loop lag: {good:.2%} of {total:.0f} below 10 ms, 99 % below "
        f"{p99 * 1e3:g} ms"
    )
    return hour <= 1.0 and (hurry or good >= 0.99)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--talkers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hurry", action="store_true", help="short texts, no pauses")
    args = parser.parse_args()
    with served() as (pid, address):
        samples = asyncio.run(soak(pid, address, args))
        text = scrape(address)
    return 0 if judge(samples, text, hurry=args.hurry) else 1


if __name__ == "__main__":
    sys.exit(main())
