"""What it costs that a model has a process of its own: one dispatch there and back.

    python bench/lanes_apart.py [--seconds 2] [--out FOLDER]

The model is a stand-in that answers at once, so that what is left is the way: a step of so many
streams (two frames each, and one in seventy ends), chunks of so many streams and frames, and a
text until the engine's thread knows that it can be stepped. Each is asked directly, as in one
process, and over the lines to another (``playhead serve --lanes apart``), in turn. Prints medians
and 95th percentiles in microseconds, and CPU time of the asking thread.

Then what it is for: three lanes that are at work as the accelerator's are (a third of the time in
many short calls that give the interpreter's lock up and take it again, the rest waiting), and
beside them a thread like the scheduler's that wants half a millisecond of work every two. Prints
how long that half millisecond takes, and how many dispatches the lanes do.

Writes lanes_apart.json with --out. Needs two cores that nobody else uses.
"""

import argparse
import json
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
from playhead.engine.policy import LaneLimits
from playhead.engine.progress import Tell
from playhead.engine.remote.runner_host import Hosted, host
from playhead.engine.remote.runner_proxy import start
from playhead.engine.types import ChunkWork, Lane, ModelInfo, Request, Runner, StepResult

RATE, FRAME = 24_000, 1_920
LADDER = (1, 2, 4, 8, 16)
ENDS = 70
SWITCH_INTERVAL = 0.0005  # as a server sets it
STREAMS = (1, 64, 512)
CHUNKS = ((1, 1), (16, 2), (64, 1), (64, 4), (64, 16))


class AtOnce:
    """A runner that has everything ready."""

    def __init__(self) -> None:
        self.info = ModelInfo("at-once", ("nobody",), RATE, FRAME, LADDER, 2)
        self._usual: dict[int, StepResult] = {}
        self._noise = np.random.default_rng(0).normal(0, 0.1, (64, 16 * FRAME)).astype(np.float32)

    def open(self, request: Request) -> None:
        number = request.utterance
        self._usual[number] = StepResult(number, 2, False, False, number % ENDS == 0)

    def push_text(self, utterance: int, delta: str, *, flush: bool, end: bool) -> bool:
        return True

    def step(self, utterances: Sequence[int]) -> list[StepResult]:
        return [self._usual[utterance] for utterance in utterances]

    def decode(self, chunks: Sequence[ChunkWork]) -> list[Any]:
        return [self._noise[row, : chunk.frames * FRAME].copy() for row, chunk in enumerate(chunks)]

    def close(self, utterance: int) -> None:
        self._usual.pop(utterance, None)


class Busy(AtOnce):
    """Each dispatch takes 4 ms of short calls and 8 ms of waiting."""

    def step(self, utterances: Sequence[int]) -> list[StepResult]:
        _work(0.004)
        time.sleep(0.008)
        return super().step(utterances)

    def decode(self, chunks: Sequence[ChunkWork]) -> list[Any]:
        _work(0.004)
        time.sleep(0.008)
        return super().decode(chunks)


_NUMBERS = np.zeros(2000, np.float32)


def _work(seconds: float) -> None:
    """So much of this thread's own processor time."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(number * number for number in range(60))
        np.add(_NUMBERS, 1.0)  # gives the lock up, as any array of that length does


def load(settings: bytes, tell: Tell) -> Hosted:
    """The stand-in, in its own process."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    runner = Busy() if settings == b"busy" else AtOnce()
    return Hosted(runner, LaneLimits(3, dict.fromkeys(Lane, 1), dict.fromkeys(Lane, 512)))


def timed(act: Callable[[], object], seconds: float) -> dict[str, float]:
    """Microseconds of one call: median, 95th percentile, and this thread's own CPU time."""
    for _ in range(20):
        act()
    took: list[float] = []
    until, cpu = time.perf_counter() + seconds, time.thread_time()
    while time.perf_counter() < until:
        began = time.perf_counter()
        act()
        took.append(time.perf_counter() - began)
    cpu = (time.thread_time() - cpu) / len(took)
    p50, p95 = np.percentile(took, [50, 95]) * 1e6
    return {"p50": round(p50, 1), "p95": round(p95, 1), "cpu": round(1e6 * cpu, 1)}


