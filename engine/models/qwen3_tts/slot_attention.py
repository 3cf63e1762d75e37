"""Attention of one position per stream straight over the slots, for CUDA devices.

The form in plain torch first copies every slot's context; this reads it in place, and only as much
as each stream has (online softmax, arXiv 1805.02867). Needs triton, which comes with torch for
CUDA.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 32
"""Positions read at once."""


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _over_slots(  # type: ignore[no-untyped-def]
    q,
    keys,
    values,
    slots,
    positions,
    out,
    scale,
    slot_stride,
    position_stride,
    kv_heads: tl.constexpr,
    groups: tl.constexpr,
    dim: tl.constexpr,
    block: tl.constexpr,
):
    """One program: one stream and one key head with the ``groups`` queries that share it."""
    row, head = tl.program_id(0), tl.program_id(1)
    slot, last = tl.load(slots + row), tl.load(positions + row)
    lane = tl.arange(0, dim)
    member = (row * kv_heads + head) * groups + tl.arange(0, groups)
    query = tl.load(q + member[:, None] * dim + lane[None, :]).to(tl.float32) * scale
    base = slot * slot_stride + head * dim
    best = tl.full((groups,), float("-inf"), tl.float32)
    total = tl.zeros((groups,), tl.float32)
    mixed = tl.zeros((groups, dim), tl.float32)
    for start in range(0, last + 1, block):
        at = start + tl.arange(0, block)
        known = at <= last
        where = base + at[:, None] * position_stride + lane[None, :]
        key = tl.load(keys + where, mask=known[:, None], other=0.0).to(tl.float32)
        score = tl.sum(query[:, None, :] * key[None, :, :], 2)
        score = tl.where(known[None, :], score, float("-inf"))
        top = tl.maximum(best, tl.max(score, 1))
        share = tl.exp(score - top[:, None])
        fade = tl.exp(best - top)
        value = tl.load(values + where, mask=known[:, None], other=0.0).to(tl.float32)
        mixed = mixed * fade[:, None] + tl.sum(share[:, :, None] * value[None, :, :], 1)
        total = total * fade + tl.sum(share, 1)
        best = top
    result = mixed / total[:, None]
    tl.store(out + member[:, None] * dim + lane[None, :], result.to(out.dtype.element_ty))


def attend_slots_in_place(
    q: Tensor, keys: Tensor, values: Tensor, slots: Tensor, positions: Tensor, span: int
) -> Tensor:
    """See ``layers.attend_slots``; ``span`` is not needed. Group size and head_dim must be powers
    of two."""
    batch, heads, dim = q.shape
    kv_heads = keys.shape[2]
    out = torch.empty((batch, heads * dim), dtype=q.dtype, device=q.device)
    _over_slots[(batch, kv_heads)](
        q.contiguous(),
        keys,
        values,
        slots,
        positions,
        out,
        dim**-0.5,
        keys.stride(0),
        keys.stride(1),
        kv_heads,
        heads // kv_heads,
        dim,
        BLOCK,
    )
    return out
