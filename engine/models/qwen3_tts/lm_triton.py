"""The talker's and predictor's work between matrix products, as Triton kernels for CUDA devices.

A frame step at small batches is a thousand short kernels in a row, so what counts is their number:
norm; norm of heads and rotation; residual and norm; gate; and a draw are one kernel each, and so is
all that attention needs (``attention_triton``). Of very few rows the products after attention
take in what is around them (``linear_triton``). Arithmetic is float32 inside. Needs triton, which
comes with torch for CUDA.
"""

import torch
import triton
import triton.language as tl
from playhead.engine.models.qwen3_tts.attention_triton import over_few, over_slots
from playhead.engine.models.qwen3_tts.layers import Entry, Exit, LayerOps
from playhead.engine.models.qwen3_tts.linear_triton import MOST_ROWS, linear
from playhead.engine.models.qwen3_tts.sampling import Sampling, draw
from torch import Tensor
from torch.nn import functional as F

GATE_BLOCK = 1024


@triton.jit
def _norm(x, weight, out, eps, width: tl.constexpr, block: tl.constexpr):
    """RMS norm of one row."""
    lane = tl.arange(0, block)
    known = lane < width
    at = tl.program_id(0).to(tl.int64) * width + lane
    row = tl.load(x + at, mask=known, other=0.0).to(tl.float32)
    row = row * tl.rsqrt(tl.sum(row * row, 0) / width + eps)
    gain = tl.load(weight + lane, mask=known, other=0.0).to(tl.float32)
    tl.store(out + at, (row * gain).to(out.dtype.element_ty), mask=known)


@triton.jit
def _add_norm(x, more, weight, total, out, eps, width: tl.constexpr, block: tl.constexpr):
    """``total = x + more`` and its RMS norm, one row."""
    lane = tl.arange(0, block)
    known = lane < width
    at = tl.program_id(0).to(tl.int64) * width + lane
    row = tl.load(x + at, mask=known, other=0.0).to(tl.float32)
    row += tl.load(more + at, mask=known, other=0.0).to(tl.float32)
    tl.store(total + at, row.to(total.dtype.element_ty), mask=known)
    row = row * tl.rsqrt(tl.sum(row * row, 0) / width + eps)
    gain = tl.load(weight + lane, mask=known, other=0.0).to(tl.float32)
    tl.store(out + at, (row * gain).to(out.dtype.element_ty), mask=known)


@triton.jit
def _heads(
    qkv, q_norm, k_norm, cos, sin, q, k, v, turns, eps,
    queries: tl.constexpr, keys: tl.constexpr, half: tl.constexpr,
):  # fmt: skip
    """One head of one row: its norm and rotation, or for a value head a copy."""
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    lane = tl.arange(0, half)
    dim: tl.constexpr = 2 * half
    at = qkv + (row * (queries + 2 * keys) + head) * dim + lane
    low, high = tl.load(at), tl.load(at + half)
    if head >= queries + keys:
        to = v + (row * keys + head - queries - keys) * dim + lane
        tl.store(to, low)
        tl.store(to + half, high)
    else:
        a, b = low.to(tl.float32), high.to(tl.float32)
        size = tl.rsqrt((tl.sum(a * a, 0) + tl.sum(b * b, 0)) / dim + eps)
        gain = k_norm
        if head < queries:
            gain = q_norm
        a = a * size * tl.load(gain + lane).to(tl.float32)
        b = b * size * tl.load(gain + half + lane).to(tl.float32)
        turn = (row % turns) * dim + lane
        c, s = tl.load(cos + turn).to(tl.float32), tl.load(sin + turn).to(tl.float32)
        to = k + (row * keys + head - queries) * dim + lane
        if head < queries:
            to = q + (row * queries + head) * dim + lane
        tl.store(to, (a * c - b * s).to(q.dtype.element_ty))
        tl.store(to + half, (b * c + a * s).to(q.dtype.element_ty))