def beside(runner: Runner, seconds: float) -> dict[str, float]:
    """A scheduler's turns beside three lanes at work: microseconds, and dispatches a second."""
    over = threading.Event()
    done = [0, 0, 0]

    def lane(number: int, act: Callable[[], object]) -> None:
        while not over.is_set():
            act()
            done[number] += 1

    asked = cases(runner)
    works = [asked["step of 64"], asked["decode of 16 x 2 frames"]]
    other = [ChunkWork(50, 0, 0, 2, Lane.BACKGROUND, 0.1, 0.5, 0.0)]
    works.append(lambda: runner.decode(other))
    threads = [threading.Thread(target=lane, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    took: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        time.sleep(0.002)
        began = time.perf_counter()
        _work(0.0005)
        took.append(time.perf_counter() - began)
    over.set()
    for thread in threads:
        thread.join()
    p50, p95 = np.percentile(took, [50, 95]) * 1e6
    return {"p50": round(p50), "p95": round(p95), "dispatches": round(sum(done) / seconds, 1)}


def cases(runner: Runner) -> dict[str, Callable[[], object]]:
    """What is asked, by name."""
    out: dict[str, Callable[[], object]] = {}
    for count in STREAMS:
        batch = tuple(range(1, count + 1))
        out[f"step of {count}"] = lambda batch=batch: runner.step(batch)
    for count, frames in CHUNKS:
        works = [
            ChunkWork(number, 0, 0, frames, Lane.URGENT, 0.1, 0.5, 0.0)
            for number in range(1, count + 1)
        ]
        name = f"decode of {count} x {frames} frames"
        out[name] = lambda works=works: runner.decode(works)
    return out


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="of each case, each way")
    parser.add_argument("--out", type=Path)
    parser.add_argument("lines", nargs="?", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.lines:
        raise SystemExit(host([int(number) for number in args.lines.split(",")], load))
    sys.setswitchinterval(SWITCH_INTERVAL)
    here, apart = AtOnce(), start([sys.executable, __file__], b"")
    answers: SimpleQueue[Any] = SimpleQueue()
    apart.follow(answers.put)
    for number in range(1, max(STREAMS) + 1):
        for runner in (here, apart):
            runner.open(Request(number, "bench", "nobody"))
    apart.push_text(1, "", flush=False, end=False)
    answers.get()  # everything before it has been opened too

    def text() -> None:
        apart.push_text(1, "word ", flush=False, end=False)
        answers.get()

    direct, across = cases(here), cases(apart)
    rows: dict[str, Any] = {}
    print(f"{'us':24} {'direct p50':>10} {'apart p50':>10} {'p95':>8} {'cpu':>8}")
    for name in direct:
        one, other = timed(direct[name], args.seconds / 4), timed(across[name], args.seconds)
        rows[name] = {"direct": one, "apart": other}
        print(f"{name:24} {one['p50']:10} {other['p50']:10} {other['p95']:8} {other['cpu']:8}")
    rows["text"] = {"apart": timed(text, args.seconds)}
    print(f"{'text until answered':24} {'':10} {rows['text']['apart']['p50']:10}")
    apart.end()
    rows["turns"] = turns(args.seconds)
    if args.out:
        facts = {"machine": platform.machine(), "cores": os.cpu_count(), "us": rows}
        text_out = json.dumps(facts, indent=1) + "\n"
        (args.out / "lanes_apart.json").write_text(text_out, encoding="utf-8")


def turns(seconds: float) -> dict[str, Any]:
    """Both ways, twice in turn."""
    here, apart = Busy(), start([sys.executable, __file__], b"busy")
    apart.follow(lambda news: None)
    rows: dict[str, Any] = {"direct": [], "apart": []}
    for number in range(1, 65):
        for runner in (here, apart):
            runner.open(Request(number, "bench", "nobody"))
    print("half a millisecond of work beside three busy lanes: us p50, p95; dispatches a second")
    for name, runner in (("direct", here), ("apart", apart)) * 2:
        row = beside(runner, 2 * seconds)
        rows[name].append(row)
        print(f"{name:24} {row['p50']:10} {row['p95']:10} {row['dispatches']:8}")
    apart.end()
    return rows


if __name__ == "__main__":
    main()
