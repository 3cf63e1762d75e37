"""The codec transformer's positions and attention as one kernel: few streams are bound by the
number of launches, not by arithmetic."""

import torch
import triton
import triton.language as tl
from playhead.engine.models.qwen3_tts.codec_ops import Heads, Turn


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
