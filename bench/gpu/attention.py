# ruff: noqa: E402 - the source tree is linked before it is imported
"""How the newest-position attention is best cut: times for blocks, warps and stages.

    python bench/gpu/attention.py [--batches 1 8 64 512 1024] [--contexts 80 200]

Talker's shape (16 query heads, 8 key heads of 128, bfloat16), memory of many layers so that nothing
stays in the cache; then the predictor's few keys. Microseconds a call inside a CUDA graph, and the
share of the device's memory bandwidth that the keys and values read in it make. One minute.
Writes attention.json to $OUT, or here. Needs a CUDA device.
"""

import argparse
import itertools
import json
import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import source_tree
import torch

source_tree.link()

from playhead.engine.models.qwen3_tts import attention_triton
from playhead.engine.models.qwen3_tts.layers import Entry, Few, Slotted

HEADS, KV_HEADS, WIDTH = 16, 8, 128
LAYERS, POSITIONS, CALLS = 8, 256, 24
BANDWIDTH = 4.8e12
"""Bytes a second, as the device is sold (141 GB of HBM3e)."""
ROUNDS = 7
CUTS = tuple(itertools.product((16, 32), (1, 2), (1, 3)))
CUTS += tuple(itertools.product((64, 128), (4, 8), (1, 3)))


def entry() -> Entry:
    """What attention needs of a layer's weights."""
    ones = torch.ones(WIDTH, device="cuda", dtype=torch.bfloat16)
    return Entry(ones, ones, ones, ones)


def microseconds(call: Callable[[int], object]) -> float:
    """Of one of ``CALLS`` calls in a graph; each gets its number."""
    stream = torch.cuda.Stream()
    with torch.inference_mode(), torch.cuda.stream(stream):
        call(0)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for index in range(CALLS):
                call(index)
        times = []
        for _ in range(ROUNDS):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record(stream)
            graph.replay()
            end.record(stream)
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e3 / CALLS)
    return statistics.median(times)


def over_slots(batch: int, context: int, memory: list[torch.Tensor]) -> Callable[[int], object]:
    """A call over slots of one layer after the other."""
    qkv = torch.randn(batch, (HEADS + 2 * KV_HEADS) * WIDTH, device="cuda").bfloat16()
    cos = torch.ones(batch, 1, WIDTH, device="cuda", dtype=torch.bfloat16)
    slots = torch.arange(batch, device="cuda")
    at, weights = torch.full_like(slots, context), entry()

    def call(index: int) -> object:
        keys, values = (kind[index % LAYERS] for kind in memory)
        place = Slotted(keys, values, slots, at, POSITIONS)
        return attention_triton.over_slots(qkv, weights, cos, cos, place, 1e-6)

    return call


def over_few(batch: int, at: int) -> Callable[[int], object]:
    """A call over the predictor's keys."""
    qkv = torch.randn(batch, (HEADS + 2 * KV_HEADS) * WIDTH, device="cuda").bfloat16()
    cos = torch.ones(1, 1, WIDTH, device="cuda", dtype=torch.bfloat16)
    memory = torch.zeros(2, batch, 16, KV_HEADS, WIDTH, device="cuda", dtype=torch.bfloat16)
    weights = entry()

    def call(_: int) -> object:
        place = Few(memory[0], memory[1], at)
        return attention_triton.over_few(qkv, weights, cos, cos, place, 1e-6)

    return call


def sweep(batches: list[int], contexts: list[int]) -> list[dict[str, Any]]:
    """Every cut for every load; the best three are printed."""
    shape = (LAYERS, max(batches), POSITIONS, KV_HEADS, WIDTH)
    memory = [torch.zeros(shape, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
    rows: list[dict[str, Any]] = []
    for batch, context in itertools.product(batches, contexts):
        call = over_slots(batch, context, memory)
        found = []
        for cut in CUTS:
            attention_triton.CUTS = (cut, cut)
            found.append((microseconds(call), cut))
        read = batch * context * 2 * KV_HEADS * WIDTH * 2
        for us, cut in sorted(found):
            share = read / BANDWIDTH / (us * 1e-6)
            rows.append({"batch": batch, "context": context, "us": us, "cut": cut, "share": share})
        for row in rows[-len(found) :][:3]:
            print(f"slots {batch:5d} x {context:3d}  {row['us']:8.1f} us  {row['share']:4.0%}"
                  f"  block, warps, stages {row['cut']}", flush=True)  # fmt: skip
    for batch, at in itertools.product(batches, (1, 15)):
        us = microseconds(over_few(batch, at))
        rows.append({"batch": batch, "at": at, "us": us})
        print(f"few   {batch:5d} x {at:3d}  {us:8.1f} us", flush=True)
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 64, 512, 1024])
    parser.add_argument("--contexts", type=int, nargs="+", default=[80, 200])
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    args = parser.parse_args()
    report = {"device": torch.cuda.get_device_name(), "rows": sweep(args.batches, args.contexts)}
    args.out.joinpath("attention.json").write_text(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
