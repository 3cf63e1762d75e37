"""One codec frame per stream and step, without leaving the device.

A step is: talker position → code 0 → codes 1 .. 15 → the next input. Everything has static shapes
for a given batch size and ``span``, so one CUDA graph per such pair can hold all of it.
"""

from dataclasses import dataclass, field

import torch
from playhead.engine.models.qwen3_tts.config import TalkerConfig
from playhead.engine.models.qwen3_tts.predictor import Predictor
from playhead.engine.models.qwen3_tts.sampling import Sampling, penalise, uniforms
from playhead.engine.models.qwen3_tts.slots import SlotTable
from playhead.engine.models.qwen3_tts.talker import Talker
from torch import Tensor

ENDED = 1
"""Bit of a status: the end code was drawn; the frame does not exist."""
POISONED = 2
"""Bit of a status: the logits were no numbers; the stream cannot go on."""

TALKER_SAMPLING = Sampling(repetition_penalty=1.05)
PREDICTOR_SAMPLING = Sampling()
LEAST_CODES = 2
"""Codes before which the end cannot be drawn, as published."""


@dataclass(frozen=True, slots=True)
class Frames:
    """What a step gave, on the device: ``codes`` int64 [B, groups], ``status`` int64 [B] (bits
    ``ENDED``, ``POISONED``), ``repeats`` int64 [B]: how often code 0 repeated itself in a row."""

    codes: Tensor
    status: Tensor
    repeats: Tensor


@dataclass(frozen=True, slots=True)
class FrameLoop:
    """Talker and predictor over one slot table. Methods take slot numbers int64 [B]; rows that
    only fill up a batch name slot ``table.slots``.

    Python numbers reach the device as arguments of kernels (``masked_fill``, products), never as
    operands of ``where``, which would copy them there and wait."""

    talker: Talker
    predictor: Predictor
    table: SlotTable
    config: TalkerConfig
    rule: Sampling = TALKER_SAMPLING
    fine_rule: Sampling = PREDICTOR_SAMPLING
    _allowed: Tensor = field(init=False)

    def __post_init__(self) -> None:
        codes = torch.arange(self.config.vocab, device=self.table.device)
        allowed = (codes < self.predictor.vocab) | (codes == self.config.ids.eos)
        object.__setattr__(self, "_allowed", allowed)

    def prefill(self, rows: Tensor, lengths: Tensor, slots: Tensor) -> Frames:
        """Read prompts (see ``Talker.prefill``; ``SlotTable.begin`` comes before) and make each
        stream's first frame."""
        hidden = self.talker.prefill(rows, lengths, slots, self.table.cache)
        return self._finish(hidden, slots)

    def step(self, slots: Tensor, joining: Tensor, span: int) -> Frames:
        """The next frame of each stream. ``joining`` int64 [B]: the text id that joins its latest
        frame. Each context must be shorter than ``span``."""
        table = self.table
        text = self.talker.text_table[joining]
        positions = table.length[slots].clamp(max=span - 1)
        hidden = self.talker.step(table.carry[slots] + text, slots, positions, table.cache, span)
        table.length[slots] = positions + 1
        return self._finish(hidden, slots)

    def _finish(self, hidden: Tensor, slots: Tensor) -> Frames:
        """From a hidden state to a frame and the input after it."""
        table = self.table
        frame = table.made[slots]
        uniform = uniforms(table.seeds[slots], frame, self.predictor.groups)
        first, poisoned = self._first_code(hidden, slots, frame, uniform[:, 0])
        codes = self.predictor.fill(hidden, first, self.fine_rule, uniform)
        table.carry[slots] = self.predictor.embed(codes)
        repeats = self._count_repeats(first, slots, frame)
        at = frame.clamp(max=table.positions - 1)
        table.codes[slots, at] = codes
        table.seen[slots, first] = torch.ones_like(first, dtype=torch.bool)
        table.made[slots] = frame + 1
        ended = first == self.config.ids.eos
        return Frames(codes, ended * ENDED + poisoned * POISONED, repeats)

    def _first_code(
        self, hidden: Tensor, slots: Tensor, frame: Tensor, uniform: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Code 0 [B] and whether the logits were no numbers [B]."""
        logits = self.talker.logits(hidden)
        poisoned = ~torch.isfinite(logits).all(-1)
        logits = logits.masked_fill(poisoned[:, None], 0.0)
        logits = penalise(logits, self.table.seen[slots], self.rule.repetition_penalty)
        logits = logits.masked_fill(~self._allowed, -torch.inf)
        eos = self.config.ids.eos
        early = frame < self.table.least[slots]
        logits[:, eos] = logits[:, eos].masked_fill(early, -torch.inf)
        return self.talker.ops.draw(logits, self.rule, uniform), poisoned

    def _count_repeats(self, first: Tensor, slots: Tensor, frame: Tensor) -> Tensor:
        table = self.table
        before = table.codes[slots, (frame - 1).clamp(0, table.positions - 1), 0]
        same = (before == first) & (frame > 0)
        repeats = (table.repeats[slots] + 1) * same
        table.repeats[slots] = repeats
        return repeats
