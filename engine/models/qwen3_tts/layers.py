"""Decoder layers of the Qwen3 form, over keys and values that live in slots.

RMSNorm before attention and MLP, grouped-query attention with RMSNorm on every query and key head,
rotary positions in the rotate-half form, SwiGLU, no attention bias (Qwen3 technical report,
arXiv 2505.09388, section 2). Weights are plain tensors and every function has static shapes and
never waits for the device, so that callers can put a whole step into one CUDA graph.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from playhead.engine.models.qwen3_tts.config import PredictorConfig, TalkerConfig
from playhead.engine.models.qwen3_tts.sampling import Sampling, draw
from playhead.engine.models.qwen3_tts.weights import TensorSpec, attention, dense, scale
from torch import Tensor
from torch.nn import functional as F

State = Mapping[str, Tensor]
"""Tensors by their name in a checkpoint."""


@dataclass(frozen=True, slots=True)
class StackShape:
    """Sizes of a stack of decoder layers. ``theta``: base of the rotary frequencies."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    eps: float
    theta: float

    @classmethod
    def of(cls, config: TalkerConfig | PredictorConfig) -> "StackShape":
        """The layers of a talker or predictor."""
        return cls(
            config.layers,
            config.hidden,
            config.heads,
            config.kv_heads,
            config.head_dim,
            config.intermediate,
            config.norm_eps,
            config.rope_theta,
        )

    @property
    def q_width(self) -> int:
        """Width of all query heads together; it may exceed ``hidden``."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all key (or value) heads together."""
        return self.kv_heads * self.head_dim

    def tensors(self, prefix: str) -> dict[str, TensorSpec]:
        """Every tensor of the stack in a checkpoint."""
        out: dict[str, TensorSpec] = {}
        for layer in range(self.layers):
            name = f"{prefix}layers.{layer}"
            out |= attention(name, self.hidden, self.q_width, self.kv_width)
            at = f"{name}."
            out[at + "self_attn.q_norm.weight"] = scale(self.head_dim)
            out[at + "self_attn.k_norm.weight"] = scale(self.head_dim)
            out[at + "mlp.gate_proj.weight"] = dense(self.intermediate, self.hidden)
            out[at + "mlp.up_proj.weight"] = dense(self.intermediate, self.hidden)
            out[at + "mlp.down_proj.weight"] = dense(self.hidden, self.intermediate)
            out[at + "input_layernorm.weight"] = scale(self.hidden)
            out[at + "post_attention_layernorm.weight"] = scale(self.hidden)
        out[prefix + "norm.weight"] = scale(self.hidden)
        return out


class Entry(NamedTuple):
    """Weights before attention; the projections are one matrix."""

    norm: Tensor  # [hidden]
    qkv: Tensor  # [q_width + 2 * kv_width, hidden]
    q_norm: Tensor  # [head_dim]
    k_norm: Tensor  # [head_dim]


class Exit(NamedTuple):
    """Weights after attention; both inner projections of the MLP are one matrix."""

    out: Tensor  # [hidden, q_width]
    norm: Tensor  # [hidden]
    gate_up: Tensor  # [2 * intermediate, hidden]
    down: Tensor  # [hidden, intermediate]


class Layer(NamedTuple):
    """Weights of one layer."""

    entry: Entry
    exit: Exit


