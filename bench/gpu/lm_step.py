# ruff: noqa: E402 - the source tree is linked before it is imported
"""One LM step of the true 1.7B model with random weights: time per batch bucket, and exactness.

    python bench/gpu/lm_step.py [--batches 1 8 64] [--compile] [--attention triton]

A step is talker + sampling + predictor + next input, for every stream of the batch. Printed beside
the roofline of one H200 (790 TFLOP/s bf16, 4.3 TB/s, context 200). With $OUT set, writes
lm_step.json there. Needs a CUDA device.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import source_tree
import torch

source_tree.link()

from playhead.engine.models.qwen3_tts import predictor as predictors
from playhead.engine.models.qwen3_tts import talker as talkers
from playhead.engine.models.qwen3_tts.config import TalkerConfig
from playhead.engine.models.qwen3_tts.frames import FrameLoop, Frames
from playhead.engine.models.qwen3_tts.graphs import LoopGraphs, fast_ops, with_ops
from playhead.engine.models.qwen3_tts.layers import LayerOps
from playhead.engine.models.qwen3_tts.predictor import Predictor
from playhead.engine.models.qwen3_tts.presets import HIDDEN, model_config
from playhead.engine.models.qwen3_tts.sampling import Sampling
from playhead.engine.models.qwen3_tts.slots import SlotTable
from playhead.engine.models.qwen3_tts.talker import Talker
from playhead.engine.models.qwen3_tts.weights import random_tensors

DEVICE = torch.device("cuda")
CONTEXT = 200
SPAN = 256
POSITIONS = 512
TEXT_PAD = 151_671
ROOFLINE_MS = {
    1: (0.664, 0.579),
    8: (0.701, 0.583),
    32: (0.829, 0.599),
    64: (1.000, 0.619),
    128: (1.341, 0.660),
    256: (2.024, 0.860),
    512: (3.390, 1.719),
}
"""Talker and predictor, milliseconds."""


@dataclass
class Lab:
    """Weights once, loops as wanted."""

    config: TalkerConfig
    state: dict[str, torch.Tensor]

    def loop(self, slots: int, dtype: torch.dtype, positions: int = POSITIONS) -> FrameLoop:
        state = {name: tensor.to(dtype) for name, tensor in self.state.items()}
        talker = Talker.load(state, self.config, positions)
        predictor = Predictor.load(state, self.config, talker.codec_table)
        table = SlotTable(self.config, slots, positions, device=DEVICE, dtype=dtype)
        return FrameLoop(talker, predictor, table, self.config)


def settle(loop: FrameLoop) -> None:
    """All slots in the middle of an utterance, with the end banned."""
    table = loop.table
    generator = torch.Generator(DEVICE).manual_seed(3)
    every = torch.arange(table.slots + 1, device=DEVICE)
    full = torch.full_like(every, CONTEXT)
    table.begin(every, full, every * 7919, torch.full_like(every, 1 << 40))
    table.made[:] = 5
    table.carry.normal_(0.0, 1.0, generator=generator)
    for layer in range(loop.config.layers):
        table.cache.keys[layer].normal_(0.0, 1.0, generator=generator)
        table.cache.values[layer].normal_(0.0, 1.0, generator=generator)


def rewind(loop: FrameLoop) -> Callable[[], None]:
    """Remembers the small state; calling the result goes back to it."""
    table = loop.table
    tensors = [table.length, table.made, table.repeats, table.seen, table.carry, table.codes]
    copies = [tensor.clone() for tensor in tensors]

    def back() -> None:
        for tensor, copy in zip(tensors, copies, strict=True):
            tensor.copy_(copy)

    return back


def step(loop: FrameLoop, slots: torch.Tensor) -> Frames:
    """The next frame of each, without text."""
    return loop.step(slots, torch.full_like(slots, TEXT_PAD), SPAN)


def milliseconds(act: Callable[[], object], back: Callable[[], None], rounds: int) -> float:
    """Device time of one ``act``, the median of several rounds of ten."""
    times = []
    for _ in range(rounds):
        back()
        act()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        for _ in range(10):
            act()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 10)
    return sorted(times)[len(times) // 2]


def predictor_graph(loop: FrameLoop, batch: int) -> Callable[[], None]:
    """The predictor alone, as a graph."""
    hidden = torch.randn(batch, loop.config.hidden, device=DEVICE, dtype=loop.table.carry.dtype)
    first = torch.zeros(batch, dtype=torch.int64, device=DEVICE)
    uniform = torch.rand(batch, 16, device=DEVICE)

    def fill() -> None:
        loop.predictor.fill(hidden, first, loop.fine_rule, uniform)

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            fill()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fill()
    return graph.replay


def same(one: Frames, two: Frames, carries: tuple[torch.Tensor, torch.Tensor]) -> dict[str, float]:
    """How far two results of one step agree."""
    wide = [carry.float() for carry in carries]
    return {
        "codes_equal": float((one.codes == two.codes).float().mean()),
        "rows_equal": float((one.codes == two.codes).all(-1).float().mean()),
        "carry_max_difference": float((wide[0] - wide[1]).abs().max()),
    }


def measure(loop: FrameLoop, batch: int, rounds: int) -> dict[str, Any]:
    """Times and agreement of one bucket."""
    back = rewind(loop)
    slots = torch.arange(batch, device=DEVICE)
    graphs = LoopGraphs(loop)
    graphs.capture_step(batch, SPAN)
    back()
    eager = step(loop, slots)
    eager_carry = loop.table.carry[slots].clone()
    back()
    pads = [TEXT_PAD] * batch
    graph = graphs.step(range(batch), pads, SPAN)
    agreement = same(eager, graph, (eager_carry, loop.table.carry[slots]))
    out: dict[str, Any] = {"batch": batch, **agreement}
    out["eager_ms"] = milliseconds(lambda: step(loop, slots), back, 2)
    out["graph_ms"] = milliseconds(lambda: graphs.step(range(batch), pads, SPAN), back, rounds)
    assert not graphs.eager
    out["predictor_ms"] = milliseconds(predictor_graph(loop, batch), lambda: None, rounds)
    roof = ROOFLINE_MS.get(batch)
    if roof is not None and loop.config.hidden == HIDDEN["1.7b"]:
        out["roofline_ms"] = sum(roof)
        out["of_roofline"] = sum(roof) / out["graph_ms"]
    return out


def alone_or_shuffled(loop: FrameLoop, batch: int) -> dict[str, float]:
    """Streams stepped alone, and in shuffled batches: share of equal frames."""
    back = rewind(loop)
    where = torch.arange(batch, device=DEVICE)
    whole = step(loop, where).codes
    equal = []
    for seed in range(4):
        order = torch.randperm(batch, generator=torch.Generator().manual_seed(seed)).to(DEVICE)
        back()
        equal.append((step(loop, order).codes == whole[order]).all(-1).float().mean())
    alone = []
    for slot in range(min(batch, 8)):
        back()
        alone.append((step(loop, where[slot : slot + 1]).codes[0] == whole[slot]).all())
    back()
    return {
        "shuffled_rows_equal": float(torch.stack(equal).mean()),
        "alone_rows_equal": float(torch.stack(alone).float().mean()),
    }


def precision(lab: Lab) -> dict[str, float]:
    """bfloat16 against float32: relative error of hidden states and logits after a prompt."""
    rows = torch.randn(4, 40, lab.config.hidden, device=DEVICE) * 0.7
    lengths, slots = torch.full((4,), 40, device=DEVICE), torch.arange(4, device=DEVICE)
    hidden, logits, fine = [], [], []
    for dtype in (torch.float32, torch.bfloat16):
        loop = lab.loop(4, dtype, 64)
        state = loop.talker.prefill(rows.to(dtype), lengths, slots, loop.table.cache)
        hidden.append(state.float())
        logits.append(loop.talker.logits(state))
        first = torch.zeros(4, dtype=torch.int64, device=DEVICE)
        uniform = torch.full((4, 16), 0.5, device=DEVICE)
        exact = hidden[0].to(dtype)
        fine.append(loop.predictor.fill(exact, first, Sampling(greedy=True), uniform)[:, 1])
    return {
        "hidden_relative_rms": float((hidden[0] - hidden[1]).norm() / hidden[0].norm()),
        "logits_max_difference": float((logits[0] - logits[1]).abs().max()),
        "logits_deviation": float(logits[0].std()),
        "argmax_equal": float((logits[0].argmax(-1) == logits[1].argmax(-1)).float().mean()),
        "predictor_first_code_equal": float((fine[0] == fine[1]).float().mean()),
    }


def fused_ops() -> LayerOps:
    """Imported here: it needs triton."""
    from playhead.engine.models.qwen3_tts.lm_triton import FUSED_OPS

    return FUSED_OPS


def against_plain(plain: FrameLoop, other: FrameLoop, batch: int = 16) -> dict[str, float]:
    """Relative error of hidden states of one talker position with other layer work, bfloat16."""
    settle(plain)
    back = rewind(plain)
    slots = torch.arange(min(batch, plain.table.slots), device=DEVICE)
    x, at, cache = plain.table.carry[slots], plain.table.length[slots], plain.table.cache
    one = plain.talker.step(x, slots, at, cache, SPAN).float()
    two = other.talker.step(x, slots, at, cache, SPAN).float()
    back()
    rule, first = Sampling(greedy=True), torch.zeros_like(slots)
    uniform = torch.full((len(slots), 16), 0.5, device=DEVICE)
    hidden = one.to(x.dtype)
    codes = [loop.predictor.fill(hidden, first, rule, uniform) for loop in (plain, other)]
    return {
        "hidden_relative_rms": float((one - two).norm() / one.norm()),
        "greedy_first_codes_equal": float((codes[0][:, 1] == codes[1][:, 1]).float().mean()),
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, nargs="+", default=sorted(ROOFLINE_MS))
    parser.add_argument("--size", choices=sorted(HIDDEN), default="1.7b")
    parser.add_argument("--compile", action="store_true", help="compile the layers' bodies")
    parser.add_argument("--fused", action="store_true", help="Triton kernels between products")
    parser.add_argument("--attention", choices=("torch", "triton"), default="triton")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    started = time.perf_counter()
    lab = Lab(model_config(args.size).talker, {})
    specs = talkers.tensors(lab.config) | predictors.tensors(lab.config)
    lab.state = random_tensors(specs, 1, device=DEVICE)
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "weights": "random",
        "size": args.size,
        "compiled": args.compile,
        "fused": args.fused,
        "attention": args.attention,
        "context": CONTEXT,
        "buckets": [],
    }
    with torch.inference_mode():
        report["precision"] = precision(lab)
        print("bf16 against fp32:", json.dumps(report["precision"]), flush=True)
        plain = lab.loop(max(args.batches), torch.bfloat16)
        lab.state = {}
        ops = fast_ops(compiled=args.compile, in_place=args.attention == "triton")
        if args.fused:
            ops = fused_ops()
        loop = with_ops(plain, ops)
        report["against_plain"] = against_plain(plain, loop)
        print("against plain layers:", json.dumps(report["against_plain"]), flush=True)
        settle(loop)
        report["independence"] = alone_or_shuffled(loop, min(64, max(args.batches)))
        print("batch mates:", json.dumps(report["independence"]), flush=True)
        back = rewind(loop)
        print("batch  eager ms  graph ms  predictor ms  roofline ms  of roofline  graph = eager")
        for batch in args.batches:
            back()
            row = measure(loop, batch, args.rounds)
            report["buckets"].append(row)
            print(
                f"{batch:5d} {row['eager_ms']:9.2f} {row['graph_ms']:9.2f}"
                f" {row['predictor_ms']:13.2f} {row.get('roofline_ms', 0):12.2f}"
                f" {row.get('of_roofline', 0):12.1%} {row['rows_equal']:14.1%}",
                flush=True,
            )
    report["memory_bytes"] = torch.cuda.max_memory_allocated()
    report["seconds"] = time.perf_counter() - started
    print(f"{report['memory_bytes'] / 2**30:.1f} GiB, {report['seconds']:.0f} s in all")
    if "OUT" in os.environ:
        path = Path(os.environ["OUT"]) / "lm_step.json"
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
