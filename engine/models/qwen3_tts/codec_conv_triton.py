"""Convolutions of the codec decoder as implicit matrix products, what follows them in the kernel.

Activations cross the device's memory once per convolution: what a kernel has computed it also
biases, activates and puts behind the past columns of the convolution that reads it. The sine is the
device's own approximation, within 1e-6 of the exact one at arguments of this size.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from playhead.engine.models.qwen3_tts.codec_ops import Unit, Wave


class Tile(NamedTuple):
    """How a kernel divides its work: output columns of time, of channels, inner products at a
    time; warps and pipeline stages; how many registers a thread may have (0: as many as it wants).
    Where one program takes all channels, ``wide`` says whether in one padded product, and ``near``
    whether its inputs, which each tap reads again, go through the multiprocessor's own cache."""

    tall: int
    wide: int
    deep: int
    warps: int
    stages: int
    registers: int = 0
    near: bool = False


def convolve(
    extended: torch.Tensor,
    weight: torch.Tensor,
    dilation: int,
    wave: Wave,
    tile: Tile,
    *,
    raw: bool,
) -> tuple[torch.Tensor | None, torch.Tensor]:
    """A causal convolution, then the activation of ``wave`` behind its past columns.

    ``extended`` [B, (taps - 1) * dilation + T, in], ``weight`` [out, in, 1, taps] channels-last.
    The out channels are r times those of the wave: r output columns side by side. Returns the
    convolution [B, T * r, channels] (None unless ``raw``) and [B, past + T * r, channels].
    """
    taps = weight.shape[3]
    batch, columns, _ = extended.shape
    length = columns - (taps - 1) * dilation
    return _run(extended, weight, (batch, length, columns, dilation), None, wave, tile, raw=raw)


def mix(
    x: torch.Tensor, inner: torch.Tensor, weight: torch.Tensor, wave: Wave, tile: Tile
) -> torch.Tensor:
    """Add ``inner`` [B, T, in] through ``weight`` [out, in] to ``x`` [B, T, out], overwriting it;
    returns the activation of the sum behind the past columns of ``wave``."""
    batch, length, _ = x.shape
    shape = weight[:, :, None, None]
    return _run(inner, shape, (batch, length, length, 1), x, wave, tile, raw=True)[1]


def _run(
    source: torch.Tensor,
    weight: torch.Tensor,
    sizes: tuple[int, int, int, int],
    added: torch.Tensor | None,
    wave: Wave,
    tile: Tile,
    *,
    raw: bool,
) -> tuple[torch.Tensor | None, torch.Tensor]:
    batch, length, columns, dilation = sizes
    out, inputs, _, taps = weight.shape
    channels = wave.bias.shape[0]
    ratio = out // channels
    active, before = _behind(source, wave, batch, length * ratio)
    whole = added
    if raw and added is None:
        whole = source.new_empty(batch, length * ratio, channels)
    past = active if wave.past is None else wave.past
    rows = batch * length
    grid = (triton.cdiv(out, tile.wide), triton.cdiv(rows, tile.tall))
    _convolve[grid](
        source, weight, active if whole is None else whole, active, past,
        wave.frequency, wave.height, wave.bias, _limit(source),
        rows, length, columns, dilation, before, past.stride(0),
        triton.cdiv(before, length * ratio), inputs, out, channels, taps,
        added is not None, raw, _held(source), source.is_cuda,
        tile.tall, tile.wide, tile.deep, num_warps=tile.warps, num_stages=tile.stages,
        maxnreg=tile.registers or None,
    )  # fmt: skip
    return whole if raw else None, active


def unit(
    x: torch.Tensor, extended: torch.Tensor, parts: Unit, wave: Wave, tile: Tile, *, raw: bool
) -> torch.Tensor:
    """A whole residual unit in one kernel, its first activation done: convolution, activation,
    mix, sum (to ``x`` [B, T, C], when ``raw``) and the activation of ``wave`` behind its past."""
    batch, length, channels = x.shape
    taps = parts.weight.shape[3]
    active, before = _behind(x, wave, batch, length)
    past = active if wave.past is None else wave.past
    most = 1 << (channels.bit_length() - 1)
    if tile.wide:  # one product of more channels than there are, instead of two exact ones
        first, second = triton.next_power_of_2(channels), 0
    else:
        first, second = most, triton.next_power_of_2(channels - most) if channels > most else 0
    inner = parts.inner
    rows = batch * length
    _unit[(triton.cdiv(rows, tile.tall),)](
        extended, parts.weight, parts.mix, x, active, past,
        inner.frequency, inner.height, inner.bias,
        wave.frequency, wave.height, wave.bias, _limit(x),
        rows, length, extended.shape[1], parts.dilation, before,
        past.stride(0), triton.cdiv(before, length), channels, taps,
        raw, _held(x), x.is_cuda, tile.near, tile.tall, first, second, tile.deep,
        num_warps=tile.warps, num_stages=tile.stages,
        maxnreg=tile.registers or None,
    )  # fmt: skip
    return active


