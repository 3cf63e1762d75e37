# ruff: noqa: E402 - the project is made importable first
"""The neural codec's convolutions, layer by layer: separate kernels against fused ones.

For every convolution of the published decoder and every (streams x frames) bucket: the time of the
plain path (the library's convolution, then the project's kernel for what follows it), of each tile
of the fused kernel, and both errors against float32 on the same input.

    python bench/gpu/codec_kernels.py [--buckets 1x1,64x4] [--layers unit96,unit192] [--profile 1x1]

Prints a table; writes codec_kernels.json to $OUT when that is set.
"""

import argparse
import json
import os
import statistics
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import source_tree
import torch

source_tree.link()

from playhead.engine.models.qwen3_tts import codec_conv_triton as fused
from playhead.engine.models.qwen3_tts.codec_conv_triton import Tile
from playhead.engine.models.qwen3_tts.codec_ops import TorchOps, Unit, Wave, full_float32
from playhead.engine.models.qwen3_tts.codec_triton import TritonOps, _fold

BUCKETS = "1x1,8x1,8x4,32x4,64x4,64x8"
PEAK = 790e12  # FLOP/s, dense bf16, measured on this kind of device
CALLS = 4  # in one graph
REPLAYS = 6
Found = tuple[torch.Tensor | None, torch.Tensor]


@dataclass(frozen=True)
class Layer:
    """``kind`` conv, mix or unit; ``columns``: input columns for each frame; ``before``: past
    columns of the layer that reads the output."""

    name: str
    kind: str
    inputs: int
    channels: int
    ratio: int
    taps: int
    dilation: int
    columns: int
    before: int
    raw: bool
    tiles: Sequence[Tile]

    def flops(self, columns: int) -> float:
        out = self.channels * self.ratio
        extra = self.channels * self.channels if self.kind == "unit" else 0
        return 2.0 * columns * (self.inputs * out * self.taps + extra)


LARGE = (Tile(128, 128, 64, 8, 3), Tile(128, 128, 64, 4, 3), Tile(128, 256, 64, 8, 3))
SMALL = (Tile(64, 64, 64, 4, 4), Tile(64, 32, 64, 4, 4), Tile(32, 32, 64, 4, 4))
NARROW = (Tile(128, 64, 64, 4, 3), Tile(64, 64, 64, 4, 4))
WIDE_UNITS = (
    Tile(64, 0, 64, 4, 3),
    Tile(64, 0, 64, 4, 3, near=True),
    Tile(64, 0, 64, 4, 2, 168, near=True),
    Tile(64, 0, 32, 4, 4, near=True),
    Tile(128, 0, 64, 8, 3, near=True),
)
NARROW_UNITS = (
    Tile(128, 0, 32, 4, 4),
    Tile(128, 0, 32, 4, 4, near=True),
    Tile(128, 0, 64, 4, 3, near=True),
    Tile(128, 0, 64, 4, 2, near=True),
    Tile(256, 0, 32, 8, 4, near=True),
    Tile(256, 0, 64, 8, 2, near=True),
    Tile(64, 0, 32, 4, 4, near=True),
    Tile(64, 0, 64, 4, 3, 128, near=True),
)
THIRDS = (Tile(128, 64, 64, 4, 3), Tile(128, 128, 64, 4, 3), Tile(128, 128, 64, 8, 3))
LAYERS = (
    Layer("first", "conv", 1024, 1536, 1, 7, 1, 4, 1, False, (LARGE[0], *SMALL)),
    Layer("up768", "conv", 1536, 768, 8, 2, 1, 4, 6, True, (*LARGE, *SMALL[:2])),
    Layer("conv768", "conv", 768, 768, 1, 7, 3, 32, 0, False, (*LARGE, *SMALL)),
    Layer("mix768", "mix", 768, 768, 1, 1, 1, 32, 18, True, (LARGE[0], *SMALL)),
    Layer("up384", "conv", 768, 384, 5, 2, 1, 32, 6, True, (*LARGE, SMALL[0])),
    Layer("conv384", "conv", 384, 384, 1, 7, 3, 160, 0, False, (*LARGE[:2], *SMALL)),
    Layer("mix384", "mix", 384, 384, 1, 1, 1, 160, 18, True, (LARGE[0], *SMALL[:2])),
    Layer("up192", "conv", 384, 192, 4, 2, 1, 160, 6, True, (*LARGE, SMALL[0])),
    Layer("conv192", "conv", 192, 192, 1, 7, 3, 640, 0, False, NARROW),
    Layer("mix192", "mix", 192, 192, 1, 1, 1, 640, 18, True, NARROW),
    Layer("up96", "conv", 192, 96, 3, 2, 1, 640, 6, True, (Tile(128, 32, 64, 4, 3), *THIRDS)),
    Layer("unit192", "unit", 192, 192, 1, 7, 3, 640, 18, True, WIDE_UNITS),
    Layer("unit96", "unit", 96, 96, 1, 7, 3, 1920, 18, True, NARROW_UNITS),
)


