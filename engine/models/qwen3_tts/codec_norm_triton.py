"""The codec transformer's kernels that join a norm to the matrix product behind it, and positions
to attention: few streams are bound by the number of launches, not by arithmetic."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from playhead.engine.models.qwen3_tts.codec_ops import Heads, Turn

DEEP = 64


class _Tile(NamedTuple):
    tall: int
    wide: int
    deep: int


def _tile(rows: int, out: int, inputs: int) -> _Tile:
    """Small enough to give every multiprocessor something to do; a matrix product takes at least
    16 each way."""
    tall = 16 if rows <= 16 else 32 if rows <= 64 else 64
    wide = 32 if rows <= 64 else 64
    return _Tile(tall, min(wide, max(16, out & -out)), min(DEEP, max(16, inputs & -inputs)))


def norm_linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, eps: float
) -> torch.Tensor:
    """The RMSNorm of ``x`` [B, T, in] through ``weight`` [out, in], the norm's own weight folded
    into it: [B, T, out]."""
    return _run(x, weight, bias, weight.shape[0], eps, gated=False)


def norm_gate(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """The same through gate and value, ``weight`` [2 I, in], and SwiGLU: [B, T, I]."""
    return _run(x, weight, None, weight.shape[0] // 2, eps, gated=True)


def _run(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    out: int,
    eps: float,
    *,
    gated: bool,
) -> torch.Tensor:
    batch, length, inputs = x.shape
    made = x.new_empty(batch, length, out)
    rows = batch * length
    tile = _tile(rows, out, inputs)
    grid = (triton.cdiv(out, tile.wide), triton.cdiv(rows, tile.tall))
    _norm_product[grid](
        x, weight, weight if bias is None else bias, made, rows, eps,
        inputs, out, gated, bias is not None, tile.tall, tile.wide, tile.deep,
    )  # fmt: skip
    return made


def attend(
    qkv: torch.Tensor, turn: Turn, keys: torch.Tensor, values: torch.Tensor, heads: Heads
) -> torch.Tensor:
    """See :meth:`TorchOps.attend`, in one kernel."""
    batch, length, _ = qkv.shape
    ring = keys.shape[1]
    out = qkv.new_empty(batch, length, heads.queries * heads.width)
    _attend[(heads.queries, batch)](
        qkv, turn.angles, keys, values, turn.slots, turn.positions, out,
        length, heads.width**-0.5, heads.window, ring, heads.queries, heads.keys, heads.width,
        max(16, triton.next_power_of_2(length)), max(16, triton.next_power_of_2(ring)),
        max(16, triton.next_power_of_2(heads.width // 2)),
    )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["rows"])
def _norm_product(
    x, weight, bias, out, rows, eps,
    inputs: tl.constexpr, width: tl.constexpr, gated: tl.constexpr, biased: tl.constexpr,
    tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr,
):  # fmt: skip
    """``tall`` rows by ``wide`` outputs; the norm's factor is known when the product is."""
    row = tl.program_id(1) * tall + tl.arange(0, tall)
    inside = (row < rows)[:, None]
    column = tl.program_id(0) * wide + tl.arange(0, wide)
    inner = tl.arange(0, deep)
    source = x + tl.minimum(row, rows - 1)[:, None] * inputs + inner[None, :]
    chosen = tl.minimum(column, width - 1)[None, :]
    kernel = weight + chosen * inputs + inner[:, None]
    total = tl.zeros((tall, wide), tl.float32)
    other = tl.zeros((tall, wide), tl.float32)
    power = tl.zeros((tall,), tl.float32)
    for start in range(0, inputs, deep):
        kept = start + inner < inputs
        a = tl.load(source + start, mask=kept[None, :], other=0.0)
        b = tl.load(kernel + start, mask=kept[:, None], other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
        if gated:
            b = tl.load(kernel + width * inputs + start, mask=kept[:, None], other=0.0)
            other = tl.dot(a, b, other, input_precision="ieee")
        wider = a.to(tl.float32)
        power += tl.sum(wider * wider, 1)
    scale = tl.rsqrt(power / inputs + eps)[:, None]
    total *= scale
    if gated:
        total = total / (1.0 + tl.exp(-total)) * (other * scale)
    if biased:
        total += tl.load(bias + tl.minimum(column, width - 1)).to(tl.float32)[None, :]
    target = out + row[:, None] * width + column[None, :]
    tl.store(target, total.to(out.dtype.element_ty), mask=inside & (column < width)[None, :])


@triton.jit
def _turned(source, place, half, inside, cos, sin):
    """Both halves of rotated heads."""
    first = tl.load(source + place, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(source + place + half, mask=inside, other=0.0).to(tl.float32)
    return first * cos - second * sin, second * cos + first * sin


@triton.jit(do_not_specialize=["length"])
def _attend(
    qkv, angles, keys, values, slots, positions, out, length, scale, window,
    ring: tl.constexpr, queries: tl.constexpr, kv: tl.constexpr, width: tl.constexpr,
    tall: tl.constexpr, places: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """One query head of one stream: its new columns to the ring, then against the whole ring.

    Query heads that share a key head all write the same there.
    """
    head = tl.program_id(0)
    batch = tl.program_id(1).to(tl.int64)
    shared = head // (queries // kv)
    column, place, index = tl.arange(0, tall), tl.arange(0, places), tl.arange(0, wide)
    half: tl.constexpr = width // 2
    row_width: tl.constexpr = (queries + 2 * kv) * width
    asked = (column < length)[:, None] & (index < half)[None, :]
    row = batch * length + column
    angle = tl.load(angles + row[:, None] * half + index[None, :], mask=asked, other=0.0)
    cos, sin = tl.cos(angle), tl.sin(angle)
    at = row[:, None] * row_width + index[None, :]
    kind = qkv.dtype.element_ty
    q0, q1 = _turned(qkv + head * width, at, half, asked, cos, sin)
    k0, k1 = _turned(qkv + (queries + shared) * width, at, half, asked, cos, sin)

    slot = tl.load(slots + batch)
    position = tl.load(positions + row, mask=column < length, other=0)
    start = slot * ring * kv * width + shared * width
    cell = start + (position % ring)[:, None] * kv * width + index[None, :]
    tl.store(keys + cell, k0.to(kind), mask=asked)
    tl.store(keys + cell + half, k1.to(kind), mask=asked)
    for part in tl.static_range(2):
        new = qkv + (queries + kv + shared) * width + at + part * half
        tl.store(values + cell + part * half, tl.load(new, mask=asked), mask=asked)
    tl.debug_barrier()  # what other threads of this program have just written is read here

    cell = start + place[:, None] * kv * width + index[None, :]
    held_cells = (place < ring)[:, None] & (index < half)[None, :]
    first = tl.load(positions + batch * length)
    newest = first + length - 1
    back = (newest - place) % ring
    # The remainder has the sign of its dividend here, unlike in Python.
    held = newest - tl.where(back < 0, back + ring, back)
    now = (first + column)[:, None]
    seen = (held >= 0)[None, :] & (held[None, :] <= now) & (held[None, :] > now - window)
    seen = seen & (place < ring)[None, :]
    k = tl.load(keys + cell, mask=held_cells, other=0.0)
    score = tl.dot(q0.to(kind), tl.trans(k), input_precision="ieee")
    k = tl.load(keys + cell + half, mask=held_cells, other=0.0)
    score = tl.dot(q1.to(kind), tl.trans(k), score, input_precision="ieee") * scale
    score = tl.where(seen, score, -1e30)
    weight = tl.exp(score - tl.max(score, 1)[:, None])
    norm = tl.sum(weight, 1)[:, None]
    target = out + row[:, None] * queries * width + head * width + index[None, :]
    for part in tl.static_range(2):
        v = tl.load(values + cell + part * half, mask=held_cells, other=0.0)
        total = tl.dot(weight.to(kind), v, input_precision="ieee") / norm
        tl.store(target + part * half, total.to(kind), mask=asked)
