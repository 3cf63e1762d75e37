"""Decoder layers of the Qwen3 form, over keys and values that live in slots.

RMSNorm before attention and MLP, grouped-query attention with RMSNorm on every query and key head,
rotary positions in the rotate-half form, SwiGLU, no attention bias (Qwen3 technical report,
arXiv 2505.09388, section 2). Weights are plain tensors and every function has static shapes and
never waits for the device, so that callers can put a whole step into one CUDA graph.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from playhead.engine.models.qwen3_tts.weights import TensorSpec, dense, scale
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
            at = f"{prefix}layers.{layer}."
            out[at + "self_attn.q_proj.weight"] = dense(self.q_width, self.hidden)
            out[at + "self_attn.k_proj.weight"] = dense(self.kv_width, self.hidden)
            out[at + "self_attn.v_proj.weight"] = dense(self.kv_width, self.hidden)
            out[at + "self_attn.o_proj.weight"] = dense(self.hidden, self.q_width)
            out[at + "self_attn.q_norm.weight"] = scale(self.head_dim)
            out[at + "self_attn.k_norm.weight"] = scale(self.head_dim)
            out[at + "mlp.gate_proj.weight"] = dense(self.intermediate, self.hidden)
            out[at + "mlp.up_proj.weight"] = dense(self.intermediate, self.hidden)
            out[at + "mlp.down_proj.weight"] = dense(self.hidden, self.intermediate)
            out[at + "input_layernorm.weight"] = scale(self.hidden)
            out[at + "post_attention_layernorm.weight"] = scale(self.hidden)
        out[prefix + "norm.weight"] = scale(self.hidden)
        return out


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights of one layer; projections that read the same input are one matrix."""

    qkv: Tensor  # [q_width + 2 * kv_width, hidden]
    out: Tensor  # [hidden, q_width]
    q_norm: Tensor  # [head_dim]
    k_norm: Tensor  # [head_dim]
    gate_up: Tensor  # [2 * intermediate, hidden]
    down: Tensor  # [hidden, intermediate]
    input_norm: Tensor  # [hidden]
    post_norm: Tensor  # [hidden]


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


def project_qkv(
    x: Tensor, layer: Layer, shape: StackShape, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Normed input [..., hidden] to rotated queries [..., heads, head_dim], keys and values."""
    q, k, v = F.linear(x, layer.qkv).split((shape.q_width, shape.kv_width, shape.kv_width), dim=-1)
    lead = x.shape[:-1]
    q = rms_norm(q.view(*lead, shape.heads, shape.head_dim), layer.q_norm, shape.eps)
    k = rms_norm(k.view(*lead, shape.kv_heads, shape.head_dim), layer.k_norm, shape.eps)
    v = v.view(*lead, shape.kv_heads, shape.head_dim)
    return rotate(q, cos, sin), rotate(k, cos, sin), v


def close_layer(x: Tensor, attended: Tensor, layer: Layer, eps: float) -> Tensor:
    """Everything after attention: output projection, both residuals, and the MLP between."""
    x = x + F.linear(attended, layer.out)
    gate, up = F.linear(rms_norm(x, layer.post_norm, eps), layer.gate_up).chunk(2, dim=-1)
    return x + F.linear(F.silu(gate) * up, layer.down)


def attend(q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None, causal: bool) -> Tensor:
    """Grouped-query attention. ``q`` [B, T, heads, head_dim], ``k`` and ``v`` [B, S, kv_heads,
    head_dim], ``mask`` bool, broadcastable to [B, heads, T, S], true where a key may be seen.
    Returns [B, T, heads * head_dim]."""
    out = F.scaled_dot_product_attention(
        q.transpose(1, 2),
        k.transpose(1, 2),
        v.transpose(1, 2),
        attn_mask=mask,
        is_causal=causal,
        enable_gqa=True,
    )
    return out.transpose(1, 2).flatten(2)


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
    return Layer(
        qkv=torch.cat(attention),
        out=state[at + "self_attn.o_proj.weight"],
        q_norm=state[at + "self_attn.q_norm.weight"],
        k_norm=state[at + "self_attn.k_norm.weight"],
        gate_up=torch.cat(mlp),
        down=state[at + "mlp.down_proj.weight"],
        input_norm=state[at + "input_layernorm.weight"],
        post_norm=state[at + "post_attention_layernorm.weight"],
    )