@dataclass(frozen=True)
class Case:
    """A layer's inputs and weights, in one dtype."""

    layer: Layer
    source: torch.Tensor
    weight: torch.Tensor
    x: torch.Tensor
    inner: Wave
    mix: torch.Tensor
    wave: Wave

    def to(self, dtype: torch.dtype) -> "Case":
        past = self.wave.past
        wave = Wave(
            self.wave.frequency, self.wave.height, self.wave.bias,
            None if past is None else past.to(dtype),
        )  # fmt: skip
        weight = self.weight.to(dtype).contiguous(memory_format=torch.channels_last)
        parts = [part.to(dtype) for part in (self.source, self.x, self.mix)]
        return Case(self.layer, parts[0], weight, parts[1], self.inner, parts[2], wave)

    def plain(self, ops: TorchOps) -> Found:
        if self.layer.kind == "conv":
            dilation, raw = self.layer.dilation, self.layer.raw
            return ops.convolve(self.source, self.weight, dilation, self.wave, raw=raw)
        if self.layer.kind == "mix":
            return None, ops.activate(ops.accumulate(self.x, self.source, self.mix), self.wave)
        unit = Unit(self.weight, self.layer.dilation, self.inner, self.mix)
        return None, ops.unit(self.x, self.source, unit, self.wave, raw=True)

    def fused(self, tile: Tile) -> Found:
        if self.layer.kind == "conv":
            dilation, raw = self.layer.dilation, self.layer.raw
            return fused.convolve(self.source, self.weight, dilation, self.wave, tile, raw=raw)
        if self.layer.kind == "mix":
            return None, fused.mix(self.x, self.source, self.mix, self.wave, tile)
        unit = Unit(self.weight, self.layer.dilation, self.inner, self.mix)
        return None, fused.unit(self.x, self.source, unit, self.wave, tile, raw=True)


def case(layer: Layer, batch: int, frames: int) -> Case:
    """Random values; the past columns lie in rows of a wider tensor, as in the arena."""
    generator = torch.Generator("cuda").manual_seed(layer.channels)

    def noise(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device="cuda", generator=generator)

    def wave(before: int) -> Wave:
        past = noise(batch, 64 + before * layer.channels)[:, 64:].bfloat16()
        past = past.view(batch, before, layer.channels)
        scales = (noise(layer.channels).mul(0.3).exp() for _ in range(2))
        return Wave(*scales, noise(layer.channels) * 0.02, past if before else None)

    length = layer.columns * frames
    behind = (layer.taps - 1) * layer.dilation
    weight = noise(layer.channels * layer.ratio, layer.inputs, 1, layer.taps)
    return Case(
        layer,
        noise(batch, behind + length, layer.inputs).bfloat16(),
        weight / (layer.inputs * layer.taps) ** 0.5,
        noise(batch, length * layer.ratio, layer.channels).bfloat16(),
        wave(0),
        noise(layer.channels, layer.channels).bfloat16() / layer.channels**0.5,
        wave(layer.before),
    )


