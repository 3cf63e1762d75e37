# ruff: noqa: E402 - the source tree is linked before it is imported
"""Each lane of the accelerator model beside the device's limit, and what lanes cost each other.

    python bench/gpu/roofline.py [--weights random:1.7b] [--batches 1 8 64 256 512]
        [--parts alone together kernels] [--kernels 64 512] [--partition 24]

The graphs are those that serve, on the streams that serve (two to three minutes, most of it
capturing). Times are of the device, medians; limits are those of bench/gpu/limits.py. Then two or
three lanes at once: back to back ("all"), or as often as that many streams in real time need it.
Prints tables; writes roofline.json to $OUT, or here. Random weights. Needs a CUDA device.
"""

import argparse
import json
import logging
import os
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import source_tree
import torch

source_tree.link()

import limits
from playhead.engine.models.qwen3_tts.cuda_codec import CodecLane
from playhead.engine.models.qwen3_tts.cuda_lm import LmBuckets
from playhead.engine.models.qwen3_tts.cuda_runner import Buckets, CudaRunner, open_cuda
from playhead.engine.types import Lane

CONTEXT, POSITIONS = 200, 512
PROMPTS = ((1, 32), (8, 32), (1, 64), (8, 64), (4, 128), (1, 256), (2, 256))
FRAME_SECONDS = 0.08
CROWD_CHUNK = (64, 8)
"""Streams and frames of the background chunks that run beside steps."""
URGENT_CHUNK = (8, 1)
ROUNDS = 15
SECONDS = 1.0
DEVICE = limits.Device()
PARTS = ("alone", "together", "kernels")


@dataclass(frozen=True)
class Work:
    """Something a lane does again and again: a graph, on the stream that it was captured on."""

    name: str
    stream: torch.cuda.Stream
    replay: Callable[[], None]
    before: Callable[[], None] = lambda: None
    keep: object = None  # what the graph reads: it holds addresses, not tensors

    def time(self) -> float:
        """Device milliseconds of one replay, and wait for it."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.inference_mode(), torch.cuda.stream(self.stream):
            self.before()
            start.record(self.stream)
            self.replay()
            end.record(self.stream)
        end.synchronize()
        return float(start.elapsed_time(end))

    def median(self) -> float:
        """Alone on the device."""
        self.time()
        return statistics.median(self.time() for _ in range(ROUNDS))

    def host_us(self) -> float:
        """Microseconds of the host's processor for a launch while the device is idle."""
        taken = []
        for _ in range(ROUNDS):
            self.stream.synchronize()
            with torch.inference_mode(), torch.cuda.stream(self.stream):
                began = time.thread_time()
                self.replay()
                taken.append(1e6 * (time.thread_time() - began))
        self.stream.synchronize()
        return statistics.median(taken)


class Lab:
    """The graphs of a runner as work."""

    def __init__(self, runner: CudaRunner) -> None:
        self.runner, self.lm, self.table = runner, runner.lm, runner._table
        with torch.inference_mode():
            every = torch.arange(self.table.slots + 1, device=self.table.device)
            full = torch.full_like(every, CONTEXT)
            self.table.begin(every, full, every * 7919, torch.full_like(every, 1 << 40))
            self.table.carry.normal_()
            self.lm.fresh.normal_()
        torch.cuda.synchronize()

    def step(self, batch: int) -> Work:
        """A frame of ``batch`` running streams."""
        graph = self.lm._steps[batch]
        with torch.inference_mode():
            graph.inputs[0] = torch.arange(batch, device=self.table.device)
            graph.inputs[1] = 0
        torch.cuda.synchronize()
        return Work(f"step {batch}", self.lm.stream, graph.graph.replay, self._rewind)

    def part(self, body: Callable[[], object]) -> Work:
        """Some of a step, in a graph of its own."""

        def run() -> None:
            body()

        graph = self.lm._record(run)
        return Work("part", self.lm.stream, graph.replay, keep=body)

    def predictor(self, batch: int) -> Work:
        """Codes 1 to 15 of a frame of ``batch`` streams."""
        loop, device = self.lm.loop, self.table.device
        hidden = self.lm.fresh[:batch].clone()
        first = torch.zeros(batch, dtype=torch.int64, device=device)
        uniform = torch.rand(batch, loop.predictor.groups, device=device)
        return self.part(lambda: loop.predictor.fill(hidden, first, loop.fine_rule, uniform))

    def talker(self, batch: int) -> Work:
        """One position of ``batch`` streams."""
        loop, device = self.lm.loop, self.table.device
        x, slots = self.lm.fresh[:batch].clone(), torch.arange(batch, device=device)
        at = torch.full_like(slots, CONTEXT)
        span, cache = self.table.positions, self.table.cache
        return self.part(lambda: loop.talker.step(x, slots, at, cache, span))

    def prompt(self, batch: int, rows: int) -> Work:
        """``batch`` prompts read at once."""
        graph = self.lm._prompts[batch, rows]
        with torch.inference_mode():
            graph.inputs[0] = torch.arange(batch, device=self.table.device)
            graph.inputs[1] = rows
        torch.cuda.synchronize()
        return Work(f"prompt {batch} x {rows}", self.lm.stream, graph.graph.replay)

    def piece(self, rows: int) -> Work:
        """A piece of a longer prompt, in the middle of its slot."""
        graph = self.lm._long._graphs[rows]
        with torch.inference_mode():
            graph.numbers.copy_(torch.tensor([[0], [CONTEXT], [rows - 1]]))
        torch.cuda.synchronize()
        return Work(f"piece of {rows}", self.lm.stream, graph.replay)

    def chunk(self, lane: Lane, streams: int, frames: int) -> Work:
        """``frames`` of each of ``streams``."""
        codecs = self.codecs[lane]
        graph = codecs._graphs[streams, frames]
        with torch.inference_mode():
            graph.where[:streams] = torch.arange(streams, device=self.table.device)
        torch.cuda.synchronize()
        return Work(f"{lane} {streams} x {frames}", codecs._stream, graph.graph.replay)

    @property
    def codecs(self) -> dict[Lane, CodecLane]:
        """By lane."""
        return dict(zip((Lane.URGENT, Lane.BACKGROUND), self.runner._lanes.every, strict=True))

    def _rewind(self) -> None:
        """A replay makes contexts longer; here they stay as they are."""
        self.table.length.fill_(CONTEXT)
        self.table.made.fill_(5)


