# ruff: noqa: E402 - the source tree is linked before it is imported
"""What the lanes of one GPU cost each other: a step and a chunk, each alone and both at once.

    python bench/gpu/lanes.py

Times are of the host, from the call to the answer, as the scheduler sees them. Random weights.
With $OUT set, writes lanes.json there. Needs a CUDA device.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import source_tree
import torch

source_tree.link()

from playhead.engine.models.qwen3_tts.cuda_codec import Job
from playhead.engine.models.qwen3_tts.cuda_lm import LmBuckets, Opening
from playhead.engine.models.qwen3_tts.cuda_runner import Buckets, CudaRunner, open_cuda
from playhead.engine.models.qwen3_tts.prompt import Prompt, Row
from playhead.engine.types import Lane

BUCKETS = Buckets(
    LmBuckets((1, 8, 32, 64), (1,), ((1, 32), (8, 32))), urgent=(1, 8, 32), background=(8, 32)
)
ORDERS = {
    "lm first": {Lane.LM: -2, Lane.URGENT: -1, Lane.BACKGROUND: 0},
    "urgent first": {Lane.LM: 0, Lane.URGENT: -1, Lane.BACKGROUND: 0},
}
SECONDS = 1.0


def opening(slot: int) -> Opening:
    """A prompt of 30 rows."""
    return Opening(Prompt(tuple(Row(100 + i, 2148) for i in range(30)), ()), slot, slot, 1 << 40)


class Lab:
    """The calls that are timed."""

    def __init__(self, runner: CudaRunner) -> None:
        self.runner, self.lm = runner, runner.lm

    @torch.inference_mode()
    def open(self, count: int) -> None:
        with torch.cuda.stream(self.lm.stream):
            self.lm.open([opening(slot) for slot in range(count)])
            self.lm.stream.synchronize()

    @torch.inference_mode()
    def step(self, running: int, opened: int = 0) -> None:
        with torch.cuda.stream(self.lm.stream):
            self.lm.step(range(running), range(running, running + opened))

    def decode(self, lane: Lane, count: int, frames: int) -> None:
        self.runner._lanes[lane].decode([Job(slot, 0, frames) for slot in range(count)])


def rate(act: Callable[[], None], until: float) -> list[float]:
    """Seconds of each call, until a moment."""
    times = []
    while (began := time.perf_counter()) < until:
        act()
        times.append(time.perf_counter() - began)
    return times


def together(*acts: Callable[[], None]) -> list[float]:
    """Median milliseconds of each, all at once for a while."""
    until = time.perf_counter() + SECONDS
    found: list[list[float]] = [[] for _ in acts]

    def work(index: int) -> None:
        found[index] = rate(acts[index], until)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [round(1e3 * sorted(times)[len(times) // 2], 2) for times in found]


def measure(lab: Lab) -> dict[str, Any]:
    """One order of priorities."""
    lab.open(8)
    out: dict[str, Any] = {}
    acts: dict[str, Callable[[], None]] = {
        "open 1": lambda: lab.open(1),
        "open 8": lambda: lab.open(8),
        "first 1": lambda: lab.step(0, 1),
        "step 1": lambda: lab.step(1),
        "step 8": lambda: lab.step(8),
        "step 64": lambda: lab.step(64),
        "urgent 1x1": lambda: lab.decode(Lane.URGENT, 1, 1),
        "urgent 8x1": lambda: lab.decode(Lane.URGENT, 8, 1),
        "urgent 32x1": lambda: lab.decode(Lane.URGENT, 32, 1),
        "background 8x4": lambda: lab.decode(Lane.BACKGROUND, 8, 4),
        "background 32x8": lambda: lab.decode(Lane.BACKGROUND, 32, 8),
    }
    for name, act in acts.items():
        out[name] = together(act)[0]
        print(f"  {name}: {out[name]} ms", flush=True)
    for pair in (
        ("step 64", "urgent 1x1"),
        ("step 64", "urgent 8x1"),
        ("step 64", "background 8x4"),
        ("step 64", "background 32x8"),
        ("step 64", "urgent 8x1", "background 32x8"),
    ):
        found = together(*(acts[name] for name in pair))
        out[" + ".join(pair)] = found
        print(f"  {' + '.join(pair)}: {found} ms", flush=True)
    return out


def main() -> None:
    """Measure and print."""
    logging.basicConfig(level="INFO")
    report: dict[str, Any] = {"device": torch.cuda.get_device_name(), "weights": "random"}
    runner = open_cuda("random:1.7b", slots=64, positions=512, buckets=BUCKETS)
    for name, order in ORDERS.items():
        runner = CudaRunner(runner._parts, runner._options, BUCKETS, order)
        print(name, flush=True)
        report[name] = measure(Lab(runner))
    if "OUT" in os.environ:
        path = Path(os.environ["OUT"]) / "lanes.json"
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
