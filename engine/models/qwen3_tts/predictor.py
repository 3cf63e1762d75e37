"""The code predictor: codes 1 .. 15 of a frame from the talker's hidden state and code 0.

The first pass takes two positions (hidden state, code 0), each further pass one code; keys and
values live for one frame.
"""

from dataclasses import dataclass

import torch
from playhead.engine.models.qwen3_tts.calls import counted
from playhead.engine.models.qwen3_tts.config import TalkerConfig
from playhead.engine.models.qwen3_tts.layers import (
    PLAIN_OPS,
    Few,
    LayerOps,
    Rope,
    Stack,
    StackShape,
    State,
)
from playhead.engine.models.qwen3_tts.sampling import Sampling
from playhead.engine.models.qwen3_tts.weights import TensorSpec, bias, dense
from torch import Tensor
from torch.nn import functional as F

PREFIX = "talker.code_predictor."
PROJECTION = PREFIX + "small_to_mtp_projection."


def tensors(config: TalkerConfig) -> dict[str, TensorSpec]:
    """Every tensor of the predictor in a checkpoint."""
    own = config.predictor
    out = StackShape.of(own).tensors(PREFIX + "model.")
    for group in range(own.code_groups - 1):
        table = TensorSpec((own.vocab, config.hidden), 0.5)
        out[f"{PREFIX}model.codec_embedding.{group}.weight"] = table
        out[f"{PREFIX}lm_head.{group}.weight"] = dense(own.vocab, own.hidden)
    if own.hidden != config.hidden:
        out[PROJECTION + "weight"] = dense(own.hidden, config.hidden)
        out[PROJECTION + "bias"] = bias(own.hidden)
    return out


@dataclass(frozen=True, slots=True)
class Projection:
    """The linear map from the talker's width to the predictor's."""

    weight: Tensor  # [predictor hidden, talker hidden]
    bias: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def fold(self, table: Tensor) -> Tensor:
        """``table`` [n, talker hidden] as the predictor sees it, computed in float32."""
        wide = F.linear(table.float(), self.weight.float(), self.bias.float())
        return wide.to(table.dtype)


@dataclass(frozen=True, slots=True)
class Predictor:
    """Loaded weights. ``groups`` codes make a frame, code 0 among them.

    ``inputs`` and ``first_inputs`` are what the layers read for a code: the projected tables when
    the projection was folded into them, else the tables of the talker's width (then ``project``
    is applied at every pass).
    """

    stack: Stack
    rope: Rope
    groups: int
    vocab: int
    tables: Tensor  # [(groups - 1) * vocab, talker hidden]: embeddings of codes 1 ..
    first_table: Tensor  # [talker vocab, talker hidden]: embeddings of code 0
    heads: Tensor  # [groups - 1, vocab, hidden]
    projection: Projection | None
    folded: bool
    inputs: Tensor
    first_inputs: Tensor
    ops: LayerOps = PLAIN_OPS

    @classmethod
    def load(
        cls, state: State, config: TalkerConfig, first_table: Tensor, *, fold: bool = True
    ) -> "Predictor":
        """From checkpoint tensors, used as they are; ``first_table`` is the talker's embedding of
        codes [talker vocab, talker hidden]. Raises KeyError for a missing tensor."""
        own = config.predictor
        shape, groups = StackShape.of(own), range(own.code_groups - 1)
        tables = torch.cat([state[f"{PREFIX}model.codec_embedding.{i}.weight"] for i in groups])
        projection = None
        if own.hidden != config.hidden:
            projection = Projection(state[PROJECTION + "weight"], state[PROJECTION + "bias"])
        folded = fold and projection is not None
        return cls(
            stack=Stack.load(state, PREFIX + "model.", shape),
            rope=Rope.build(shape, own.code_groups, tables.device, tables.dtype),
            groups=own.code_groups,
            vocab=own.vocab,
            tables=tables,
            first_table=first_table,
            heads=torch.stack([state[f"{PREFIX}lm_head.{i}.weight"] for i in groups]),
            projection=projection,
            folded=folded,
            inputs=projection.fold(tables) if projection and folded else tables,
            first_inputs=projection.fold(first_table) if projection and folded else first_table,
        )

    @counted("predictor")
    def fill(self, hidden: Tensor, first: Tensor, rule: Sampling, uniform: Tensor) -> Tensor:
        """Codes of a frame, int64 [B, groups], from the talker's ``hidden`` [B, talker hidden]
        and code 0 ``first`` [B]. ``uniform`` [B, groups]: column g decides code g."""
        batch, stack, shape = hidden.shape[0], self.stack, self.stack.shape
        kv = (shape.layers, 2, batch, self.groups, shape.kv_heads, shape.head_dim)
        memory = hidden.new_empty(kv)
        start = hidden if self.projection is None else self.projection(hidden)
        x = torch.stack((start, self._input(self.first_inputs[first])), dim=1)
        tables = self.inputs.unflatten(0, (-1, self.vocab))
        codes, at = [first], 0
        for group in range(1, self.groups):
            last = self._pass(x, at, memory)
            logits = self.ops.read_out(last, stack.norm, self.heads[group - 1], shape.eps)
            code = self.ops.draw(logits, rule, uniform[:, group])
            codes.append(code)
            at += x.shape[1]
            if group < self.groups - 1:
                x = self._input(tables[group - 1][code])[:, None]
        return torch.stack(codes, dim=1)

    def embed(self, codes: Tensor) -> Tensor:
        """Sum of the embeddings of a frame's codes: [B, talker hidden] from int64 [..., groups].
        Leading axes are kept."""
        offsets = torch.arange(self.groups - 1, device=codes.device) * self.vocab
        rest = self.tables[codes[..., 1:] + offsets]
        return torch.cat((self.first_table[codes[..., :1]], rest), dim=-2).sum(-2)

    def _input(self, rows: Tensor) -> Tensor:
        if self.projection is None or self.folded:
            return rows
        return self.projection(rows)

    def _pass(self, x: Tensor, at: int, memory: Tensor) -> Tensor:
        """Positions ``at`` .. of ``x`` [B, T, hidden]; what the last norm takes of the last of them
        [B, hidden]."""
        shape, ops = self.stack.shape, self.ops
        for index, (entry, leave) in enumerate(self.stack.layers):
            qkv = ops.project(x, entry, shape.eps)
            attended = []
            for step in range(x.shape[1]):
                cos, sin = self.rope.cos[at + step, None], self.rope.sin[at + step, None]
                memory_at = Few(memory[index, 0], memory[index, 1], at + step)
                attended.append(ops.over_few(qkv[:, step], entry, cos, sin, memory_at, shape.eps))
            whole = torch.stack(attended, dim=1) if len(attended) > 1 else attended[0][:, None]
            x = ops.close(x, whole, leave, shape.eps)
        return x[:, -1]
