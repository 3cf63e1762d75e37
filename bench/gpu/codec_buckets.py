# ruff: noqa: E402 - the project is made importable first
"""How fast the neural codec decodes, per (batch, frames) bucket, and how exact its fast path is.

Builds the published configuration with random weights on one CUDA device and measures:

- fp32: plain torch, float32 without TF32: the yardstick
- bf16: the same code in bfloat16
- compiled: the same, its convolutional part through torch.compile, shape by shape
- fused: bfloat16 with the project's Triton kernels between the library's convolutions
- own: bfloat16 with the project's convolutions too
- own16: the same in float16

each as a CUDA graph, in seconds of audio per second. Errors are relative L2 norms against fp32 on
fresh random codes, over streams longer than the attention window.

    python bench/gpu/codec_buckets.py [--quick] [--profile 64x4]

Prints a table; writes codec_buckets.json to $OUT when that is set.
"""

import argparse
import json
import os
import statistics
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import source_tree
import torch
from triton.errors import TritonError

source_tree.link()

from playhead.engine.models.qwen3_tts.codec import Codec, CodecDecoder
from playhead.engine.models.qwen3_tts.codec_fused import FusedOps
from playhead.engine.models.qwen3_tts.codec_graphs import CodecGraph, CodecGraphs
from playhead.engine.models.qwen3_tts.codec_ops import TorchOps
from playhead.engine.models.qwen3_tts.codec_spec import decoder_tensors
from playhead.engine.models.qwen3_tts.codec_state import Columns
from playhead.engine.models.qwen3_tts.codec_triton import TritonOps
from playhead.engine.models.qwen3_tts.config import CodecDecoderConfig
from playhead.engine.models.qwen3_tts.presets import codec_config
from playhead.engine.models.qwen3_tts.weights import Tensors, random_tensors

FRAME_SECONDS = 0.08
FRAME_GFLOP = 4.961  # per frame, counted layer by layer
MAX_FRAMES = 12
SLOTS = 320
REPEATS = 30

Bucket = tuple[int, int]

PUBLISHED = codec_config().decoder

BUCKETS: dict[str, list[Bucket]] = {
    "fp32": [(1, 1), (8, 4), (64, 4)],
    "bf16": [(1, 1), (8, 4), (64, 4), (64, 12)],
    "compiled": [(1, 1), (8, 4), (64, 4)],
    "fused": [
        *((1, 1), (8, 1), (32, 1), (64, 1), (128, 1), (1, 4), (8, 4), (32, 4), (64, 4), (128, 4)),
        *((256, 4), (8, 12), (64, 12)),
    ],
    "own16": [(1, 1), (8, 4), (64, 4)],
}
BUCKETS["own"] = BUCKETS["fused"]
QUICK: dict[str, list[Bucket]] = {
    "fp32": [(8, 4)],
    "bf16": [(8, 4)],
    "fused": [(1, 1), (8, 4), (64, 4)],
    "own": [(1, 1), (8, 1), (8, 4), (24, 4), (24, 8), (32, 4), (64, 4), (64, 8)],
    "own16": [(64, 4)],
}


