"""The codec decoder's elementwise work as Triton kernels, between the library's convolutions.

Each kernel reads its input once and writes its output once; arithmetic is float32. Nothing is
compiled per batch size or chunk length, so a new graph costs its capture alone.
"""

import torch
import triton
import triton.language as tl
from playhead.engine.models.qwen3_tts import codec_attention_triton
from playhead.engine.models.qwen3_tts.codec_ops import Heads, TorchOps, Turn

SNAKE_TILE = 2048  # elements
GATE_TILE = 1024
FOLD_TILE = 64  # columns, of which the last few are the next tile's first


class TritonOps(TorchOps):
    """Fused kernels for CUDA devices."""

    def __init__(self, dtype: torch.dtype = torch.bfloat16) -> None:
        super().__init__(dtype)

    def snake(
        self,
        x: torch.Tensor,
        frequency: torch.Tensor,
        height: torch.Tensor,
        bias: torch.Tensor,
        past: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """See :meth:`TorchOps.snake`."""
        x = x.contiguous()
        batch, length, channels = x.shape
        before = 0 if past is None else past.shape[1]
        out = x.new_empty(batch, before + length, channels)
        source = x if past is None else past
        wide = _tile_width(channels)
        tall = SNAKE_TILE // wide
        grid = (triton.cdiv(before + length, tall), channels // wide, batch)
        _snake[grid](
            x, source, out, frequency, height, bias, self.limit,
            length, before, source.stride(0) if before else 0, channels, before > 0, tall, wide,
        )  # fmt: skip
        return out

    def depthwise(
        self,
        extended: torch.Tensor,
        taps: torch.Tensor,
        bias: torch.Tensor,
        norm: torch.Tensor,
        norm_bias: torch.Tensor,
        eps: float,
    ) -> torch.Tensor:
        """See :meth:`TorchOps.depthwise`."""
        batch, columns, channels = extended.shape
        kernel = taps.shape[0]
        length = columns - kernel + 1
        out = extended.new_empty(batch, length, channels)
        _depthwise[(length, batch)](
            extended, out, taps, bias, norm, norm_bias,
            length, eps, channels, kernel, triton.next_power_of_2(channels),
        )  # fmt: skip
        return out

    def rms(self, x: torch.Tensor, eps: float) -> torch.Tensor:
        """See :meth:`TorchOps.rms`."""
        out = torch.empty_like(x)
        channels = x.shape[2]
        width = triton.next_power_of_2(channels)
        _rms[(x.shape[0] * x.shape[1],)](x, out, eps, channels, width)
        return out

    def gate(self, both: torch.Tensor) -> torch.Tensor:
        """See :meth:`TorchOps.gate`."""
        width = both.shape[2] // 2
        out = both.new_empty(*both.shape[:2], width)
        _gate[(triton.cdiv(out.numel(), GATE_TILE),)](both, out, out.numel(), width, GATE_TILE)
        return out

    def mask(self, positions: torch.Tensor, ring: int, window: int) -> torch.Tensor | None:
        """None: the kernel computes it."""
        return None

    def attend(
        self,
        qkv: torch.Tensor,
        turn: Turn,
        keys: torch.Tensor,
        values: torch.Tensor,
        heads: Heads,
    ) -> torch.Tensor:
        """See :meth:`TorchOps.attend`."""
        return codec_attention_triton.attend(qkv, turn, keys, values, heads)

    def fold(
        self, extended: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> torch.Tensor:
        """See :meth:`TorchOps.fold`."""
        batch, columns, channels = extended.shape
        kernel = weight.shape[0]
        length = columns - kernel + 1
        out = extended.new_empty(batch, length, dtype=torch.float32)
        _fold[(triton.cdiv(length, FOLD_TILE - kernel + 1), batch)](
            extended, weight, bias, out, length, channels, kernel, FOLD_TILE,
            # A matrix product takes at least 16 each way.
            max(16, triton.next_power_of_2(channels)), max(8, triton.next_power_of_2(kernel)),
        )  # fmt: skip
        return out


def _tile_width(channels: int) -> int:
    """The largest power of two that divides the channels, at most 128."""
    return min(channels & -channels, 128)


@triton.jit
def _hold(value, limit):
    """Within ±limit. A NaN stays one: it is how a faulty stream is found out."""
    value = tl.where(value > limit, limit, value)
    return tl.where(value < -limit, -limit, value)


# Lengths differ with the bucket; kernels are compiled once for all of them.
@triton.jit(do_not_specialize=["length", "before"])
def _snake(
    x, past, out, frequency, height, bias, limit, length, before,
    past_stride: tl.constexpr, channels: tl.constexpr, copies: tl.constexpr,
    tall: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """A tile of ``tall`` columns by ``wide`` channels: past columns copied, new ones activated."""
    batch = tl.program_id(2).to(tl.int64)
    column = tl.program_id(0) * tall + tl.arange(0, tall)
    channel = tl.program_id(1) * wide + tl.arange(0, wide)
    inside = (column < before + length)[:, None]
    fresh = (column >= before)[:, None]
    place = column[:, None] * channels + channel[None, :]
    source = x + batch * length * channels + (place - before * channels)
    value = tl.load(source, mask=inside & fresh, other=0.0).to(tl.float32)
    value = _hold(value, limit)
    value += tl.load(bias + channel)[None, :]
    wave = tl.sin(value * tl.load(frequency + channel)[None, :])
    value += tl.load(height + channel)[None, :] * wave * wave
    value = _hold(value, limit)
    if copies:
        old = tl.load(past + batch * past_stride + place, mask=column[:, None] < before, other=0.0)
        value = tl.where(fresh, value, old.to(tl.float32))
    target = out + batch * (before + length) * channels + place
    tl.store(target, value.to(out.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["length"])
def _depthwise(
    x, out, taps, bias, norm, norm_bias, length, eps,
    channels: tl.constexpr, kernel: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """One output column: all its channels, then their LayerNorm."""
    column = tl.program_id(0)
    batch = tl.program_id(1).to(tl.int64)
    channel = tl.arange(0, width)
    inside = channel < channels
    source = x + (batch * (length + kernel - 1) + column) * channels + channel
    total = tl.load(bias + channel, mask=inside, other=0.0)
    for tap in tl.static_range(kernel):
        value = tl.load(source + tap * channels, mask=inside, other=0.0).to(tl.float32)
        total += value * tl.load(taps + tap * channels + channel, mask=inside, other=0.0)
    centred = tl.where(inside, total - tl.sum(total, 0) / channels, 0.0)
    power = tl.sum(centred * centred, 0) / channels
    normed = centred * tl.rsqrt(power + eps) * tl.load(norm + channel, mask=inside, other=0.0)
    normed += tl.load(norm_bias + channel, mask=inside, other=0.0)
    target = out + (batch * length + column) * channels + channel
    tl.store(target, normed.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _rms(x, out, eps, channels: tl.constexpr, width: tl.constexpr):
    """One row."""
    row = tl.program_id(0).to(tl.int64) * channels
    channel = tl.arange(0, width)
    inside = channel < channels
    value = tl.load(x + row + channel, mask=inside, other=0.0).to(tl.float32)
    power = tl.sum(value * value, 0) / channels
    scaled = value * tl.rsqrt(power + eps)
    tl.store(out + row + channel, scaled.to(out.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["count"])
def _gate(both, out, count, width: tl.constexpr, tile: tl.constexpr):
    """silu(gate) * value, elementwise."""
    index = tl.program_id(0) * tile + tl.arange(0, tile)
    inside = index < count
    source = both + (index // width).to(tl.int64) * 2 * width + index % width
    gate = tl.load(source, mask=inside, other=0.0).to(tl.float32)
    value = tl.load(source + width, mask=inside, other=0.0).to(tl.float32)
    gated = gate / (1.0 + tl.exp(-gate)) * value
    tl.store(out + index, gated.to(out.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["length"])
def _fold(
    x, weight, bias, out, length,
    channels: tl.constexpr, kernel: tl.constexpr, tall: tl.constexpr, width: tl.constexpr,
    taps: tl.constexpr,
):  # fmt: skip
    """``tall`` columns by all taps as one product, then each sample's sum along the diagonal. A
    weight is two numbers of the activations' precision, whose products lose nothing in float32."""
    row = tl.arange(0, tall)
    done: tl.constexpr = tall - kernel + 1
    first = tl.program_id(0) * done
    batch = tl.program_id(1).to(tl.int64)
    channel = tl.arange(0, width)
    wanted = (first + row < length + kernel - 1)[:, None] & (channel < channels)[None, :]
    source = x + (batch * (length + kernel - 1) + first + row[:, None]) * channels
    value = tl.load(source + channel[None, :], mask=wanted, other=0.0)
    part = tl.arange(0, 2 * taps)
    tap = part % taps
    known = (channel < channels)[:, None] & (tap < kernel)[None, :]
    exact = tl.load(weight + tap[None, :] * channels + channel[:, None], mask=known, other=0.0)
    high = exact.to(x.dtype.element_ty)
    low = (exact - high.to(tl.float32)).to(x.dtype.element_ty)
    halves = tl.where((part < taps)[None, :], high, low)
    products = tl.dot(value, halves, input_precision="ieee")
    along = tl.minimum(row[:, None] + tap[None, :], tall - 1)
    samples = tl.sum(tl.gather(products, along, 0), 1) + tl.load(bias)
    sample = first + row
    target = out + batch * length + sample
    tl.store(target, samples, mask=(row < done) & (sample < length))
