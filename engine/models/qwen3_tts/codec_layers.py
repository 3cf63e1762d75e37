"""Convolutional layers of the codec decoder, on chunks.

Activations are time-major, [B, T, C] with C contiguous: a view of them is what the accelerator's
channels-last convolutions want. Every convolution is causal. It gets its input extended by the
past columns, so decoding in chunks computes the very numbers that decoding in one piece does.

A transposed convolution whose kernel spans ``m`` strides is an ordinary causal convolution of
``m`` taps that yields ``stride`` output columns per input column, side by side in its channels.

The bias of a convolution is added where its output is read next, in one pass with the activation:
a layer says in ``owed`` what its reader has to add. What follows a convolution belongs to its call:
an accelerator does both in one kernel.
"""

from typing import NamedTuple

import torch
from playhead.engine.models.qwen3_tts.codec_ops import TorchOps, Unit, Wave
from playhead.engine.models.qwen3_tts.codec_spec import DILATIONS, OVERLAP
from playhead.engine.models.qwen3_tts.codec_state import Columns, Layout, Place
from playhead.engine.models.qwen3_tts.weights import Tensors
from torch import nn
from torch.nn import functional as F

SNAKE_FLOOR = 1e-9
LAYER_NORM_EPS = 1e-6


class Conv(nn.Module):
    """A causal convolution without its bias; ``weight`` [out, in, kernel]."""

    weight: torch.Tensor

    def __init__(
        self, weight: torch.Tensor, layout: Layout, ops: TorchOps, dilation: int = 1
    ) -> None:
        super().__init__()
        _, channels, kernel = weight.shape
        self.place = layout.reserve((kernel - 1) * dilation, channels)
        self.dilation, self.ops = dilation, ops
        flat = weight.to(ops.dtype).unsqueeze(2)
        self.weight = nn.Buffer(flat.contiguous(memory_format=torch.channels_last))

    def forward(self, extended: torch.Tensor) -> torch.Tensor:
        """[B, columns + T, in] -> [B, T, out]."""
        return self.ops.conv(extended, self.weight, self.dilation)

    def into(
        self, reader: "Reader", extended: torch.Tensor, columns: Columns, *, raw: bool = True
    ) -> tuple[torch.Tensor | None, torch.Tensor]:
        """The same, [B, T * r, C], None unless ``raw`` is wanted, and what the reader reads."""
        wave = reader.wave(columns)
        x, active = self.ops.convolve(extended, self.weight, self.dilation, wave, raw=raw)
        columns.keep(reader.place, active)
        return x, active


class Snake(nn.Module):
    """SnakeBeta (Lee et al., BigVGAN, 2023): x + sin²(x·e^alpha) / e^beta, after adding a bias.

    Parameters and arithmetic are float32 in every precision: e^alpha and the sine of a large
    argument do not survive bfloat16.
    """

    frequency: torch.Tensor
    height: torch.Tensor
    bias: torch.Tensor

    def __init__(self, tensors: Tensors, name: str, bias: torch.Tensor) -> None:
        super().__init__()
        self.frequency = nn.Buffer(tensors[f"{name}.alpha"].float().exp())
        self.height = nn.Buffer(1.0 / (tensors[f"{name}.beta"].float().exp() + SNAKE_FLOOR))
        self.bias = nn.Buffer(bias.float())

    def wave(self, past: torch.Tensor | None = None) -> Wave:
        """The activation behind the past columns of the convolution that reads it."""
        return Wave(self.frequency, self.height, self.bias, past)


class Reader(NamedTuple):
    """An activation, and where the convolution that reads it has its past columns."""

    snake: Snake
    place: Place

    def wave(self, columns: Columns) -> Wave:
        """The activation of a chunk."""
        return self.snake.wave(columns.past(self.place))


def extend(x: torch.Tensor, place: Place, columns: Columns) -> torch.Tensor:
    """Put the past columns before [B, T, C] and remember the last ones."""
    extended = torch.cat([columns.past(place), x], 1)
    columns.keep(place, extended)
    return extended


class ResidualUnit(nn.Module):
    """x + conv1(snake(conv7(snake(x)))). ``bias``: what still has to be added to the input."""

    mix: torch.Tensor

    def __init__(
        self,
        tensors: Tensors,
        name: str,
        bias: torch.Tensor,
        dilation: int,
        layout: Layout,
        ops: TorchOps,
    ) -> None:
        super().__init__()
        self.ops = ops
        self.conv = Conv(tensors[f"{name}.conv1.conv.weight"], layout, ops, dilation)
        self.before = Snake(tensors, f"{name}.act1", bias)
        self.reader = Reader(self.before, self.conv.place)
        self.after = Snake(tensors, f"{name}.act2", tensors[f"{name}.conv1.conv.bias"])
        self.mix = nn.Buffer(tensors[f"{name}.conv2.conv.weight"].squeeze(2).to(ops.dtype))
        self.owed = bias + tensors[f"{name}.conv2.conv.bias"]

    def forward(
        self,
        reader: Reader,
        x: torch.Tensor,
        extended: torch.Tensor,
        columns: Columns,
        *,
        raw: bool,
    ) -> torch.Tensor:
        """``x`` [B, T, C], overwritten by the result where ``raw`` is wanted, and its first
        activation, which has been done, ``extended``; returns what the reader reads."""
        parts = Unit(self.conv.weight, self.conv.dilation, self.after.wave(), self.mix)
        active = self.ops.unit(x, extended, parts, reader.wave(columns), raw=raw)
        columns.keep(reader.place, active)
        return active