def alone(lab: Lab, batches: list[int], sizes: limits.Sizes) -> list[dict[str, Any]]:
    """Everything, one by one."""
    rows: list[dict[str, Any]] = []

    def add(part: str, size: str, work: Work, limit: float, audio: float = 0.0) -> None:
        ms, host = work.median(), work.host_us()
        row = {"part": part, "size": size, "ms": ms, "limit_ms": limit, "of_limit": limit / ms}
        row["host_us"] = host
        extra = ""
        if audio:
            row["audio_s_per_s"] = 1e3 * audio / ms
            extra = f"  {row['audio_s_per_s']:,.0f} s/s"
        rows.append(row)
        told = f"{part:12} {size:>8} {ms:8.3f} {limit:8.3f} {limit / ms:8.0%} {host:8.0f}{extra}"
        print(told, flush=True)

    print("part             size       ms    limit of limit  host us")
    for batch in batches:
        add("LM step", str(batch), lab.step(batch), sizes.step(DEVICE, batch, CONTEXT))
        talker = sizes.talker(DEVICE, batch, CONTEXT)
        add("  talker", str(batch), lab.talker(batch), talker)
        add("  predictor", str(batch), lab.predictor(batch), sizes.predictor(DEVICE, batch))
    for batch, length in PROMPTS:
        limit = sizes.prompt(DEVICE, batch, length)
        add("prompts", f"{batch}x{length}", lab.prompt(batch, length), limit)
    for length in lab.lm._long.sizes:
        add("piece", str(length), lab.piece(length), sizes.prompt(DEVICE, 1, length))
    for lane, codecs in lab.codecs.items():
        for streams, frames in sorted(codecs._graphs):
            limit = limits.codec(DEVICE, streams, frames)
            work = lab.chunk(lane, streams, frames)
            add(str(lane), f"{streams}x{frames}", work, limit, streams * frames * FRAME_SECONDS)
    return rows


