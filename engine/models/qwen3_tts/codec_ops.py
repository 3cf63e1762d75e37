"""The codec decoder's elementwise work and attention, in plain torch.

Convolutions and matrix products go to torch's libraries everywhere; what lies between them costs
memory traffic and launches, so an accelerator replaces it (``codec_triton.py``). Activations are
time-major, [B, T, C]. Whatever their dtype, the arithmetic is float32.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from playhead.engine.models.qwen3_tts.config import CodecDecoderConfig
from torch.nn import functional as F


@dataclass(frozen=True, slots=True)
class Heads:
    """How a layer's fused projection divides, and how far attention looks."""

    queries: int
    keys: int
    width: int
    window: int

    @staticmethod
    def of(config: CodecDecoderConfig) -> "Heads":
        """The heads of a configuration."""
        return Heads(config.heads, config.kv_heads, config.head_dim, config.window)


@dataclass(frozen=True, slots=True)
class Turn:
    """What all layers of one decode share.

    ``slots`` [B] int64; ``positions`` [B, T] int64 of the new columns; ``angles``
    [B, T, head_dim / 2] float32; ``mask`` [B, 1, T, ring]: 0 where a column may attend, else -inf.
    """

    slots: torch.Tensor
    positions: torch.Tensor
    angles: torch.Tensor
    mask: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class Wave:
    """A SnakeBeta and the convolution behind it. Parameters [C] float32: ``frequency`` e^alpha,
    ``height`` e^-beta; ``bias`` is added first. ``past`` [B, columns, C]: what that convolution
    has read before, None when it looks back on nothing."""

    frequency: torch.Tensor
    height: torch.Tensor
    bias: torch.Tensor
    past: torch.Tensor | None = None


@dataclass(frozen=True, slots=True)
class Unit:
    """The weights of a residual unit: its convolution, [C, C, 1, taps] channels-last, the
    activation between, and ``mix`` [C, C]."""

    weight: torch.Tensor
    dilation: int
    inner: Wave
    mix: torch.Tensor


