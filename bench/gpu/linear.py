# ruff: noqa: E402 - the source tree is linked before it is imported
"""How products of few rows are best cut, beside the vendor's library and the kernels around it.

    python bench/gpu/linear.py [--rows 1 64 128] [--models talker predictor]

Every matrix of a layer of Qwen3-TTS 1.7B's talker and code predictor with the norm before or the
residual or SwiGLU after it, bfloat16, each call on other weights so that none stays in the cache.
Microseconds a call inside a CUDA graph, and the share of the memory bandwidth that reading the
weights makes. Kernels are compiled by several processes at once first. Below a minute. Writes
linear.json to $OUT, or here. Needs a CUDA device.
"""

import argparse
import contextlib
import itertools
import json
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import source_tree
import torch

source_tree.link()

from attention import BANDWIDTH, microseconds
from playhead.engine.models.qwen3_tts import lm_triton
from playhead.engine.models.qwen3_tts.linear_triton import Cut, linear
from torch import Tensor
from torch.nn import functional as F
from triton.runtime.errors import OutOfResources

CUTS = [
    Cut(tile, step, warps, stages)
    for tile, step, warps, stages in itertools.product((16, 32, 64), (128, 256), (4, 8), (3, 5))
    if (warps == 4) == (tile < 64)
]
SPREAD = 200 << 20
"""Bytes of weights that calls take turns on: several times the cache."""
WORKERS = 12


@dataclass(frozen=True)
class Product:
    """A matrix of a layer: ``kind`` n: normed before; g: gated too; a: added to after."""

    name: str
    depth: int
    width: int
    kind: str

    @property
    def read(self) -> int:
        """Bytes of its weights."""
        return 2 * self.depth * self.width * (2 if self.kind == "g" else 1)


PRODUCTS = {
    "talker": (
        Product("qkv", 2048, 4096, "n"),
        Product("out", 2048, 2048, "a"),
        Product("gate_up", 2048, 6144, "g"),
        Product("down", 6144, 2048, "a"),
    ),
    "predictor": (
        Product("qkv", 1024, 4096, "n"),
        Product("out", 2048, 1024, "a"),
        Product("gate_up", 1024, 3072, "g"),
        Product("down", 3072, 1024, "a"),
        Product("head", 1024, 2048, "n"),
    ),
}


class Bench:
    """Inputs of a product for so many rows."""

    def __init__(self, product: Product, rows: int) -> None:
        self.product, self.rows = product, rows
        both = product.width * (2 if product.kind == "g" else 1)
        copies = max(1, SPREAD // product.read)
        self.weights = torch.randn(copies, both, product.depth, device="cuda").bfloat16()
        self.x = torch.randn(rows, product.depth, device="cuda").bfloat16()
        self.gain = torch.ones(product.depth, device="cuda").bfloat16()
        self.more = torch.randn(rows, product.width, device="cuda").bfloat16()

    def ours(self, cut: Cut) -> Callable[[int], object]:
        """One kernel."""
        kind = self.product.kind
        gain = None if kind == "a" else self.gain
        more = self.more if kind == "a" else None

        def call(index: int) -> Tensor:
            weight = self.weights[index % len(self.weights)]
            eps, gated = None if kind == "a" else 1e-6, kind == "g"
            return linear(self.x, weight, gain=gain, eps=eps, gated=gated, more=more, cut=cut)

        return call

    def library(self, index: int) -> Tensor:
        """The vendor's product and our kernels around it."""
        weight, kind = self.weights[index % len(self.weights)], self.product.kind
        if kind == "a":
            return torch.addmm(self.more, self.x, weight.t())
        both = F.linear(lm_triton.norm(self.x, self.gain, 1e-6), weight)
        if kind == "n":
            return both
        out = both.new_empty((self.rows, self.product.width))
        lm_triton._gate[(self.rows, 6)](both, out, self.product.width, lm_triton.GATE_BLOCK)
        return out


def compile_some(jobs: list[tuple[str, int, Cut]]) -> None:
    """In a process of its own: the compiled kernels stay in triton's cache."""
    for kind, rows, cut in jobs:
        with contextlib.suppress(OutOfResources):
            Bench(Product("", 1024, 1024, kind), rows).ours(cut)(0)


def compile_all(rows: list[int]) -> None:
    """Every form of every cut."""
    jobs = list(itertools.product("nag", sorted({min(64, max(16, row)) for row in rows}), CUTS))
    shares = [jobs[start::WORKERS] for start in range(WORKERS)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
        list(pool.map(compile_some, shares))


def sweep(models: list[str], rows: list[int]) -> list[dict[str, Any]]:
    """Every cut of every product; the best two are printed beside the library."""
    found: list[dict[str, Any]] = []
    for model in models:
        for product, count in itertools.product(PRODUCTS[model], rows):
            bench = Bench(product, count)
            wanted = bench.library(0).float()
            theirs = microseconds(bench.library)
            times = []
            for cut in CUTS:
                with contextlib.suppress(OutOfResources):
                    error = (bench.ours(cut)(0).float() - wanted).norm() / wanted.norm()
                    times.append((microseconds(bench.ours(cut)), float(error), cut))
            times.sort()
            row = {"model": model, "product": product.name, "rows": count, "library_us": theirs}
            found.append({**row, "ours": times})
            us, error, _ = times[0]
            share = product.read / BANDWIDTH / (us * 1e-6)
            best = "  ".join(f"{us:6.1f} {tuple(cut)}" for us, _, cut in times[:2])
            name = f"{model:9} {product.name:8} {count:4d} rows: library {theirs:6.1f} us"
            print(f"{name}, ours {best}  {share:4.0%}  error {error:.1e}", flush=True)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 64, 128])
    parser.add_argument("--models", nargs="+", choices=PRODUCTS, default=list(PRODUCTS))
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    args = parser.parse_args()
    compile_all(args.rows)
    report = {"device": torch.cuda.get_device_name(), "found": sweep(args.models, args.rows)}
    args.out.joinpath("linear.json").write_text(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
