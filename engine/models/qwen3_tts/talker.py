"""The talker: text and codes in, hidden states and logits of codebook 0 out.

Its multi-axis rotary positions carry one position on all axes, which is the plain form.
"""

from dataclasses import dataclass

import torch
from playhead.engine.models.qwen3_tts.calls import counted
from playhead.engine.models.qwen3_tts.config import TalkerConfig
from playhead.engine.models.qwen3_tts.layers import (
    PLAIN_OPS,
    LayerOps,
    Rope,
    Slotted,
    Stack,
    StackShape,
    State,
    attend_causal,
    rms_norm,
)
from playhead.engine.models.qwen3_tts.slots import KvCache
from playhead.engine.models.qwen3_tts.weights import TensorSpec, bias, dense
from torch import Tensor
from torch.nn import functional as F

PREFIX = "talker."
_ROWS_AT_ONCE = 8192


def tensors(config: TalkerConfig) -> dict[str, TensorSpec]:
    """Every tensor of the talker in a checkpoint, without the predictor's."""
    hidden, text = config.hidden, config.text_hidden
    return {
        PREFIX + "model.text_embedding.weight": embedding(config.text_vocab, text),
        PREFIX + "model.codec_embedding.weight": embedding(config.vocab, hidden),
        PREFIX + "text_projection.linear_fc1.weight": dense(text, text),
        PREFIX + "text_projection.linear_fc1.bias": bias(text),
        PREFIX + "text_projection.linear_fc2.weight": dense(hidden, text),
        PREFIX + "text_projection.linear_fc2.bias": bias(hidden),
        PREFIX + "codec_head.weight": dense(config.vocab, hidden),
        **StackShape.of(config).tensors(PREFIX + "model."),
    }


def embedding(rows: int, width: int) -> TensorSpec:
    """An embedding table; its random stand-in is as loud as the layers' output."""
    return TensorSpec((rows, width), 0.5)


def project_text(state: State, prefix: str = PREFIX) -> Tensor:
    """Every text embedding sent through the text projection: [text_vocab, hidden].

    The projection sees nothing but the token, so it is done once; the table replaces embedding
    and projection and is no larger. Computed in float32, a few thousand rows at a time.
    """
    table = state[prefix + "model.text_embedding.weight"]
    at = prefix + "text_projection.linear_fc"
    first, first_bias = state[at + "1.weight"].float(), state[at + "1.bias"].float()
    second, second_bias = state[at + "2.weight"].float(), state[at + "2.bias"].float()
    out = table.new_empty((table.shape[0], second.shape[0]))
    for start in range(0, table.shape[0], _ROWS_AT_ONCE):
        rows = table[start : start + _ROWS_AT_ONCE].float()
        inner = F.silu(F.linear(rows, first, first_bias))
        out[start : start + _ROWS_AT_ONCE] = F.linear(inner, second, second_bias).to(out.dtype)
    return out


@dataclass(frozen=True, slots=True)
class Talker:
    """Loaded weights. Hidden states are those after the final norm."""

    stack: Stack
    rope: Rope
    text_table: Tensor  # [text_vocab, hidden], projected
    codec_table: Tensor  # [vocab, hidden]
    head: Tensor  # [vocab, hidden]
    ops: LayerOps = PLAIN_OPS

    @classmethod
    def load(cls, state: State, config: TalkerConfig, positions: int) -> "Talker":
        """From checkpoint tensors, which are used as they are: on their device, in their dtype.
        Raises KeyError for a missing tensor."""
        shape = StackShape.of(config)
        codec_table = state[PREFIX + "model.codec_embedding.weight"]
        return cls(
            stack=Stack.load(state, PREFIX + "model.", shape),
            rope=Rope.build(shape, positions, codec_table.device, codec_table.dtype),
            text_table=project_text(state),
            codec_table=codec_table,
            head=state[PREFIX + "codec_head.weight"],
        )

    def prefill(
        self,
        rows: Tensor,
        lengths: Tensor,
        slots: Tensor,
        cache: KvCache,
        ops: LayerOps = PLAIN_OPS,
    ) -> Tensor:
        """Fill ``slots`` with prompts: ``rows`` [N, L, hidden] padded at the right, ``lengths``
        and ``slots`` int64 [N]. Returns the hidden state of each last real row [N, hidden].

        Padding writes keys and values too, behind the prompt, where nothing looks before a later
        step has overwritten them. ``ops``: compiled forms do not pay for shapes that vary.
        """
        hidden = self.prefill_all(rows, slots, cache, ops)
        return hidden[torch.arange(rows.shape[0], device=rows.device), lengths - 1]

    @counted("prompts")
    def prefill_all(
        self, rows: Tensor, slots: Tensor, cache: KvCache, ops: LayerOps = PLAIN_OPS
    ) -> Tensor:
        """As :meth:`prefill`, with the hidden states of all rows [N, L, hidden]."""
        shape, length = self.stack.shape, rows.shape[1]
        cos, sin = self.rope.at(torch.arange(length, device=rows.device))
        x = rows
        for index, (entry, leave) in enumerate(self.stack.layers):
            q, k, v = ops.enter(x, entry, cos, sin, shape.kv_heads, shape.eps)
            cache.keys[index, slots, :length] = k
            cache.values[index, slots, :length] = v
            x = ops.close(x, attend_causal(q, k, v), leave, shape.eps)
        return rms_norm(x, self.stack.norm, shape.eps)

    @counted("talker")
    def step(
        self, x: Tensor, slots: Tensor, positions: Tensor, cache: KvCache, span: int
    ) -> Tensor:
        """One position of each stream: ``x`` [B, hidden] at ``positions`` int64 [B] of ``slots``.
        ``span`` bounds the context that is looked at: every position is below it.
        Returns hidden states [B, hidden]."""
        shape, ops = self.stack.shape, self.ops
        cos, sin = self.rope.at(positions)
        for index, (entry, leave) in enumerate(self.stack.layers):
            memory = Slotted(cache.keys[index], cache.values[index], slots, positions, span)
            qkv = ops.project(x, entry, shape.eps)
            attended = ops.over_slots(qkv, entry, cos, sin, memory, shape.eps)
            x = ops.close(x, attended, leave, shape.eps)
        return ops.norm(x, self.stack.norm, shape.eps)

    def logits(self, hidden: Tensor) -> Tensor:
        """Float32 logits of codebook 0 and the special codes [B, vocab]."""
        return F.linear(hidden, self.head).float()
