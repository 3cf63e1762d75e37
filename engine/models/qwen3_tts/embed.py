"""Prompt rows to vectors."""

from collections.abc import Sequence

import torch
from playhead.engine.models.qwen3_tts.predictor import Predictor
from playhead.engine.models.qwen3_tts.prompt import NONE, Prompt
from playhead.engine.models.qwen3_tts.talker import Talker
from torch import Tensor


def embed_prompts(
    prompts: Sequence[Prompt], talker: Talker, predictor: Predictor
) -> tuple[Tensor, Tensor]:
    """Vectors of several prompts [N, L, hidden], padded at the right with zeros, and their
    lengths int64 [N], on the weights' device. Never waits for the device."""
    device = talker.codec_table.device
    longest = max(len(prompt.rows) for prompt in prompts)
    padded = [[*prompt.rows, *[(NONE, NONE)] * (longest - len(prompt.rows))] for prompt in prompts]
    ids = torch.tensor(padded, dtype=torch.int64).to(device, non_blocking=True)
    rows = look_up(talker.text_table, ids[..., 0]) + look_up(talker.codec_table, ids[..., 1])
    for index, prompt in enumerate(prompts):
        _add_clone(rows[index], prompt, predictor)
    lengths = torch.tensor([len(prompt.rows) for prompt in prompts], dtype=torch.int64)
    return rows, lengths.to(device, non_blocking=True)


def look_up(table: Tensor, ids: Tensor) -> Tensor:
    """Rows of ``table``, and zeros for ``NONE``."""
    return table[ids.clamp(min=0)] * (ids != NONE).unsqueeze(-1).to(table.dtype)


def _add_clone(rows: Tensor, prompt: Prompt, predictor: Predictor) -> None:
    clone = prompt.clone
    if clone is None:
        return
    rows[prompt.vector_at] += torch.from_numpy(clone.vector).to(rows, non_blocking=True)
    if clone.codes is not None:
        codes = torch.from_numpy(clone.codes).to(rows.device, non_blocking=True)
        frames = predictor.embed(codes)
        rows[prompt.codes_at : prompt.codes_at + len(frames)] += frames