def together(*works: tuple[Work, float | None]) -> list[dict[str, float]]:
    """Each work in a thread of its own for a while, every so many seconds (None: back to back).
    Its device times, and how many seconds of each second it was at work."""
    found: list[list[float]] = [[] for _ in works]
    began = time.perf_counter() + 0.02

    def act(index: int, work: Work, every: float | None) -> None:
        due = began
        while (now := time.perf_counter()) < began + SECONDS:
            if now < due:
                time.sleep(due - now)
            found[index].append(work.time())
            due = max(due + every, time.perf_counter() - every) if every else due

    threads = [
        threading.Thread(target=act, args=(index, *work)) for index, work in enumerate(works)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [
        {
            "ms": statistics.median(times),
            "p95_ms": sorted(times)[int(0.95 * (len(times) - 1))],
            "per_s": len(times) / SECONDS,
            "busy": sum(times) / 1e3 / SECONDS,
        }
        for times in found
    ]


def at_once(lab: Lab, streams: int) -> list[dict[str, Any]]:
    """What a crowd of ``streams`` makes lanes cost each other."""
    step = lab.step(streams)
    crowd = lab.chunk(Lane.BACKGROUND, *CROWD_CHUNK)
    urgent = lab.chunk(Lane.URGENT, *URGENT_CHUNK)
    chunks = CROWD_CHUNK[0] * CROWD_CHUNK[1] * FRAME_SECONDS / streams  # seconds between two
    cases: list[tuple[str, list[tuple[Work, float | None]]]] = [
        ("alone", [(step, None)]),
        ("alone", [(crowd, None)]),
        ("alone", [(urgent, None)]),
        ("codec as needed", [(step, None), (crowd, chunks)]),
        ("codec all", [(step, None), (crowd, None)]),
        ("step as needed", [(crowd, None), (step, FRAME_SECONDS)]),
        ("both as needed", [(step, FRAME_SECONDS), (crowd, chunks)]),
        ("urgent beside step", [(urgent, 0.02), (step, None)]),
        ("urgent beside both", [(urgent, 0.02), (step, None), (crowd, chunks)]),
    ]
    rows: list[dict[str, Any]] = []
    apart: dict[str, float] = {}
    for name, works in cases:
        measured = together(*works)
        for (work, every), figures in zip(works, measured, strict=True):
            apart.setdefault(work.name, figures["ms"])
            slower = figures["ms"] / apart[work.name]
            pace = "all" if every is None else f"{1e3 * every:.0f} ms"
            row = {"streams": streams, "case": name, "work": work.name, "pace": pace}
            rows.append({**row, **figures, "times_alone": slower})
            shares = f"{slower:6.2f} {figures['busy']:5.0%} {figures['per_s']:6.0f}"
            print(
                f"{streams:7d} {name:18} {work.name:16} {pace:>6} {figures['ms']:7.2f}"
                f" {figures['p95_ms']:7.2f} {shares}",
                flush=True,
            )
    return rows


def profile(lab: Lab, batch: int) -> list[dict[str, Any]]:
    """Where the device's time of a step goes, by kernel."""
    work = lab.step(batch)
    print(f"a step of {batch} streams, {work.median():.2f} ms:")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as trace:
        for _ in range(5):
            work.time()
    kernels = sorted(trace.key_averages(), key=lambda kernel: -kernel.self_device_time_total)
    rows = [
        {"us": round(k.self_device_time_total / 5, 1), "calls": k.count // 5, "kernel": k.key[:90]}
        for k in kernels[:24]
    ]
    for row in rows:
        print(f"{row['us']:9.1f} us {row['calls']:5d} calls  {row['kernel']}", flush=True)
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weights", default="random:1.7b", choices=["random:1.7b", "random:0.6b"])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 64, 256, 512])
    parser.add_argument("--crowds", type=int, nargs="+", default=[64, 256, 512])
    parser.add_argument("--kernels", type=int, nargs="+", default=[64, 512], help="steps to list")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS[:2])
    parser.add_argument("--partition", type=int, default=0, help="the background lane's own SMs")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    args = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    began = time.perf_counter()
    wanted = dict(zip(PARTS, (args.batches, args.crowds, args.kernels), strict=True))
    batches = sorted({size for part in args.parts for size in wanted[part]})
    parts = (args.partition,) if args.partition else ()
    lm, slots = LmBuckets(tuple(batches), (1,), PROMPTS), max(batches)
    buckets = Buckets(lm, urgent=(1, 8, 64), background=(64,), parts=parts)
    runner = open_cuda(args.weights, slots=slots, positions=POSITIONS, buckets=buckets)
    device, name = torch.cuda.get_device_name(), runner.info.name
    print(f"{device}, {name} (random weights), ready in {time.perf_counter() - began:.0f} s")
    lab = Lab(runner)
    report: dict[str, Any] = {"device": device, "torch": torch.__version__, "model": name}
    report |= {"random_weights": True, "context": CONTEXT, "partition": args.partition}
    if "alone" in args.parts:
        sizes = limits.SIZES[args.weights.removeprefix("random:")]
        report["alone"] = alone(lab, args.batches, sizes)
    if "together" in args.parts:
        print(
            "streams case               work               pace      ms     p95  times busy per s"
        )
        report["together"] = [row for streams in args.crowds for row in at_once(lab, streams)]
    if "kernels" in args.parts:
        report["kernels"] = {batch: profile(lab, batch) for batch in args.kernels}
    report["memory_bytes"] = torch.cuda.max_memory_allocated()
    report["seconds"] = time.perf_counter() - began
    print(f"{report['memory_bytes'] / 2**30:.1f} GiB, {report['seconds']:.0f} s in all")
    args.out.joinpath("roofline.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