def _behind(like: torch.Tensor, wave: Wave, batch: int, length: int) -> tuple[torch.Tensor, int]:
    """Room for the past columns and ``length`` new ones, and how many are past."""
    before = 0 if wave.past is None else wave.past.shape[1]
    return like.new_empty(batch, before + length, wave.bias.shape[0]), before


def _held(x: torch.Tensor) -> bool:
    """Whether values have to be held within what the dtype can say: float16 ends early."""
    return x.dtype == torch.float16


def _limit(x: torch.Tensor) -> float:
    return torch.finfo(x.dtype).max


@triton.jit
def _activate(value, frequency, height, bias, limit, held: tl.constexpr, fast: tl.constexpr):
    """SnakeBeta of ``value + bias``. What is not ``fast`` is exact, for processors."""
    if held:
        value = tl.where(value > limit, limit, value)
        value = tl.where(value < -limit, -limit, value)
    value += bias[None, :]
    angle = value * frequency[None, :]
    if fast:
        sine = tl.inline_asm_elementwise(
            "sin.approx.f32 $0, $1;", "=f,f", [angle], dtype=tl.float32, is_pure=True, pack=1
        )
    else:
        sine = tl.sin(angle)
    value += height[None, :] * sine * sine
    if held:
        value = tl.where(value > limit, limit, value)
        value = tl.where(value < -limit, -limit, value)
    return value


@triton.jit
def _remember(active, past, start, place, history, past_start, step, turns, inside):
    """Copy past columns to before the new ones: ``place`` is where an element lies among the new
    ones of its stream, ``history`` how many past elements there are."""
    for turn in range(turns):
        old = place + turn * step
        wanted = inside & (old < history)
        value = tl.load(past + past_start + old, mask=wanted)
        tl.store(active + start + old, value, mask=wanted)


@triton.jit
def _close(
    total, whole, active, past, frequency, height, bias, limit, stream, column, inside, channel,
    first, length, before, past_stride, turns, out: tl.constexpr, channels: tl.constexpr,
    adds: tl.constexpr, raw: tl.constexpr, held: tl.constexpr, fast: tl.constexpr,
    tall: tl.constexpr,
):  # fmt: skip
    """Add what is there, activate, write: the end of every kernel here. ``total``: ``tall`` columns
    of time, from the row ``first`` on, by some of ``out`` channels, which are r columns of
    ``channels`` side by side."""
    inside = inside[:, None] & (channel < out)[None, :]
    index = tl.minimum(channel, out - 1) % channels
    where = column[:, None] * out + channel[None, :]
    stream = stream.to(tl.int64)[:, None]
    place = stream * length * out + where
    if adds:
        total += tl.load(whole + place, mask=inside, other=0.0).to(tl.float32)
    if raw:
        tl.store(whole + place, total.to(whole.dtype.element_ty), mask=inside)
    total = _activate(
        total, tl.load(frequency + index), tl.load(height + index), tl.load(bias + index),
        limit, held, fast,
    )  # fmt: skip
    history = before * channels
    start = stream * (length * out + history)
    tl.store(active + start + history + where, total.to(active.dtype.element_ty), mask=inside)
    begin = first % length
    if (begin < before) | (begin + tall > length):  # a stream begins here: few programs see that
        _remember(
            active, past, start, where, history, stream * past_stride, length * out, turns, inside
        )