@contextmanager
def full_float32() -> Iterator[None]:
    """Keep float32 convolutions from being rounded to TF32, which torch does by default."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


class TorchOps:
    """Plain torch: exact in float32, the yardstick of every other implementation.

    float16 rounds eight times finer than bfloat16 at equal speed, but ends at 65,504: what an
    activation reads and writes is held within that.
    """

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        self.dtype = dtype
        self.limit = torch.finfo(dtype).max

    def snake(
        self,
        x: torch.Tensor,
        frequency: torch.Tensor,
        height: torch.Tensor,
        bias: torch.Tensor,
        past: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """SnakeBeta of ``x + bias``, put behind the ``past`` columns: [B, columns + T, C].

        All parameters [C] float32: ``frequency`` e^alpha, ``height`` e^-beta.
        """
        biased = x.float().clamp(-self.limit, self.limit) + bias
        wave = torch.sin(biased * frequency)
        out = (biased + height * wave * wave).clamp(-self.limit, self.limit).to(x.dtype)
        return out if past is None else torch.cat([past, out], 1)

    def accumulate(self, x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Add ``y`` [B, T, I] through ``weight`` [C, I] to ``x`` [B, T, C], overwriting x."""
        # view, not reshape: a copy would be written and lost
        x.view(-1, x.shape[2]).addmm_(y.view(-1, y.shape[2]), weight.t())
        return x

    def conv(self, extended: torch.Tensor, weight: torch.Tensor, dilation: int) -> torch.Tensor:
        """A causal convolution without its bias, channels-last: [B, (taps - 1) * dilation + T, in]
        by ``weight`` [out, in, 1, taps] -> [B, T, out]."""
        image = extended.transpose(1, 2).unsqueeze(2)
        out = F.conv2d(image, weight, dilation=(1, dilation))
        # A view already, unless the library chose another layout.
        return out.squeeze(2).transpose(1, 2).contiguous()

    def convolve(
        self,
        extended: torch.Tensor,
        weight: torch.Tensor,
        dilation: int,
        wave: Wave,
        *,
        raw: bool = True,
    ) -> tuple[torch.Tensor | None, torch.Tensor]:
        """:meth:`conv` and the activation that reads it. The out channels are r times those of
        ``wave``: r columns side by side.

        Returns the convolution [B, T * r, C], None unless ``raw`` is wanted, and what ``wave``
        makes of it behind its past columns, [B, past + T * r, C].
        """
        made = self.conv(extended, weight, dilation)
        x = made.view(made.shape[0], -1, wave.bias.shape[0])
        return x if raw else None, self.activate(x, wave)

    def unit(
        self, x: torch.Tensor, extended: torch.Tensor, parts: Unit, wave: Wave, *, raw: bool = True
    ) -> torch.Tensor:
        """A residual unit whose first activation is done: convolution, activation, mix, sum.

        ``x`` [B, T, C] is overwritten by the sum (unless not ``raw``, when nobody reads it);
        ``extended`` [B, past + T, C] is what the convolution reads. Returns what ``wave`` makes of
        the sum behind its past columns.
        """
        _, inner = self.convolve(extended, parts.weight, parts.dilation, parts.inner, raw=False)
        return self.activate(self.accumulate(x, inner, parts.mix), wave)

    def activate(self, x: torch.Tensor, wave: Wave) -> torch.Tensor:
        """:meth:`snake` by a wave."""
        return self.snake(x, wave.frequency, wave.height, wave.bias, wave.past)

    def depthwise(
        self,
        extended: torch.Tensor,
        taps: torch.Tensor,
        bias: torch.Tensor,
        norm: torch.Tensor,
        norm_bias: torch.Tensor,
        eps: float,
    ) -> torch.Tensor:
        """Depthwise convolution by ``taps`` [kernel, C], then LayerNorm; parameters float32.

        [B, kernel - 1 + T, C] -> [B, T, C]. One multiplication per tap: faster than a grouped
        convolution at these few columns.
        """
        length = extended.shape[1] - taps.shape[0] + 1
        total = bias.expand(extended.shape[0], length, -1)
        for tap, weight in enumerate(taps):
            total = total + extended[:, tap : tap + length].float() * weight
        return F.layer_norm(total, norm.shape, norm, norm_bias, eps).to(extended.dtype)

    def rms(self, x: torch.Tensor, eps: float) -> torch.Tensor:
        """RMSNorm (Zhang and Sennrich, 2019) of [B, T, C], its weight left to what reads it."""
        wide = x.float()
        power = wide.square().mean(-1, keepdim=True)
        return (wide * torch.rsqrt(power + eps)).to(x.dtype)

    def norm_linear(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, eps: float
    ) -> torch.Tensor:
        """:meth:`rms` of [B, T, in] through ``weight`` [out, in]: [B, T, out]."""
        return F.linear(self.rms(x, eps), weight, bias)

    def norm_gate(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """:meth:`rms` of [B, T, in] through gate and value, ``weight`` [2 I, in], and
        :meth:`gate`: [B, T, I]."""
        return self.gate(F.linear(self.rms(x, eps), weight))

    def gate(self, both: torch.Tensor) -> torch.Tensor:
        """SwiGLU (Shazeer, 2020) of gate and value side by side: [B, T, 2 I] -> [B, T, I]."""
        gate, value = both.float().chunk(2, -1)
        return (F.silu(gate) * value).to(both.dtype)

    def turn(
        self,
        first: torch.Tensor,
        slots: torch.Tensor,
        length: int,
        ring: int,
        inverse: torch.Tensor,
        window: int,
    ) -> Turn:
        """What the layers share. ``first`` [B] int64: positions of each row's first column."""
        positions = first[:, None] + torch.arange(length, device=first.device)
        angles = positions[..., None].float() * inverse
        mask = self.mask(positions, ring, window)
        return Turn(slots, positions, angles, mask)

    def mask(self, positions: torch.Tensor, ring: int, window: int) -> torch.Tensor | None:
        """The attention mask, where the implementation wants one."""
        return window_mask(positions, ring, window).to(self.dtype)

    def attend(
        self,
        qkv: torch.Tensor,
        turn: Turn,
        keys: torch.Tensor,
        values: torch.Tensor,
        heads: Heads,
    ) -> torch.Tensor:
        """Write the new columns to their rings, then attend over the rings.

        ``qkv`` [B, T, (queries + 2 keys) * width]; ``keys``, ``values`` [slots, ring, keys, width].
        Returns [B, T, queries * width].
        """
        counts = [heads.queries, heads.keys, heads.keys]
        q, k, v = torch.split(qkv.view(*qkv.shape[:2], -1, heads.width), counts, 2)
        where = (turn.slots[:, None], turn.positions % keys.shape[1])
        keys.index_put_(where, rotate(k, turn.angles))
        values.index_put_(where, v)
        out = F.scaled_dot_product_attention(
            rotate(q, turn.angles).transpose(1, 2),
            _rings(keys, turn.slots, heads),
            _rings(values, turn.slots, heads),
            attn_mask=turn.mask,
        )
        return out.transpose(1, 2).flatten(2)

    def fold(
        self, extended: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> torch.Tensor:
        """The last convolution, to one channel: ``weight`` [kernel, C] float32, ``bias`` [1].

        [B, kernel - 1 + T, C] -> float32 [B, T]. Never rounded below float32: this is the PCM.
        """
        signal = extended.float().transpose(1, 2)
        return F.conv1d(signal, weight.t().unsqueeze(0), bias).squeeze(1)


def window_mask(positions: torch.Tensor, ring: int, window: int) -> torch.Tensor:
    """Which ring places each new column may attend to: 0, else -inf; float32 [B, 1, T, ring].

    ``positions`` [B, T] int64 of the new columns, already written. The newest is the last; the
    place ``r`` then holds the largest position not above it that is ``r`` modulo ``ring``.
    """
    newest = positions[:, -1:]
    places = torch.arange(ring, device=positions.device)
    held = (newest - (newest - places) % ring)[:, None, :]
    queries = positions[:, :, None]
    seen = (held >= 0) & (held <= queries) & (held > queries - window)
    mask = torch.zeros(seen.shape, device=positions.device)
    return mask.masked_fill(~seen, float("-inf")).unsqueeze(1)


def rotate(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Rotary positions (Su et al., 2021) on [B, T, heads, width], halves against each other."""
    cos, sin = angles.cos().unsqueeze(2), angles.sin().unsqueeze(2)
    first, second = x.float().chunk(2, -1)
    turned = torch.cat([first * cos - second * sin, second * cos + first * sin], -1)
    return turned.to(x.dtype)


def _rings(cache: torch.Tensor, slots: torch.Tensor, heads: Heads) -> torch.Tensor:
    """A batch's rings, one per query head: [B, queries, ring, width]."""
    rings = cache.index_select(0, slots).transpose(1, 2)
    return rings.repeat_interleave(heads.queries // heads.keys, 1)