class CompiledDecoder(CodecDecoder):
    """The part after the transformer through torch.compile."""

    def __init__(self, config: CodecDecoderConfig, tensors: Tensors, ops: TorchOps) -> None:
        super().__init__(config, tensors, ops)
        self._pure = torch.compile(self._render, dynamic=False, fullgraph=True)

    def _render(
        self, x: torch.Tensor, rows: torch.Tensor
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        columns = Columns(rows, self.layout)
        return super().render(x, columns), columns.parts

    def render(self, x: torch.Tensor, columns: Columns) -> torch.Tensor:
        pcm, parts = self._pure(x, columns.rows)
        columns.parts[1:] = parts[1:]  # the first was kept before the transformer
        return pcm


def codecs(tensors: Tensors) -> dict[str, Callable[[], Codec]]:
    """How to build each variant."""

    def build(kind: type[CodecDecoder], ops: TorchOps) -> Codec:
        decoder = kind(PUBLISHED, tensors, ops)
        return Codec(decoder, decoder.arena(SLOTS, MAX_FRAMES), MAX_FRAMES)

    return {
        "fp32": lambda: build(CodecDecoder, TorchOps(torch.float32)),
        "bf16": lambda: build(CodecDecoder, TorchOps(torch.bfloat16)),
        "compiled": lambda: build(CompiledDecoder, TorchOps(torch.bfloat16)),
        "fused": lambda: build(CodecDecoder, TritonOps(torch.bfloat16)),
        "own": lambda: build(CodecDecoder, FusedOps(torch.bfloat16)),
        "own16": lambda: build(CodecDecoder, FusedOps(torch.float16)),
    }


def random_codes(batch: int, frames: int, seed: int) -> torch.Tensor:
    generator = torch.Generator("cuda").manual_seed(seed)
    shape = (batch, PUBLISHED.quantizers, frames)
    return torch.randint(0, PUBLISHED.codebook_size, shape, device="cuda", generator=generator)


def median_ms(run: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median device time of a call, in milliseconds."""
    marks = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats)]
    for _ in range(3):
        run()
    for before, after in marks:
        before.record()
        run()
        after.record()
    torch.cuda.synchronize()
    return statistics.median(before.elapsed_time(after) for before, after in marks)


def relative(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """Relative L2 error; a NaN never passes as small."""
    if not found.isfinite().all():
        return float("inf")
    return ((found - wanted).double().norm() / wanted.double().norm()).item()


def measure(name: str, codec: Codec, buckets: Iterable[Bucket]) -> list[dict[str, Any]]:
    """A row per bucket: graph replay time on random codes."""
    rows = []
    stream = torch.cuda.Stream()
    for batch, frames in buckets:
        started = time.perf_counter()
        graph = CodecGraph(codec, batch, frames, stream, torch.cuda.graph_pool_handle())
        capture = time.perf_counter() - started
        codec.reset(torch.arange(SLOTS + 1, device="cuda"))
        graph.codes.copy_(random_codes(batch, frames, batch))
        graph.slots.copy_(torch.randperm(SLOTS, device="cuda")[:batch])
        first, second = median_ms(graph.replay), median_ms(graph.replay)
        audio = batch * frames * FRAME_SECONDS
        row = {
            "variant": name,
            "batch": batch,
            "frames": frames,
            "ms": round(min(first, second), 4),
            "spread": round(abs(first - second) / first, 4),
            "audio_s_per_s": round(audio / min(first, second) * 1000, 1),
            "tflops": round(batch * frames * FRAME_GFLOP / min(first, second), 1),
            "capture_s": round(capture, 2),
        }
        rows.append(row)
        print(row, flush=True)
        del graph
    return rows


def stream_of(codec: Codec, codes: torch.Tensor, sizes: Iterable[int]) -> torch.Tensor:
    """Unclamped PCM of fresh streams decoded in chunks of the given sizes."""
    slots = torch.arange(codes.shape[0], device="cuda")
    codec.reset(slots)
    parts, start = [], 0
    for size in sizes:
        parts.append(codec.decode(codes[:, :, start : start + size], slots, clamp=False))
        start += size
    return torch.cat(parts, 1)


def errors(name: str, codec: Codec, exact: Codec, seeds: Iterable[int]) -> dict[str, Any]:
    """Relative L2 error against fp32 over 96 frames, past the attention window."""
    sizes = [1, 1, 2, 4, 4, *[12] * 7]
    found = []
    for seed in seeds:
        codes = random_codes(3, sum(sizes), 1000 + seed)
        found.append(relative(stream_of(codec, codes, sizes), stream_of(exact, codes, sizes)))
    result = {"variant": name, "against": "fp32", "relative_l2": [f"{e:.2e}" for e in found]}
    print(result, flush=True)
    return result


def checks(name: str, codec: Codec) -> dict[str, Any]:
    """Graph against eager, and a stream alone against the same in a shuffled batch."""
    graphs = CodecGraphs(codec, [1, 16], [4])
    codes = random_codes(11, 24, 7)
    eager = stream_of(codec, codes, [4] * 6).clamp(-1, 1)
    order = torch.tensor([40, 3, 77, 12, 200, 5, 19, 33, 150, 9, 61], device="cuda")
    together = run_graphs(graphs, codes, order)
    alone = run_graphs(graphs, codes[4:5], order[:1])
    mixed = stream_of(codec, codes[:3], [1, 4, 7, 12]).clamp(-1, 1)
    result = {
        "variant": name,
        "graph_vs_eager": f"{relative(together, eager):.2e}",
        "alone_vs_batch": f"{relative(alone[0], together[4]):.2e}",
        "chunks_vs_chunks": f"{relative(mixed, eager[:3]):.2e}",
        "host_us_per_call": round(host_us(graphs, codes[:, :, :4], order), 1),
    }
    print(result, flush=True)
    return result


def run_graphs(graphs: CodecGraphs, codes: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
    graphs.codec.reset(slots)
    parts = []
    for start in range(0, codes.shape[2], 4):
        graphs.bucket(len(slots), 4).pcm.fill_(float("nan"))  # what is not written shows
        parts.append(graphs.decode(codes[:, :, start : start + 4], slots).clone())
    return torch.cat(parts, 1)


def host_us(graphs: CodecGraphs, codes: torch.Tensor, slots: torch.Tensor) -> float:
    """Host time of one call, the device idle before it."""
    spent = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        started = time.perf_counter()
        graphs.decode(codes, slots)
        spent.append(time.perf_counter() - started)
    return statistics.median(spent) * 1e6


def against_cpu(exact: Codec, tensors: Tensors) -> dict[str, Any]:
    """The yardstick itself: fp32 on the device against fp32 on the CPU."""
    on_cpu = CodecDecoder(PUBLISHED, {name: value.cpu() for name, value in tensors.items()})
    codec = Codec(on_cpu, on_cpu.arena(1, MAX_FRAMES), MAX_FRAMES)
    codes = random_codes(1, 6, 99)
    wanted = codec.decode(codes.cpu(), torch.tensor([0]), clamp=False)
    found = stream_of(exact, codes, [1, 4, 1])
    result = {"variant": "fp32", "against": "cpu", "rms": f"{wanted.square().mean().sqrt():.3f}"}
    result["relative_l2"] = f"{relative(found.cpu(), wanted):.2e}"
    print(result, flush=True)
    return result


def profile(codec: Codec, bucket: Bucket) -> list[dict[str, Any]]:
    """Where the device time of one eager decode goes, by kernel."""
    batch, frames = bucket
    codes, slots = random_codes(batch, frames, 5), torch.arange(batch, device="cuda")
    for _ in range(3):
        codec.decode(codes, slots)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as trace:
        for _ in range(5):
            codec.decode(codes, slots)
        torch.cuda.synchronize()
    kernels = sorted(trace.key_averages(), key=lambda k: -k.self_device_time_total)
    rows = [
        {"us": round(k.self_device_time_total / 5, 1), "calls": k.count // 5, "kernel": k.key[:90]}
        for k in kernels[:40]
    ]
    for row in rows:
        print(row, flush=True)
    return rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few buckets, no compiled variant")
    parser.add_argument("--variants", default="fp32,bf16,fused,own,own16,compiled")
    parser.add_argument("--profile", metavar="BxT", help="list the kernels of one bucket")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    torch.backends.cudnn.benchmark = True
    tensors = random_tensors(decoder_tensors(PUBLISHED), 0, device="cuda")
    makers = codecs(tensors)
    exact = makers["fp32"]()
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "slot_bytes_bf16": None,
        "errors": [against_cpu(exact, tensors)],
        "checks": [],
        "buckets": [],
        "faults": [],
    }
    chosen = QUICK if options.quick else BUCKETS
    for name in (name for name in options.variants.split(",") if name in chosen):
        codec = exact if name == "fp32" else makers[name]()
        if name != "fp32":
            report["slot_bytes_bf16"] = codec.arena.slot_bytes
        try:
            run_variant(name, codec, exact, chosen[name], report)
        except (RuntimeError, TritonError):  # the other variants are still worth measuring
            report["faults"].append(traceback.format_exc())
            print(report["faults"][-1], flush=True)
        if name == "own" and options.profile:
            batch, frames = map(int, options.profile.split("x"))
            report["profile"] = profile(codec, (batch, frames))
    report["peak_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
    finish(report)


def run_variant(
    name: str, codec: Codec, exact: Codec, buckets: list[Bucket], report: dict[str, Any]
) -> None:
    if name != "compiled":  # every chunk length would be compiled anew
        report["errors"].append(errors(name, codec, exact, range(3)))
        report["checks"].append(checks(name, codec))
    report["buckets"] += measure(name, codec, buckets)


def finish(report: dict[str, Any]) -> None:
    out = os.environ.get("OUT")
    if out:
        (Path(out) / "codec_buckets.json").write_text(json.dumps(report, indent=1) + "\n")
    print(f"\n{report['device']}, torch {report['torch']}, peak {report['peak_gib']} GiB")
    print(
        f"{'variant':<9} {'B x T':>8} {'ms':>9} {'audio-s/s':>10} {'TFLOP/s':>8} {'capture s':>9}"
    )
    for row in report["buckets"]:
        bucket = f"{row['batch']}x{row['frames']}"
        print(
            f"{row['variant']:<9} {bucket:>8} {row['ms']:>9.3f} {row['audio_s_per_s']:>10.1f} "
            f"{row['tflops']:>8.1f} {row['capture_s']:>9.2f}"
        )
    for row in (*report["errors"], *report["checks"]):
        print(row)


if __name__ == "__main__":
    main()
