#!/usr/bin/env python3
"""30 real minutes on loopback: a served voice, a few listeners that come, go, break off and return.

    bench/reliability/soak_real.py [--minutes 30] [--warm 4] [--talkers 3] [--out soak.json]
    bench/reliability/soak_real.py --minutes 4 --talkers 4 --hurry --warm 0  # many a second

Watches the server from outside: resident memory, descriptors, threads and tasks of the process, and
what its own metrics say of sessions, utterances and the lag of the event loop. ``--warm`` minutes
of hurry come first and are not judged: what a voice takes up while it meets its first thousands of
utterances is not growth. Ends with one table of goals and measurements; exit status 0 when all are
met. Growth is told by the hour and by the utterance: whatever an utterance leaves behind shows in
a short run of many of them.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from kit import machine
from playhead.client import PlayheadError, connect
from soak_verdict import Sample, lags, table, verdict

EVERY = 10.0
QUIET = ("--log-level", "error")
PROGRAM = Path(__file__).with_name("soak_served.py")
ENDED = r"^playhead_utterances_total\{[^}]*\} (\S+)$"
SENTENCES = (
    "Good morning, everybody.",
    "This server has been talking for a while, and nobody should notice how long.",
    "What is said at the end must sound like what was said at the beginning.",
    "One more short one.",
)
SHORT = ("Yes.", "Of course.", "One more.", "Good morning, everybody.")


@dataclass(frozen=True)
class Served:
    """A server process with the bundled voice."""

    pid: int
    address: str
    told: Path  # where it writes how many tasks it has


@contextlib.contextmanager
def served() -> Iterator[Served]:
    """The bundled voice in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "tasks")
        with subprocess.Popen(
            [sys.executable, str(PROGRAM), "serve", "--port", "0", "--http-port", "off", *QUIET],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "SOAK_TASKS": str(told)},
        ) as process:
            assert process.stdout is not None
            found = re.search(r"http://(127\.0\.0\.1:\d+)", process.stdout.readline())
            assert found
            try:
                yield Served(process.pid, found[1], told)
            finally:
                process.terminate()


def scrape(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def value(text: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.M)
    return float(found[1]) if found else 0.0


def tasks(server: Served) -> int:
    """How many its event loop has."""
    server.told.unlink(missing_ok=True)
    os.kill(server.pid, signal.SIGUSR1)
    for _ in range(500):
        if server.told.exists() and (text := server.told.read_text()).endswith("\n"):
            return int(text)
        time.sleep(0.01)
    raise TimeoutError("the server does not tell its tasks")


def look(server: Served, began: float) -> Sample:
    """All that can be seen of it now."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    counted = tasks(server)
    descriptors = len(os.listdir(f"/proc/{server.pid}/fd"))  # without that of the next line
    text = scrape(server.address)
    total, good = lags(text)
    return Sample(
        at=time.monotonic() - began,
        resident=int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024,  # type: ignore[index]
        descriptors=descriptors,
        threads=int(re.search(r"Threads:\s+(\d+)", status)[1]),  # type: ignore[index]
        tasks=counted,
        sessions=round(value(text, "playhead_sessions")),
        utterances=round(sum(map(float, re.findall(ENDED, text, re.M)))),
        lags=total,
        lags_good=good,
    )


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


async def crowd(server: Served, args: argparse.Namespace, minutes: float) -> list[Sample]:
    """Talkers for so many minutes, and what is seen of the server meanwhile."""
    began, counts, samples = time.monotonic(), Counter[str](), list[Sample]()
    until = began + 60 * minutes
    talkers = [
        asyncio.create_task(
            talk(server.address, random.Random(f"{args.seed} {n}"), until, counts, hurry=args.hurry)
        )
        for n in range(args.talkers)
    ]
    while time.monotonic() < until:
        await asyncio.sleep(EVERY)
        samples.append(await asyncio.to_thread(look, server, began))
        if len(samples) % 6 == 0:
            print(samples[-1], dict(counts), flush=True)
    await asyncio.gather(*talkers)
    print(dict(counts), flush=True)
    return samples


async def quiet(server: Served, began: float) -> Sample:
    """What is seen when nobody is there: sessions that were cut off have run out."""
    for _ in range(60):
        await asyncio.sleep(1.0)
        found = await asyncio.to_thread(look, server, began)
        if not found.sessions:
            break
    await asyncio.sleep(2.0)  # their sockets too
    return await asyncio.to_thread(look, server, began)


async def soak(server: Served, args: argparse.Namespace) -> tuple[Sample, list[Sample], Sample]:
    """Before, while they speak, and after."""
    if args.warm:
        hurried = argparse.Namespace(**{**vars(args), "hurry": True})
        await crowd(server, hurried, args.warm)
    began = time.monotonic()
    before = await quiet(server, began)
    samples = await crowd(server, args, args.minutes)
    return before, samples, await quiet(server, began)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--warm", type=float, default=4.0, help="minutes of hurry before that")
    parser.add_argument("--talkers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hurry", action="store_true", help="short texts, no pauses")
    parser.add_argument("--out", help="JSON file for all samples")
    args = parser.parse_args()
    with served() as server:
        before, samples, after = asyncio.run(soak(server, args))
    lines = verdict(before, samples, after, hurry=args.hurry)
    print(table(lines))
    if args.out:
        seen = {"before": before, "after": after}
        raw = {
            "machine": machine(),
            "arguments": vars(args),
            "verdict": [asdict(line) for line in lines],
            **{name: asdict(sample) for name, sample in seen.items()},
            "samples": [asdict(sample) for sample in samples],
        }
        Path(args.out).write_text(json.dumps(raw, indent=1) + "\n")
    return 0 if all(line.good is not False for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
