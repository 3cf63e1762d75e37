"""Matrix products of few rows with what comes before and after them, as one Triton kernel.

A step of few streams reads every weight once and computes little with it, so what counts is the
number of kernels and that each keeps all of the device reading. Norm before a product, SwiGLU or
residual after it cost nothing inside. Many rows are better left to the vendor's library. Needs
triton, which comes with torch for CUDA.
"""

from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

MOST_ROWS = 16
"""Of more the vendor's library with separate kernels around it is as fast or faster, as it is for
what comes before attention; of one row the predictor's products take three quarters of its time:
measured (bench/gpu/linear.py)."""
LEAST_ROWS = 16


class Cut(NamedTuple):
    """How a product is cut: rows of the weight a program takes, its stride through them, and the
    program's warps and stages; rows of ours that a program takes at most."""

    tile: int
    step: int
    warps: int
    stages: int
    most: int = 64


@triton.jit(do_not_specialize=["rows"])
def _linear(
    x, gain, weight, bias, more, out, rows, width, depth, x_stride, eps,
    tile: tl.constexpr, batch: tl.constexpr, step: tl.constexpr,
    normed: tl.constexpr, scaled: tl.constexpr, gated: tl.constexpr, biased: tl.constexpr,
    added: tl.constexpr,
):  # fmt: skip
    """One program: ``tile`` outputs of ``batch`` rows; a norm's factor is known when the product
    is. Weights stand on the left of the product, because there are more of their rows than of ours.
    """
    n = tl.program_id(0) * tile + tl.arange(0, tile)
    m = tl.program_id(1) * batch + tl.arange(0, batch)
    known = (m < rows)[None, :]
    total = tl.zeros((tile, batch), tl.float32)
    other = tl.zeros((tile, batch), tl.float32)
    squares = tl.zeros((batch,), tl.float32)
    for start in range(0, depth, step):
        k = start + tl.arange(0, step)
        part = tl.load(x + m[None, :] * x_stride + k[:, None], mask=known, other=0.0)
        if normed:
            wide = part.to(tl.float32)
            squares += tl.sum(wide * wide, 0)
            if scaled:
                part = (wide * tl.load(gain + k).to(tl.float32)[:, None]).to(part.dtype)
        at = weight + n[:, None] * depth + k[None, :]
        total = tl.dot(tl.load(at), part, total, input_precision="ieee")
        if gated:
            other = tl.dot(tl.load(at + width * depth), part, other, input_precision="ieee")
    if normed:
        size = tl.rsqrt(squares / depth + eps)[None, :]
        total, other = total * size, other * size
    if gated:
        total = total * tl.sigmoid(total) * other
    if biased:
        total += tl.load(bias + n).to(tl.float32)[:, None]
    to = m[None, :] * width + n[:, None]
    if added:
        total += tl.load(more + to, mask=known, other=0.0).to(tl.float32)
    tl.store(out + to, total.to(out.dtype.element_ty), mask=known)


def linear(
    x: Tensor,
    weight: Tensor,
    *,
    eps: float | None = None,
    gain: Tensor | None = None,
    gated: bool = False,
    bias: Tensor | None = None,
    more: Tensor | None = None,
    cut: Cut | None = None,
) -> Tensor:
    """``x`` [..., depth] times ``weight`` [width, depth], transposed: [..., width].

    ``eps``: ``x`` is normed first (``layers.rms_norm``), by ``gain`` [depth], unless that is in the
    weight. ``gated``: the first half of the weight's rows gates the second (SwiGLU). ``bias``
    [width] and ``more`` [..., width] are added to the result. Sizes must be multiples of 16.
    """
    rows, depth = x.numel() // x.shape[-1], weight.shape[1]
    width = weight.shape[0] // 2 if gated else weight.shape[0]
    flat = x.reshape(rows, depth)
    more = None if more is None else more.contiguous()
    out = x.new_empty((*x.shape[:-1], width))
    tile, step, warps, stages, most = cut or _cut(width, depth, gated, x.element_size())
    batch = min(most, max(LEAST_ROWS, triton.next_power_of_2(rows)))
    _linear[(width // tile, triton.cdiv(rows, batch))](
        flat, gain, weight, bias, more, out, rows, width, depth, flat.stride(0), eps or 0.0,
        tile, batch, step,
        eps is not None, gain is not None, gated, bias is not None, more is not None,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out


def _cut(width: int, depth: int, gated: bool, itemsize: int) -> Cut:
    """The best of bench/gpu/linear.py for few rows, or the next smaller that divides the sizes.
    Wide numbers take shorter steps: a multiprocessor's memory holds as many bytes, not elements."""
    best = Cut(64, 128, 8, 5) if gated else Cut(32, 256, 4, 5)
    step = best.step * 2 // itemsize
    return best._replace(tile=dividing(best.tile, width), step=dividing(step, depth))


def dividing(size: int, whole: int) -> int:
    """The largest half, quarter… of ``size``, a power of two, that divides ``whole``."""
    while whole % size:
        size //= 2
    return size
