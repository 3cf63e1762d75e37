"""The tiny talkers of talker_kit, loaded and run. Needs torch."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from playhead.engine.models.qwen3_tts.config import ModelConfig
from playhead.engine.models.qwen3_tts.embed import embed_prompts
from playhead.engine.models.qwen3_tts.frames import ENDED, FrameLoop, Frames
from playhead.engine.models.qwen3_tts.predictor import Predictor
from playhead.engine.models.qwen3_tts.prompt import (
    DESIGNED,
    Clone,
    Prompt,
    PromptBuilder,
    Style,
    Voices,
)
from playhead.engine.models.qwen3_tts.sampling import Sampling
from playhead.engine.models.qwen3_tts.slots import SlotTable
from playhead.engine.models.qwen3_tts.talker import Talker
from talker_kit import ROLE, Case, Spoken, checkpoint, model_config

POSITIONS = 128
PAD = 502
"""Of the tiny talkers: the text id beside what has no text."""
CPU = torch.device("cpu")
GREEDY = Sampling(greedy=True, repetition_penalty=1.05)


def build(
    config: ModelConfig,
    weights: int,
    *,
    slots: int = 4,
    fold: bool = True,
    rule: Sampling = GREEDY,
    fine_rule: Sampling = GREEDY,
    positions: int = POSITIONS,
    device: torch.device = CPU,
) -> FrameLoop:
    """A tiny model with random weights, the same on every device."""
    state = {name: tensor.to(device) for name, tensor in checkpoint(config, weights).items()}
    talker = Talker.load(state, config.talker, positions)
    predictor = Predictor.load(state, config.talker, talker.codec_table, fold=fold)
    table = SlotTable(config.talker, slots, positions, device=device, dtype=torch.float32)
    return FrameLoop(talker, predictor, table, config.talker, rule, fine_rule)


def style_of(spoken: Spoken, config: ModelConfig) -> Style:
    """The choice of voice that an utterance asks for."""
    clones = {}
    vector = spoken.speaker_vector()
    if vector is not None:
        clones["me"] = Clone(vector, spoken.reference_codes(), spoken.reference_ids())
    if not clones and not spoken.voice:
        # The kinds of a size share their weights here, and a batch of the reference may mix them.
        config = replace(config, kind="voice_design")
    # That small models take no instruction is a rule of the front end, not of the weights.
    config = replace(config, size="1b7")
    voice = "me" if clones else spoken.voice or DESIGNED
    return Voices(config, clones).style(voice, spoken.language, spoken.instruct_ids())


def prompt_of(spoken: Spoken, config: ModelConfig, *, full: bool) -> Prompt:
    """The utterance's prompt."""
    builder, style = PromptBuilder(config, ROLE), style_of(spoken, config)
    if full:
        return builder.full(style, spoken.text_ids())
    return builder.open(style, spoken.text_ids(), ended=True)


def speak(
    loop: FrameLoop,
    prompts: Sequence[Prompt],
    frames: int,
    *,
    seeds: Sequence[int] | None = None,
    slots: Sequence[int] | None = None,
) -> list[list[list[int]]]:
    """Codes per prompt [frames][groups], up to the end code or ``frames``, as one batch."""
    table = loop.table
    device = table.device
    where = torch.tensor(slots or [table.take() for _ in prompts], device=device)
    rows, lengths = embed_prompts(prompts, loop.talker, loop.predictor)
    numbers = torch.tensor(seeds or [0] * len(prompts), device=device)
    table.begin(where, lengths, numbers, torch.full_like(lengths, 2))
    spoken: list[list[list[int]]] = [[] for _ in prompts]
    over = [False] * len(prompts)
    made = loop.prefill(rows, lengths, where)
    for frame in range(frames):
        for index, status in enumerate(made.status.tolist()):
            over[index] = over[index] or bool(status & ENDED)
            if not over[index]:
                spoken[index].append(made.codes[index].tolist())
        texts = [[*one.trailing, PAD, PAD][min(frame, len(one.trailing))] for one in prompts]
        made = loop.step(where, torch.tensor(texts, device=device), table.positions)
    if slots is None:
        for slot in where.tolist():
            table.give_back(slot)
    return spoken


def go_on(loop: FrameLoop, slots: Sequence[int], span: int = POSITIONS) -> Frames:
    """The next frame of streams whose text has all been read."""
    where = torch.tensor(slots, device=loop.table.device)
    return loop.step(where, torch.full_like(where, PAD), span)


def load_case(case: Case, folder: Path, *, fold: bool = True) -> tuple[FrameLoop, list[Prompt]]:
    """Model and prompts of a recorded case."""
    config = model_config(case.kind, case.form, folder)
    loop = build(config, case.weights, fold=fold)
    return loop, [prompt_of(one, config, full=case.full) for one in case.spoken]