@dataclass(frozen=True, slots=True)
class Rope:
    """Cosines and sines [positions, head_dim] of the rotate-half form, in the model's dtype."""

    cos: Tensor
    sin: Tensor

    @classmethod
    def build(
        cls, shape: StackShape, positions: int, device: torch.device, dtype: torch.dtype
    ) -> "Rope":
        """Angles are computed in float32 whatever ``dtype`` is."""
        steps = torch.arange(0, shape.head_dim, 2, dtype=torch.float32, device=device)
        frequencies = 1.0 / (shape.theta ** (steps / shape.head_dim))
        angles = torch.arange(positions, dtype=torch.float32, device=device)[:, None] * frequencies
        angles = torch.cat((angles, angles), dim=-1)
        return cls(angles.cos().to(dtype), angles.sin().to(dtype))

    def at(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Rows for integer ``positions`` of any shape, with an axis for the heads added."""
        return self.cos[positions].unsqueeze(-2), self.sin[positions].unsqueeze(-2)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Root mean square norm over the last axis, accumulated in float32 (arXiv 1910.07467)."""
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return weight * wide.to(x.dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding (arXiv 2104.09864) of heads [..., heads, head_dim]."""
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * cos + turned * sin


def read_out(x: Tensor, gain: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Norm and product: ``x`` [..., hidden], ``weight`` [width, hidden] to [..., width]."""
    return F.linear(rms_norm(x, gain, eps), weight)


def project(x: Tensor, weights: Entry, eps: float) -> Tensor:
    """Norm and projections: ``x`` [..., hidden] to [..., q_width + 2 * kv_width]."""
    return read_out(x, weights.norm, weights.qkv, eps)


def turn_heads(
    qkv: Tensor, weights: Entry, cos: Tensor, sin: Tensor, kv_heads: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Norms of heads and rotation: what ``project`` gives to queries [..., heads, head_dim], keys
    and values [..., kv_heads, head_dim]; ``cos`` and ``sin`` [..., 1, head_dim]."""
    heads = qkv.unflatten(-1, (-1, weights.q_norm.shape[0]))
    queries = heads.shape[-2] - 2 * kv_heads
    q, k, v = heads.split((queries, kv_heads, kv_heads), dim=-2)
    return (
        rotate(rms_norm(q, weights.q_norm, eps), cos, sin),
        rotate(rms_norm(k, weights.k_norm, eps), cos, sin),
        v,
    )


def enter_layer(
    x: Tensor, weights: Entry, cos: Tensor, sin: Tensor, kv_heads: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Everything before attention: ``turn_heads`` of ``project``."""
    return turn_heads(project(x, weights, eps), weights, cos, sin, kv_heads, eps)


def close_layer(x: Tensor, attended: Tensor, weights: Exit, eps: float) -> Tensor:
    """Everything after attention: output projection, both residuals, and the MLP between."""
    out, norm, gate_up, down = weights
    x = x + F.linear(attended, out)
    gate, up = F.linear(rms_norm(x, norm, eps), gate_up).chunk(2, dim=-1)
    return x + F.linear(F.silu(gate) * up, down)


def attend_causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Grouped-query attention of positions to themselves and those before: ``q`` [B, T, heads,
    head_dim], ``k`` and ``v`` [B, T, kv_heads, head_dim] to [B, T, heads * head_dim]."""
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return out.transpose(1, 2).flatten(2)


def attend_last(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attention of one position: ``q`` [B, heads, head_dim], ``k`` and ``v`` [B, S, kv_heads,
    head_dim], ``mask`` bool [B, S], true where a key may be seen. Returns [B, heads * head_dim].

    The queries that share a key head stand as its query positions, which every attention kernel
    takes; grouped heads with a mask few do.
    """
    groups = q.unflatten(1, (k.shape[2], -1))
    seen = None if mask is None else mask[:, None, None, :].expand(-1, *groups.shape[1:3], -1)
    out = F.scaled_dot_product_attention(
        groups, k.transpose(1, 2), v.transpose(1, 2), attn_mask=seen
    )
    return out.flatten(1)


class Slotted(NamedTuple):
    """Keys and values of a layer in slots: those of stream b are in ``slots[b]`` up to
    ``positions[b]``, where its newest belong. Every position is below ``span``."""

    keys: Tensor  # [slots, length, kv_heads, head_dim]
    values: Tensor
    slots: Tensor  # int64 [B]
    positions: Tensor  # int64 [B]
    span: int


class Few(NamedTuple):
    """Keys and values of a layer for a batch that goes in step: the newest belong ``at`` the same
    position for all."""

    keys: Tensor  # [B, length, kv_heads, head_dim]
    values: Tensor
    at: int


def attend_slots(
    qkv: Tensor, weights: Entry, cos: Tensor, sin: Tensor, memory: Slotted, eps: float
) -> Tensor:
    """Remember the newest position of each stream and attend to all up to it: ``qkv`` [B, q_width +
    2 * kv_width] as ``project`` gives it, to [B, q_width]."""
    keys, values, slots, positions, span = memory
    q, k, v = turn_heads(qkv, weights, cos, sin, keys.shape[2], eps)
    keys[slots, positions] = k
    values[slots, positions] = v
    mask = torch.arange(span, device=q.device) <= positions[:, None]
    return attend_last(q, keys[slots, :span], values[slots, :span], mask)


def attend_few(
    qkv: Tensor, weights: Entry, cos: Tensor, sin: Tensor, memory: Few, eps: float
) -> Tensor:
    """As ``attend_slots``, over the few positions of a batch that goes in step."""
    keys, values, at = memory
    q, k, v = turn_heads(qkv, weights, cos, sin, keys.shape[2], eps)
    keys[:, at] = k
    values[:, at] = v
    return attend_last(q, keys[:, : at + 1], values[:, : at + 1])


@dataclass(frozen=True, slots=True)
class LayerOps:
    """Who does the work of a layer, and of drawing codes. The fields may be replaced by compiled or
    hand-written forms. Of a step: ``project``, then ``over_slots`` or ``over_few``, then ``close``;
    of prompts: ``enter``, attention, ``close``."""

    enter: Callable[[Tensor, Entry, Tensor, Tensor, int, float], tuple[Tensor, Tensor, Tensor]]
    close: Callable[[Tensor, Tensor, Exit, float], Tensor]
    project: Callable[[Tensor, Entry, float], Tensor] = project
    norm: Callable[[Tensor, Tensor, float], Tensor] = rms_norm
    over_slots: Callable[[Tensor, Entry, Tensor, Tensor, Slotted, float], Tensor] = attend_slots
    over_few: Callable[[Tensor, Entry, Tensor, Tensor, Few, float], Tensor] = attend_few
    read_out: Callable[[Tensor, Tensor, Tensor, float], Tensor] = read_out
    draw: Callable[[Tensor, Sampling, Tensor], Tensor] = draw


PLAIN_OPS = LayerOps(enter_layer, close_layer)


@dataclass(frozen=True, slots=True)
class Stack:
    """Weights of a stack of layers and of the norm after it."""

    shape: StackShape
    layers: tuple[Layer, ...]
    norm: Tensor  # [hidden]

    @classmethod
    def load(cls, state: State, prefix: str, shape: StackShape) -> "Stack":
        """Take the tensors named ``prefix`` + ``layers.N…`` and ``prefix`` + ``norm.weight``.
        Raises KeyError for one that is missing."""
        layers = tuple(_load_layer(state, f"{prefix}layers.{i}.") for i in range(shape.layers))
        return cls(shape, layers, state[prefix + "norm.weight"])


def _load_layer(state: State, at: str) -> Layer:
    attention = [state[f"{at}self_attn.{name}_proj.weight"] for name in ("q", "k", "v")]
    mlp = [state[f"{at}mlp.{name}_proj.weight"] for name in ("gate", "up")]
    entry = Entry(
        norm=state[at + "input_layernorm.weight"],
        qkv=torch.cat(attention),
        q_norm=state[at + "self_attn.q_norm.weight"],
        k_norm=state[at + "self_attn.k_norm.weight"],
    )
    leave = Exit(
        out=state[at + "self_attn.o_proj.weight"],
        norm=state[at + "post_attention_layernorm.weight"],
        gate_up=torch.cat(mlp),
        down=state[at + "mlp.down_proj.weight"],
    )
    return Layer(entry, leave)