def graph_us(call: Callable[[], object]) -> float:
    """Device time of a call in microseconds, inside a graph."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    graph.replay()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(REPLAYS + 1)]
    for mark in marks[:-1]:
        mark.record()
        graph.replay()
    marks[-1].record()
    torch.cuda.synchronize()
    spent = [a.elapsed_time(b) for a, b in pairwise(marks)]
    return statistics.median(spent) * 1000 / CALLS


def relative(found: Found, wanted: Found) -> float:
    """The larger of the relative L2 errors of what is given back."""
    errors = [
        float((a.float() - b.float()).norm() / b.float().norm())
        for a, b in zip(found, wanted, strict=True)
        if a is not None and b is not None
    ]
    return max(errors)


def measure(layer: Layer, batch: int, frames: int, *, errors: bool) -> dict[str, Any]:
    given = case(layer, batch, frames).to(torch.bfloat16)
    ops = TritonOps(torch.bfloat16)
    row: dict[str, Any] = {"layer": layer.name, "batch": batch, "frames": frames, "tiles": {}}
    columns = layer.columns * frames * batch
    row["ideal_us"] = round(layer.flops(columns) / PEAK * 1e6, 1)
    wanted: Found | None = None
    if errors:
        with full_float32():
            wanted = given.to(torch.float32).plain(TorchOps())
        row["plain_error"] = relative(given.to(torch.bfloat16).plain(ops), wanted)
    row["plain_us"] = round(graph_us(lambda: given.plain(ops)), 1)
    for tile in layer.tiles:
        name = "x".join(map(str, tile))
        try:
            if wanted is not None:
                fresh = case(layer, batch, frames).to(torch.bfloat16)
                row.setdefault("errors", {})[name] = relative(fresh.fused(tile), wanted)
            row["tiles"][name] = round(graph_us(lambda tile=tile: given.fused(tile)), 1)
        except Exception as fault:  # noqa: BLE001 - the other tiles are still worth measuring
            row.setdefault("faults", {})[name] = f"{type(fault).__name__}: {str(fault)[:300]}"
    return row


def compile_ahead(job: tuple[int, int]) -> str:
    """Run one tile once, so that the compiler's cache on disk has it."""
    layer = LAYERS[job[0]]
    try:
        case(layer, 1, 1).to(torch.bfloat16).fused(layer.tiles[job[1]])
        torch.cuda.synchronize()
    except Exception:  # noqa: BLE001 - told again, and kept, where it is measured
        return traceback.format_exc()
    return ""


