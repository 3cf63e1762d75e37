"""Attention of each stream's newest position as one Triton kernel for CUDA devices.

What lies between a layer's first and second matrix product happens in one place: norm and rotation
of the heads, the new key and value written to memory, and attention over what is there (online
softmax, arXiv 1805.02867), read in place and only as far as each stream has come. Needs triton,
which comes with torch for CUDA.
"""

import triton
import triton.language as tl
from playhead.engine.models.qwen3_tts.layers import Entry, Few, Slotted
from torch import Tensor

LEAST_ROWS = 16
"""Rows of the smallest matrix product a device does; fewer queries are filled up with zeros."""
MANY = 32
CUTS = ((128, 8, 3), (16, 1, 3))
"""Positions read at once over slots, warps and stages: of fewer than ``MANY`` streams, where each
has the device's memory almost to itself, and of more. Measured (bench/gpu/attention.py) with 16
bits; of wider numbers as many bytes are read at once."""


@triton.jit
def _turned(at, known, gain, cos, sin, eps, dim: tl.constexpr):
    """Heads at ``at`` [n, 1], normed and rotated, float32 [n, dim]; zeros where not ``known``."""
    lane = tl.arange(0, dim)
    other = (lane + dim // 2) % dim
    x = tl.load(at + lane[None, :], mask=known, other=0.0).to(tl.float32)
    y = tl.load(at + other[None, :], mask=known, other=0.0).to(tl.float32)
    size = tl.rsqrt(tl.sum(x * x, 1) / dim + eps)[:, None]
    x = x * size * tl.load(gain + lane).to(tl.float32)[None, :]
    y = y * size * tl.load(gain + other).to(tl.float32)[None, :]
    c, s = tl.load(cos + lane).to(tl.float32), tl.load(sin + lane).to(tl.float32)
    s = tl.where(lane < dim // 2, -s, s)
    return x * c[None, :] + y * s[None, :]


@triton.jit
def _newest(
    qkv, q_norm, k_norm, cos, sin, keys, values, slots, positions, out, same,
    qkv_stride, turns, slot_stride, position_stride, scale, eps,
    slotted: tl.constexpr, kv_heads: tl.constexpr, groups: tl.constexpr, dim: tl.constexpr,
    rows: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """One program: one stream and one key head with the ``groups`` queries that share it."""
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    slot, last = row, same
    if slotted:
        slot, last = tl.load(slots + row), tl.load(positions + row)
    lane, member = tl.arange(0, dim), tl.arange(0, rows)
    cos += (row % turns) * dim
    sin += (row % turns) * dim
    source = qkv + row * qkv_stride
    kind = keys.dtype.element_ty

    one = tl.arange(0, 1)[:, None]
    fresh = source + (kv_heads * groups + head) * dim
    key = _turned(fresh + one, one == 0, k_norm, cos, sin, eps, dim).to(kind)
    value = tl.load(fresh + kv_heads * dim + one + lane[None, :])
    base = slot * slot_stride + head * dim
    to = base + last * position_stride + one + lane[None, :]
    tl.store(keys + to, key)
    tl.store(values + to, value)

    mine = (member < groups)[:, None]
    query = _turned(source + (head * groups + member)[:, None] * dim, mine,
                    q_norm, cos, sin, eps, dim).to(kind)  # fmt: skip
    best = tl.sum(query.to(tl.float32) * key.to(tl.float32), 1) * scale
    total = tl.full((rows,), 1.0, tl.float32)
    mixed = tl.zeros((rows, dim), tl.float32) + value.to(tl.float32)
    for start in range(0, last, block):
        at = start + tl.arange(0, block)
        seen = at < last
        where = base + at[:, None] * position_stride + lane[None, :]
        old = tl.load(keys + where, mask=seen[:, None], other=0.0)
        score = tl.dot(query, tl.trans(old), input_precision="ieee") * scale
        score = tl.where(seen[None, :], score, float("-inf"))
        top = tl.maximum(best, tl.max(score, 1))
        share = tl.exp(score - top[:, None])
        fade = tl.exp(best - top)
        held = tl.load(values + where, mask=seen[:, None], other=0.0)
        mixed = mixed * fade[:, None] + tl.dot(share.to(kind), held, input_precision="ieee")
        total = total * fade + tl.sum(share, 1)
        best = top
    given = out + ((row * kv_heads + head) * groups + member)[:, None] * dim + lane[None, :]
    tl.store(given, (mixed / total[:, None]).to(out.dtype.element_ty), mask=mine)


def over_slots(
    qkv: Tensor, weights: Entry, cos: Tensor, sin: Tensor, memory: Slotted, eps: float
) -> Tensor:
    """See ``layers.attend_slots``; ``span`` is not needed. Group size and head_dim must be powers
    of two, head_dim at least 16."""
    keys, values, slots, positions, _ = memory
    out = _room(qkv, weights, keys)
    block, warps, stages = CUTS[qkv.shape[0] >= MANY]
    block = max(LEAST_ROWS, block * 2 // qkv.element_size())
    _newest[(qkv.shape[0], keys.shape[2])](
        qkv, weights.q_norm, weights.k_norm, cos, sin, keys, values, slots, positions, out, 0,
        *_strides(qkv, cos, keys), eps, True, *_sizes(out, keys), block,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out


def over_few(
    qkv: Tensor, weights: Entry, cos: Tensor, sin: Tensor, memory: Few, eps: float
) -> Tensor:
    """See ``layers.attend_few``: at most ``LEAST_ROWS`` keys before the new one are fast."""
    keys, values, at = memory
    out = _room(qkv, weights, keys)
    _newest[(qkv.shape[0], keys.shape[2])](
        qkv, weights.q_norm, weights.k_norm, cos, sin, keys, values, None, None, out, at,
        *_strides(qkv, cos, keys), eps, False, *_sizes(out, keys), LEAST_ROWS,
        num_warps=1, num_stages=1,
    )  # fmt: skip
    return out


def _room(qkv: Tensor, weights: Entry, keys: Tensor) -> Tensor:
    """For what queries attend to: [B, heads * head_dim]."""
    width = weights.q_norm.shape[0]
    return qkv.new_empty((qkv.shape[0], qkv.shape[1] - 2 * keys.shape[2] * width))


def _strides(qkv: Tensor, cos: Tensor, keys: Tensor) -> tuple[int, int, int, int, float]:
    """Of a stream's row, how many rows of angles there are, of a slot and a position, and the
    scale of a score."""
    width = keys.shape[3]
    return qkv.stride(0), cos.numel() // width, keys.stride(0), keys.stride(1), width**-0.5


def _sizes(out: Tensor, keys: Tensor) -> tuple[int, int, int, int]:
    """Key heads, queries that share one, width of a head, and queries with their filling."""
    kv_heads, width = keys.shape[2:]
    groups = out.shape[1] // (kv_heads * width)
    return kv_heads, groups, width, max(LEAST_ROWS, groups)
