# ruff: noqa: E402 - the source tree is linked before it is imported
"""The whole runner on a CUDA device, 1.7B with random weights: is it right, and what does it cost?

    python bench/gpu/runner_check.py [--slots 64] [--no-compile]

Speaks alone, in batches and in shuffled batches; times the host's view of a first frame, of steps
and of chunks. With $OUT set, writes runner_check.json there.
"""

import argparse
import json
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import source_tree
import torch

source_tree.link()

from playhead.engine.models.qwen3_tts.execution import Buckets, Graphed
from playhead.engine.models.qwen3_tts.loading import Setup, open_runner
from playhead.engine.models.qwen3_tts.runner import Qwen3Runner
from playhead.engine.types import ChunkWork, Lane, Request

TEXT = "The quick brown fox jumps over the lazy dog, and then it rests a while in the sun. "
FRAMES = 24


def milliseconds(act: Callable[[], object], rounds: int) -> float:
    """Median wall time of ``act``."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        act()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def begin(model: Qwen3Runner, numbers: Sequence[int]) -> None:
    for number in numbers:
        model.open(Request(number, "bench", "ryan", seed=number % 1000))
        model.push_text(number, TEXT * (1 + number % 3), flush=False, end=True)


def chunk(number: int, first: int, frames: int, lane: Lane) -> ChunkWork:
    return ChunkWork(number, 0, first, frames, lane, None, 0.0, 0.0)


def codes(model: Qwen3Runner, numbers: Sequence[int]) -> dict[int, Any]:
    """Codes of the utterances, spoken as one batch."""
    begin(model, numbers)
    for _ in range(FRAMES):
        for result in model.step(numbers):
            assert result.error is None, result.error
    out = {}
    for number in numbers:
        slot = model._streams[number].slot
        out[number] = model._table.codes[slot, :FRAMES].cpu()
        model.close(number)
    return out


def first_frame(model: Qwen3Runner, number: int) -> None:
    """Text to PCM of one frame."""
    begin(model, [number])
    model.step([number])
    model.decode([chunk(number, 0, 1, Lane.URGENT)])
    model.close(number)


def steps(model: Qwen3Runner, batch: int, base: int) -> dict[str, float]:
    """Wall times of a batch that runs."""
    numbers = list(range(base, base + batch))
    begin(model, numbers)
    for at in range(0, batch, 8):
        model.step(numbers[at : at + 8])
    step_ms = milliseconds(lambda: model.step(numbers), 12)
    start = time.perf_counter()
    pcm = model.decode([chunk(number, 0, 4, Lane.BACKGROUND) for number in numbers])
    chunk_ms = (time.perf_counter() - start) * 1e3
    assert not any(isinstance(row, BaseException) for row in pcm), pcm[0]
    for number in numbers:
        model.close(number)
    return {"batch": batch, "step_ms": step_ms, "chunk_of_4_ms": chunk_ms}


def independence(model: Qwen3Runner, batch: int) -> dict[str, float]:
    """Share of frames that are the same alone, together and shuffled."""
    numbers = list(range(1000, 1000 + batch))
    whole = codes(model, numbers)
    shuffled = numbers.copy()
    random.Random(1).shuffle(shuffled)
    again = codes(model, shuffled)
    alone = {number: codes(model, [number])[number] for number in numbers[:4]}

    def share(other: dict[int, Any]) -> float:
        rows = [(other[n] == whole[n]).all(-1).float().mean() for n in other]
        return float(torch.stack(rows).mean())

    return {"shuffled_frames_equal": share(again), "alone_frames_equal": share(alone)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--no-compile", action="store_true")
    args = parser.parse_args()
    start = time.perf_counter()
    batches = tuple(size for size in (1, 8, 64, 256) if size <= args.slots)
    setup = Setup(
        slots=args.slots,
        positions=512,
        device="cuda",
        dtype="bfloat16",
        random_seed=1,
        frames=lambda _: 400,
        compiled=not args.no_compile,
        buckets=Buckets(batches=batches, prompt_rows=(64, 128), chunk_frames=(1, 4)),
    )
    model = open_runner("1.7b", setup)
    report: dict[str, Any] = {"model": model.info.name, "device": torch.cuda.get_device_name()}
    report["start_seconds"] = time.perf_counter() - start
    print(f"ready in {report['start_seconds']:.0f} s", flush=True)
    numbers = iter(range(1, 1000))
    report["first_frame_ms"] = milliseconds(lambda: first_frame(model, next(numbers)), 20)
    print(f"text to first PCM: {report['first_frame_ms']:.1f} ms", flush=True)
    report["independence"] = independence(model, min(16, args.slots))
    print(json.dumps(report["independence"]), flush=True)
    report["steps"] = [steps(model, batch, 10_000 * (i + 1)) for i, batch in enumerate(batches)]
    for row in report["steps"]:
        print(json.dumps(row), flush=True)
    assert isinstance(model._run, Graphed)
    report["eager_calls"] = model._run.graphs.eager
    report["memory_bytes"] = torch.cuda.max_memory_allocated()
    print(f"calls without a graph: {report['eager_calls']}")
    if "OUT" in os.environ:
        path = Path(os.environ["OUT"]) / "runner_check.json"
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