@triton.jit(do_not_specialize=["rows", "length", "columns", "dilation", "before", "turns"])
def _convolve(
    x, weight, whole, active, past, frequency, height, bias, limit,
    rows, length, columns, dilation, before, past_stride, turns,
    inputs: tl.constexpr, out: tl.constexpr, channels: tl.constexpr, taps: tl.constexpr,
    adds: tl.constexpr, raw: tl.constexpr, held: tl.constexpr, fast: tl.constexpr,
    tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr,
):  # fmt: skip
    """``tall`` columns of time (of any streams) by ``wide`` output channels."""
    row = tl.program_id(1) * tall + tl.arange(0, tall)
    inside = row < rows
    row = tl.minimum(row, rows - 1)
    stream = row // length
    column = row % length
    channel = tl.program_id(0) * wide + tl.arange(0, wide)
    inner = tl.arange(0, deep)
    parts: tl.constexpr = inputs // deep
    begin = (stream.to(tl.int64) * columns + column) * inputs
    source = x + begin[:, None] + inner[None, :]
    # Clamped where rows of weights are chosen, not where elements lie side by side.
    chosen = tl.minimum(channel, out - 1)[None, :]
    kernel = weight + chosen * (taps * inputs) + inner[:, None]
    total = tl.zeros((tall, wide), tl.float32)
    for step in range(taps * parts):
        a = tl.load(source + ((step // parts) * dilation * inputs + (step % parts) * deep))
        b = tl.load(kernel + step * deep)
        total = tl.dot(a, b, total, input_precision="ieee")
    _close(
        total, whole, active, past, frequency, height, bias, limit, stream, column, inside, channel,
        tl.program_id(1) * tall, length, before, past_stride, turns, out, channels,
        adds, raw, held, fast, tall,
    )  # fmt: skip


@triton.jit
def _ahead(step, inner, dilation, channels: tl.constexpr, deep: tl.constexpr):
    """How far a step's inputs lie behind the first step's, all taps' channels in a row. A step
    that ends one tap and begins the next needs a number for each input."""
    if channels % deep == 0:
        parts: tl.constexpr = channels // deep
        place = (step // parts) * dilation * channels + (step % parts) * deep
    else:
        at = step * deep + inner
        place = (step * deep + (at // channels) * (dilation - 1) * channels)[None, :]
    return place


@triton.jit
def _some(source, inside, everything: tl.constexpr, near: tl.constexpr):
    """What is inside, zeros elsewhere."""
    kept: tl.constexpr = ".ca" if near else ""
    if everything:
        value = tl.load(source, cache_modifier=kept)
    else:
        value = tl.load(source, mask=inside, other=0.0, cache_modifier=kept)
    return value


@triton.jit
def _mixed(y0, y1, mix, into, channels: tl.constexpr, first: tl.constexpr, second: tl.constexpr):
    """The products of all inner channels with the output channels ``into``."""
    inner = tl.arange(0, first)[:, None]
    target = tl.minimum(into, channels - 1)[None, :] * channels
    weight = tl.load(mix + target + inner, mask=inner < channels, other=0.0)
    total = tl.dot(y0, weight, input_precision="ieee")
    if second > 0:
        rest = first + tl.arange(0, second)[:, None]
        weight = tl.load(mix + target + rest, mask=rest < channels, other=0.0)
        total = tl.dot(y1, weight, total, input_precision="ieee")
    return total


@triton.jit(do_not_specialize=["rows", "length", "columns", "dilation", "before", "turns"])
def _unit(
    x, weight, mix, whole, active, past, inner_frequency, inner_height, inner_bias,
    frequency, height, bias, limit,
    rows, length, columns, dilation, before, past_stride, turns,
    channels: tl.constexpr, taps: tl.constexpr,
    raw: tl.constexpr, held: tl.constexpr, fast: tl.constexpr, near: tl.constexpr,
    tall: tl.constexpr, first: tl.constexpr, second: tl.constexpr, deep: tl.constexpr,
):  # fmt: skip
    """``tall`` columns of time (of any streams), all channels: the first ``first`` and the rest."""
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    inside = row < rows
    row = tl.minimum(row, rows - 1)
    stream = row // length
    column = row % length
    inner = tl.arange(0, deep)
    begin = (stream.to(tl.int64) * columns + column) * channels
    source = x + begin[:, None] + inner[None, :]
    c0 = tl.arange(0, first)
    i0 = tl.minimum(c0, channels - 1)
    kernel0 = weight + i0[None, :] * (taps * channels) + inner[:, None]
    t0 = tl.zeros((tall, first), tl.float32)
    if second > 0:
        c1 = first + tl.arange(0, second)
        i1 = tl.minimum(c1, channels - 1)
        kernel1 = weight + i1[None, :] * (taps * channels) + inner[:, None]
        t1 = tl.zeros((tall, second), tl.float32)
    depth: tl.constexpr = taps * channels
    whole_steps: tl.constexpr = depth % deep == 0
    for step in range(tl.cdiv(depth, deep)):
        inside_depth = step * deep + inner < depth
        ahead = _ahead(step, inner, dilation, channels, deep)
        a = _some(source + ahead, inside_depth[None, :], whole_steps, near)
        b = _some(kernel0 + step * deep, inside_depth[:, None], whole_steps, False)
        t0 = tl.dot(a, b, t0, input_precision="ieee")
        if second > 0:
            b = _some(kernel1 + step * deep, inside_depth[:, None], whole_steps, False)
            t1 = tl.dot(a, b, t1, input_precision="ieee")
    y0 = _activate(
        t0, tl.load(inner_frequency + i0), tl.load(inner_height + i0), tl.load(inner_bias + i0),
        limit, held, fast,
    ).to(whole.dtype.element_ty)  # fmt: skip
    y1 = y0
    if second > 0:
        y1 = _activate(
            t1, tl.load(inner_frequency + i1), tl.load(inner_height + i1), tl.load(inner_bias + i1),
            limit, held, fast,
        ).to(whole.dtype.element_ty)  # fmt: skip
    total = _mixed(y0, y1, mix, c0, channels, first, second)
    _close(
        total, whole, active, past, frequency, height, bias, limit, stream, column, inside, c0,
        tl.program_id(0) * tall, length, before, past_stride, turns, channels, channels,
        True, raw, held, fast, tall,
    )  # fmt: skip
    if second > 0:
        total = _mixed(y0, y1, mix, c1, channels, first, second)
        _close(
            total, whole, active, past, frequency, height, bias, limit, stream, column, inside, c1,
            tl.program_id(0) * tall, length, before, past_stride, turns, channels, channels,
            True, raw, held, fast, tall,
        )  # fmt: skip