def say(row: dict[str, Any]) -> None:
    tiles = sorted(row["tiles"].items(), key=lambda item: item[1])
    best = "  ".join(f"{name} {us}" for name, us in tiles)
    errors = row.get("errors", {})
    worst = f" err {max(errors.values()):.1e}/{row['plain_error']:.1e}" if errors else ""
    gain = f"{row['plain_us'] / tiles[0][1]:.2f}x" if tiles else "-"
    print(
        f"{row['layer']:<8} {row['batch']}x{row['frames']:<3} ideal {row['ideal_us']:>6} "
        f"plain {row['plain_us']:>7} {gain:>6} {best}{worst}",
        flush=True,
    )
    for name, fault in row.get("faults", {}).items():
        print(f"   FAULT {name}: {fault}", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--buckets", default=BUCKETS)
    parser.add_argument("--layers", default=",".join(layer.name for layer in LAYERS))
    parser.add_argument(
        "--joined", default="", metavar="BxT,...", help="whole decodes, joined norms"
    )
    parser.add_argument("--profile", default="", metavar="BxT,...", help="kernels of a decode")
    return parser.parse_args()


def folds(buckets: list[tuple[int, ...]]) -> list[dict[str, Any]]:
    """The last convolution by tile."""
    rows = []
    for batch, frames in buckets:
        length = 1920 * frames
        x = torch.randn(batch, 6 + length, 96, device="cuda", dtype=torch.bfloat16)
        weight, bias = torch.randn(7, 96, device="cuda"), torch.randn(1, device="cuda")
        out = torch.empty(batch, length, device="cuda")
        row: dict[str, Any] = {"layer": "fold", "batch": batch, "frames": frames}
        for tall, warps in ((64, 4), (32, 4), (64, 2), (128, 4), (128, 8), (256, 8)):
            launch = _fold[-(-length // (tall - 6)), batch]
            given = (x, weight, bias, out, length, 96, 7, tall, 128, 8)
            call = partial(launch, *given, num_warps=warps)
            row[f"{tall}x{warps}"] = round(graph_us(call), 1)
        print(row, flush=True)
        rows.append(row)
    return rows


def joined(buckets: str) -> list[dict[str, Any]]:
    """Whole decodes by how many columns norms and products are joined for."""
    import codec_buckets as whole
    from playhead.engine.models.qwen3_tts.codec import Codec, CodecDecoder
    from playhead.engine.models.qwen3_tts.codec_fused import EVERY, FusedOps
    from playhead.engine.models.qwen3_tts.codec_spec import decoder_tensors
    from playhead.engine.models.qwen3_tts.weights import random_tensors

    weights = random_tensors(decoder_tensors(whole.PUBLISHED), 0, device="cuda")
    wanted = [tuple(map(int, bucket.split("x"))) for bucket in buckets.split(",")]
    rows = []
    for limit in (0, EVERY):
        decoder = CodecDecoder(whole.PUBLISHED, weights, FusedOps(joined=limit))
        codec = Codec(decoder, decoder.arena(whole.SLOTS, 12), 12)
        rows += whole.measure(f"joined {limit > 0}", codec, wanted)  # type: ignore[arg-type]
    return rows


def profiles(buckets: str) -> dict[str, Any]:
    """All kernels of whole decodes, as they are served."""
    import codec_buckets as whole
    from playhead.engine.models.qwen3_tts.codec_spec import decoder_tensors
    from playhead.engine.models.qwen3_tts.weights import random_tensors

    codec = whole.codecs(random_tensors(decoder_tensors(whole.PUBLISHED), 0, device="cuda"))
    made = codec["own"]()
    return {bucket: whole.profile(made, tuple(map(int, bucket.split("x")))) for bucket in buckets}  # type: ignore[misc]


def main() -> None:
    options = arguments()
    started = time.perf_counter()
    names = options.layers.split(",")
    chosen = [index for index, layer in enumerate(LAYERS) if layer.name in names]
    jobs = [(index, tile) for index in chosen for tile in range(len(LAYERS[index].tiles))]
    workers = min(len(jobs), max(1, (os.cpu_count() or 2) - 2))
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        # The longest first: whole units take longest to compile.
        faults = list(pool.map(compile_ahead, jobs[::-1]))
    print(f"compiled {len(jobs)} in {time.perf_counter() - started:.0f} s", flush=True)
    torch.backends.cudnn.benchmark = True
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "faults": [fault for fault in faults if fault],
        "rows": [],
    }
    buckets = [tuple(map(int, bucket.split("x"))) for bucket in options.buckets.split(",")]
    with torch.inference_mode():
        for index in chosen:
            for batch, frames in buckets:
                few = batch * frames <= 8
                row = measure(LAYERS[index], batch, frames, errors=few)
                report["rows"].append(row)
                say(row)
        report["folds"] = folds(buckets)
        if options.joined:
            report["joined"] = joined(options.joined)
        if options.profile:
            report["profile"] = profiles(options.profile.split(","))  # type: ignore[arg-type]
    report["seconds"] = round(time.perf_counter() - started, 1)
    for bucket in buckets:
        rows = [r for r in report["rows"] if (r["batch"], r["frames"]) == bucket]
        plain = sum(r["plain_us"] for r in rows)
        best = sum(min([r["plain_us"], *r["tiles"].values()]) for r in rows)
        print(f"{bucket[0]}x{bucket[1]}, each once: plain {plain:.0f}, best of both {best:.0f} us")
    print(f"{report['seconds']} s; compiler faults: {len(report['faults'])}")
    if os.environ.get("OUT"):
        path = Path(os.environ["OUT"]) / "codec_kernels.json"
        path.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
