"""The codec decoder's transformer: sliding-window attention over a ring of keys per stream.

Pre-norm layers with RMSNorm, rotary positions and SwiGLU. The learned scale of each branch is
folded into the branch's last weight, that of a norm into the weight behind it.
"""

import torch
from playhead.engine.models.qwen3_tts.codec_layers import linear
from playhead.engine.models.qwen3_tts.codec_ops import Heads, TorchOps, Turn
from playhead.engine.models.qwen3_tts.codec_state import SlotArena
from playhead.engine.models.qwen3_tts.config import CodecDecoderConfig
from playhead.engine.models.qwen3_tts.weights import Tensors
from torch import nn


class Layer(nn.Module):
    """Attention and feed-forward, each with its norm before and added to its input."""

    qkv: torch.Tensor
    gate_up: torch.Tensor
    out: torch.Tensor
    down: torch.Tensor

    def __init__(
        self, tensors: Tensors, name: str, config: CodecDecoderConfig, ops: TorchOps
    ) -> None:
        super().__init__()
        self.ops, self.heads, self.eps = ops, Heads.of(config), config.norm_eps
        norms = (f"{name}.{part}_layernorm.weight" for part in ("input", "post_attention"))
        norm, inner_norm = (tensors[at][None, :] for at in norms)
        qkv = [tensors[f"{name}.self_attn.{part}_proj.weight"] for part in "qkv"]
        self.qkv = nn.Buffer((torch.cat(qkv) * norm).to(ops.dtype))
        gates = [tensors[f"{name}.mlp.{part}_proj.weight"] for part in ("gate", "up")]
        self.gate_up = nn.Buffer((torch.cat(gates) * inner_norm).to(ops.dtype))
        out = tensors[f"{name}.self_attn.o_proj.weight"]
        out = out * tensors[f"{name}.self_attn_layer_scale.scale"][:, None]
        self.out = nn.Buffer(out.to(ops.dtype))
        down = tensors[f"{name}.mlp.down_proj.weight"]
        down = down * tensors[f"{name}.mlp_layer_scale.scale"][:, None]
        self.down = nn.Buffer(down.to(ops.dtype))

    def forward(
        self, x: torch.Tensor, turn: Turn, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """[B, T, hidden], overwritten; writes the new columns' keys and values to their rings."""
        qkv = self.ops.norm_linear(x, self.qkv, None, self.eps)
        seen = self.ops.attend(qkv, turn, keys, values, self.heads)
        x = self.ops.accumulate(x, seen, self.out)
        inner = self.ops.norm_gate(x, self.gate_up, self.eps)
        return self.ops.accumulate(x, inner, self.down)


class Transformer(nn.Module):
    """All layers between their two projections."""

    inverse: torch.Tensor
    leave: torch.Tensor
    leave_bias: torch.Tensor

    def __init__(
        self, tensors: Tensors, name: str, config: CodecDecoderConfig, ops: TorchOps
    ) -> None:
        super().__init__()
        self.ops, self.window, self.eps = ops, config.window, config.norm_eps
        self.enter = linear(tensors, f"{name}.input_proj", ops.dtype)
        leave = tensors[f"{name}.output_proj.weight"] * tensors[f"{name}.norm.weight"][None, :]
        self.leave = nn.Buffer(leave.to(ops.dtype))
        self.leave_bias = nn.Buffer(tensors[f"{name}.output_proj.bias"].to(ops.dtype))
        self.layers = nn.ModuleList(
            Layer(tensors, f"{name}.layers.{index}", config, ops) for index in range(config.layers)
        )
        device = tensors[f"{name}.norm.weight"].device
        even = torch.arange(0, config.head_dim, 2, device=device, dtype=torch.float32)
        self.inverse = nn.Buffer(1.0 / config.rope_theta ** (even / config.head_dim))

    def forward(
        self, x: torch.Tensor, first: torch.Tensor, slots: torch.Tensor, arena: SlotArena
    ) -> torch.Tensor:
        """[B, T, latent] -> the same. ``first`` [B]: position of each row's first frame."""
        turn = self.ops.turn(first, slots, x.shape[1], arena.ring, self.inverse, self.window)
        x = self.enter(x)
        for layer, keys, values in zip(self.layers, arena.keys, arena.values, strict=True):
            x = layer(x, turn, keys, values)
        return self.ops.norm_linear(x, self.leave, self.leave_bias, self.eps)