class WaveformStage(nn.Module):
    """Snake, upsampling by the stride, three residual units of growing dilation."""

    def __init__(
        self, tensors: Tensors, name: str, bias: torch.Tensor, layout: Layout, ops: TorchOps
    ) -> None:
        super().__init__()
        weight = tensors[f"{name}.1.conv.weight"]
        self.conv = Conv(tap_weight(weight, weight.shape[2] // OVERLAP), layout, ops)
        self.snake = Snake(tensors, f"{name}.0", bias)
        self.reader = Reader(self.snake, self.conv.place)
        self.owed = tensors[f"{name}.1.conv.bias"]
        units = []
        for index, dilation in enumerate(DILATIONS):
            unit = ResidualUnit(tensors, f"{name}.{index + 2}", self.owed, dilation, layout, ops)
            units.append(unit)
            self.owed = unit.owed
        self.units = nn.ModuleList(units)
        self._readers = [unit.reader for unit in units]

    def forward(self, reader: Reader, extended: torch.Tensor, columns: Columns) -> torch.Tensor:
        """``extended`` [B, 1 + T, C], what ``self.reader`` has made; returns what the next one
        makes of [B, T * stride, C / 2]."""
        x, active = self.conv.into(self._readers[0], extended, columns)
        for unit, following in zip(self.units, [*self._readers[1:], reader], strict=True):
            active = unit(following, x, active, columns, raw=following is not reader)
        return active


class LatentStage(nn.Module):
    """Upsampling whose kernel is its stride, then a ConvNeXt block (Liu et al., 2022), causal."""

    up: torch.Tensor
    up_bias: torch.Tensor
    taps: torch.Tensor
    taps_bias: torch.Tensor
    norm: torch.Tensor
    norm_bias: torch.Tensor

    def __init__(self, tensors: Tensors, name: str, layout: Layout, ops: TorchOps) -> None:
        super().__init__()
        self.ops = ops
        weight = tensors[f"{name}.0.conv.weight"]
        self.ratio, self.width = weight.shape[2], weight.shape[1]
        self.up = nn.Buffer(tap_weight(weight, self.ratio).squeeze(2).to(ops.dtype))
        self.up_bias = nn.Buffer(tensors[f"{name}.0.conv.bias"].repeat(self.ratio).to(ops.dtype))
        taps = tensors[f"{name}.1.dwconv.conv.weight"].squeeze(1)
        self.place = layout.reserve(taps.shape[1] - 1, self.width)
        self.taps = nn.Buffer(taps.t().contiguous().float())
        self.taps_bias = nn.Buffer(tensors[f"{name}.1.dwconv.conv.bias"].float())
        self.norm = nn.Buffer(tensors[f"{name}.1.norm.weight"].float())
        self.norm_bias = nn.Buffer(tensors[f"{name}.1.norm.bias"].float())
        gamma = tensors[f"{name}.1.gamma"]
        self.widen = linear(tensors, f"{name}.1.pwconv1", ops.dtype)
        self.narrow = linear(tensors, f"{name}.1.pwconv2", ops.dtype, gamma)

    def forward(self, x: torch.Tensor, columns: Columns) -> torch.Tensor:
        """[B, T, C] -> [B, T * ratio, C]."""
        x = F.linear(x, self.up, self.up_bias).reshape(x.shape[0], -1, self.width)
        extended = extend(x, self.place, columns)
        inner = self.ops.depthwise(
            extended, self.taps, self.taps_bias, self.norm, self.norm_bias, LAYER_NORM_EPS
        )
        added: torch.Tensor = self.narrow(F.gelu(self.widen(inner)))
        return x + added


def tap_weight(weight: torch.Tensor, stride: int) -> torch.Tensor:
    """A transposed kernel [in, out, m * stride] as one of m taps: [stride * out, in, m]."""
    inputs, out, kernel = weight.shape
    taps = kernel // stride
    parts = weight.reshape(inputs, out, taps, stride).flip(2)
    return parts.permute(3, 1, 0, 2).reshape(stride * out, inputs, taps)


def linear(
    tensors: Tensors, name: str, dtype: torch.dtype, gain: torch.Tensor | None = None
) -> nn.Linear:
    """A linear layer of the checkpoint; ``gain`` [out] scales what it gives."""
    weight, bias = tensors[f"{name}.weight"], tensors.get(f"{name}.bias")
    if gain is not None:
        weight = weight * gain[:, None]
        bias = None if bias is None else bias * gain
    return dense_layer(weight.to(dtype), None if bias is None else bias.to(dtype))


def dense_layer(weight: torch.Tensor, bias: torch.Tensor | None = None) -> nn.Linear:
    """A linear layer of given weights, without gradients and without initialising twice."""
    layer = nn.Linear(
        weight.shape[1], weight.shape[0], bias=bias is not None, device="meta", dtype=weight.dtype
    )
    layer.weight = nn.Parameter(weight, requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(bias, requires_grad=False)
    return layer