@triton.jit
def _gate(both, out, width: tl.constexpr, block: tl.constexpr):
    """SiLU of the first half times the second half of a row."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.program_id(1) * block + tl.arange(0, block)
    known = lane < width
    gate = tl.load(both + row * 2 * width + lane, mask=known, other=0.0).to(tl.float32)
    up = tl.load(both + row * 2 * width + width + lane, mask=known, other=0.0).to(tl.float32)
    gate = gate * tl.sigmoid(gate)
    tl.store(out + row * width + lane, (gate * up).to(out.dtype.element_ty), mask=known)


@triton.jit
def _draw(
    logits, uniform, out, uniform_stride, temperature,
    size: tl.constexpr, block: tl.constexpr, wanted: tl.constexpr,
):  # fmt: skip
    """One code of one row. The ``wanted``-th largest logit is found bit by bit on integers that
    are ordered as the floats are; all equal to it stay."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, block)
    x = tl.load(logits + row * size + lane, mask=lane < size, other=float("-inf"))
    x = x.to(tl.float32) / temperature
    bits = x.to(tl.int32, bitcast=True)
    # Unsigned order: positive floats get their sign bit set, negative ones are inverted.
    order = tl.where(bits < 0, ~bits, bits ^ -2147483648).to(tl.uint32, bitcast=True)
    least = tl.zeros((), tl.uint32)
    for step in tl.static_range(32):
        trial = least | (1 << (31 - step))
        enough = tl.sum((order >= trial).to(tl.int32), 0) >= wanted
        least = tl.where(enough, trial, least)
    kept = (order >= least) & (x > float("-inf"))
    share = tl.where(kept, tl.exp(x - tl.max(x, 0)), 0.0)
    reached = tl.cumsum(share, 0)
    goal = tl.load(uniform + row * uniform_stride) * tl.max(reached, 0)
    # The last candidate bounds the search: rounding must not go past it, nor NaN outside.
    last = tl.maximum(tl.max(tl.where(share > 0.0, lane, 0), 0), 0)
    first = tl.min(tl.where((reached > goal) & (share > 0.0), lane, block), 0)
    tl.store(out + row, tl.minimum(first, last).to(tl.int64))


def norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """See ``layers.rms_norm``; any leading axes, contiguous."""
    x = x.contiguous()
    out = torch.empty_like(x)
    width = x.shape[-1]
    _norm[(x.numel() // width,)](x, weight, out, eps, width, triton.next_power_of_2(width))
    return out


def project(x: Tensor, weights: Entry, eps: float) -> Tensor:
    """See ``layers.project``."""
    return read_out(x, weights.norm, weights.qkv, eps)


def read_out(x: Tensor, gain: Tensor, weight: Tensor, eps: float) -> Tensor:
    """See ``layers.read_out``."""
    return F.linear(norm(x, gain, eps), weight)


def enter(
    x: Tensor, weights: Entry, cos: Tensor, sin: Tensor, kv_heads: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """See ``layers.enter_layer``. The rows of ``cos`` repeat over the leading axes of ``x``."""
    qkv = project(x, weights, eps)
    dim = weights.q_norm.shape[0]
    count = qkv.shape[-1] // dim
    lead, rows = x.shape[:-1], x.numel() // x.shape[-1]
    q = x.new_empty((*lead, count - 2 * kv_heads, dim))
    k, v = (x.new_empty((*lead, kv_heads, dim)) for _ in range(2))
    _heads[(rows, count)](
        qkv, weights.q_norm, weights.k_norm, cos.contiguous(), sin.contiguous(), q, k, v,
        cos.numel() // dim, eps, count - 2 * kv_heads, kv_heads, dim // 2,
        num_warps=1,
    )  # fmt: skip
    return q, k, v


def close(x: Tensor, attended: Tensor, weights: Exit, eps: float) -> Tensor:
    """See ``layers.close_layer``."""
    if x.numel() // x.shape[-1] <= MOST_ROWS:
        total = linear(attended, weights.out, more=x)
        gated = linear(total, weights.gate_up, gain=weights.norm, eps=eps, gated=True)
        return linear(gated, weights.down, more=total)
    x = x.contiguous()
    width = x.shape[-1]
    more = F.linear(attended, weights.out)
    total, normed = torch.empty_like(x), torch.empty_like(x)
    _add_norm[(x.numel() // width,)](
        x, more, weights.norm, total, normed, eps, width, triton.next_power_of_2(width)
    )
    both = F.linear(normed, weights.gate_up).flatten(0, -2)
    inner = both.shape[1] // 2
    gated = both.new_empty((both.shape[0], inner))
    _gate[(both.shape[0], triton.cdiv(inner, GATE_BLOCK))](both, gated, inner, GATE_BLOCK)
    total.view(-1, width).addmm_(gated, weights.down.t())
    return total


def draw_code(logits: Tensor, rule: Sampling, uniform: Tensor) -> Tensor:
    """See ``sampling.draw``: the same distribution, inverted in the order of codes instead of the
    order of likelihood, so that the same number may choose another code."""
    if rule.greedy or rule.top_p < 1.0:
        return draw(logits, rule, uniform)
    rows, size = logits.shape
    out = torch.empty(rows, dtype=torch.int64, device=logits.device)
    wanted = min(rule.top_k or size, size)
    _draw[(rows,)](
        logits.contiguous(), uniform, out, uniform.stride(0), rule.temperature,
        size, triton.next_power_of_2(size), wanted,
    )  # fmt: skip
    return out


FUSED_OPS = LayerOps(enter, close, project, norm, over_slots, over_few, read_out, draw_code)
