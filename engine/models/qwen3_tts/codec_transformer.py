"""The codec decoder's transformer: sliding-window attention over a ring of keys per stream.

Pre-norm layers with RMSNorm (Zhang and Sennrich, 2019), rotary positions (Su et al., 2021), SwiGLU
(Shazeer, 2020). The learned scale of each branch is folded into the branch's last weight.
"""

from dataclasses import dataclass

import torch
from playhead.engine.models.qwen3_tts.codec_layers import dense_layer, linear
from playhead.engine.models.qwen3_tts.codec_state import SlotArena
from playhead.engine.models.qwen3_tts.config import CodecDecoderConfig
from playhead.engine.models.qwen3_tts.weights import Tensors
from torch import nn
from torch.nn import functional as F


@dataclass(frozen=True, slots=True)
class Turn:
    """What all layers of one decode share.

    ``slots`` [B] int64; ``ring`` [B, T] int64: where the new columns go; ``cos``, ``sin``
    [B, T, 1, head_dim]; ``mask`` [B, 1, T, ring]: 0 where a column may attend, else -inf.
    """

    slots: torch.Tensor
    ring: torch.Tensor
    cos: torch.Tensor
    sin: torch.Tensor
    mask: torch.Tensor


class RmsNorm(nn.Module):
    """RMSNorm, computed in float32."""

    weight: torch.Tensor

    def __init__(self, weight: torch.Tensor, eps: float) -> None:
        super().__init__()
        self.weight = nn.Buffer(weight.float())
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[..., C] -> [..., C]."""
        wide = x.float()
        power = wide.square().mean(-1, keepdim=True)
        return (wide * torch.rsqrt(power + self.eps) * self.weight).to(x.dtype)


class Layer(nn.Module):
    """Attention and feed-forward, each with its norm before and added to its input."""

    def __init__(
        self, tensors: Tensors, name: str, config: CodecDecoderConfig, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads = config.heads, config.kv_heads
        self.head_dim = config.head_dim
        norms = (f"{name}.{part}_layernorm.weight" for part in ("input", "post_attention"))
        self.norm, self.inner_norm = (RmsNorm(tensors[at], config.norm_eps) for at in norms)
        qkv = [tensors[f"{name}.self_attn.{part}_proj.weight"] for part in "qkv"]
        self.qkv = dense_layer(torch.cat(qkv).to(dtype))
        gain = tensors[f"{name}.self_attn_layer_scale.scale"]
        self.out = linear(tensors, f"{name}.self_attn.o_proj", dtype, gain)
        gates = [tensors[f"{name}.mlp.{part}_proj.weight"] for part in ("gate", "up")]
        self.gate_up = dense_layer(torch.cat(gates).to(dtype))
        gain = tensors[f"{name}.mlp_layer_scale.scale"]
        self.down = linear(tensors, f"{name}.mlp.down_proj", dtype, gain)

    def forward(
        self, x: torch.Tensor, turn: Turn, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """[B, T, hidden] -> the same; writes the new columns' keys and values to their rings."""
        x = x + self.out(self._attend(self.norm(x), turn, keys, values))
        gate, up = self.gate_up(self.inner_norm(x)).chunk(2, -1)
        added: torch.Tensor = self.down(F.silu(gate) * up)
        return x + added

    def _attend(
        self, x: torch.Tensor, turn: Turn, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        counts = [self.heads, self.kv_heads, self.kv_heads]
        q, k, v = self.qkv(x).unflatten(-1, (-1, self.head_dim)).split(counts, 2)
        where = (turn.slots[:, None], turn.ring)
        keys.index_put_(where, rotate(k, turn))
        values.index_put_(where, v)
        out = F.scaled_dot_product_attention(
            rotate(q, turn).transpose(1, 2),
            self._ring(keys, turn.slots),
            self._ring(values, turn.slots),
            attn_mask=turn.mask,
        )
        return out.transpose(1, 2).flatten(2)

    def _ring(self, cache: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """A batch's rings, one per query head: [B, heads, ring, head_dim]."""
        rings = cache.index_select(0, slots).transpose(1, 2)
        return rings.repeat_interleave(self.heads // self.kv_heads, 1)


class Transformer(nn.Module):
    """All layers between their two projections."""

    inverse: torch.Tensor

    def __init__(
        self, tensors: Tensors, name: str, config: CodecDecoderConfig, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.window = config.window
        self.enter = linear(tensors, f"{name}.input_proj", dtype)
        self.leave = linear(tensors, f"{name}.output_proj", dtype)
        self.norm = RmsNorm(tensors[f"{name}.norm.weight"], config.norm_eps)
        self.layers = nn.ModuleList(
            Layer(tensors, f"{name}.layers.{index}", config, dtype)
            for index in range(config.layers)
        )
        device = tensors[f"{name}.norm.weight"].device
        even = torch.arange(0, config.head_dim, 2, device=device, dtype=torch.float32)
        self.inverse = nn.Buffer(1.0 / config.rope_theta ** (even / config.head_dim))

    def forward(
        self, x: torch.Tensor, positions: torch.Tensor, slots: torch.Tensor, arena: SlotArena
    ) -> torch.Tensor:
        """[B, T, latent] -> the same. ``positions`` [B]: each row's first frame."""
        turn = self._turn(positions, slots, x.shape[1], arena.ring, x.dtype)
        x = self.enter(x)
        for layer, keys, values in zip(self.layers, arena.keys, arena.values, strict=True):
            x = layer(x, turn, keys, values)
        left: torch.Tensor = self.leave(self.norm(x))
        return left

    def _turn(
        self,
        first: torch.Tensor,
        slots: torch.Tensor,
        length: int,
        ring: int,
        dtype: torch.dtype,
    ) -> Turn:
        steps = torch.arange(length, device=first.device)
        positions = first[:, None] + steps
        angles = positions[..., None].float() * self.inverse
        angles = torch.cat([angles, angles], -1).unsqueeze(2)
        mask = window_mask(positions, ring, self.window).to(dtype)
        return Turn(slots, positions % ring, angles.cos(), angles.sin(), mask)


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


def rotate(x: torch.Tensor, turn: Turn) -> torch.Tensor:
    """Rotary positions on [B, T, heads, head_dim], halves rotated against each other."""
    first, second = x.float().chunk(2, -1)
    turned = torch.cat([-second, first], -1)
    return (x.float() * turn.cos + turned * turn.sin).to(x.dtype)
