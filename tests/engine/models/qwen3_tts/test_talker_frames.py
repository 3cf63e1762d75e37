# ruff: noqa: E402 - what follows needs torch
"""Batches, slots and rules of the frame loop; the numbers themselves are in test_talker_parity."""

from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

import talker_lab as lab
from playhead.engine.models.qwen3_tts.frames import ENDED, POISONED, FrameLoop
from playhead.engine.models.qwen3_tts.layers import (
    Entry,
    Slotted,
    attend_causal,
    attend_last,
    attend_slots,
    turn_heads,
)
from playhead.engine.models.qwen3_tts.sampling import Sampling
from talker_kit import ERIC, ONE_TOKEN, RYAN, Spoken, model_config

SAMPLED = Sampling(repetition_penalty=1.05)
SPOKEN = (RYAN, ERIC, ONE_TOKEN)
SEEDS = (5, 6, 7)
FRAMES = 10
EOS = 2150


@pytest.fixture(autouse=True)
def _inference() -> Iterator[None]:
    with torch.inference_mode():
        yield


def sampled(folder: Path, slots: int = 4) -> FrameLoop:
    config = model_config("custom_voice", "1b7", folder)
    return lab.build(config, 11, slots=slots, rule=SAMPLED, fine_rule=Sampling())


def say(loop: FrameLoop, folder: Path, order: tuple[int, ...], full: bool) -> list[list[list[int]]]:
    """Codes of the utterances of ``order``, spoken as one batch."""
    config = model_config("custom_voice", "1b7", folder)
    prompts = [lab.prompt_of(SPOKEN[index], config, full=full) for index in order]
    return lab.speak(loop, prompts, FRAMES, seeds=[SEEDS[index] for index in order])


@pytest.mark.parametrize("full", [True, False], ids=["full", "open"])
def test_codes_do_not_depend_on_batch_mates_or_slots(tmp_path: Path, full: bool) -> None:
    loop = sampled(tmp_path)
    alone = [say(loop, tmp_path, (index,), full)[0] for index in range(3)]
    assert alone[0] != alone[1]
    for order in ((0, 1, 2), (2, 0), (1, 2, 0)):
        assert say(loop, tmp_path, order, full) == [alone[index] for index in order]


def test_padding_rows_disturb_nobody(tmp_path: Path) -> None:
    loop, spare = sampled(tmp_path), 4
    (alone,) = say(loop, tmp_path, (0,), True)
    config = model_config("custom_voice", "1b7", tmp_path)
    lab.speak(loop, [lab.prompt_of(RYAN, config, full=True)], 0, seeds=[SEEDS[0]], slots=[2])
    codes = [loop.table.codes[2, 0].tolist()]
    codes += [lab.go_on(loop, [spare, 2, spare]).codes[1].tolist() for _ in range(FRAMES - 1)]
    assert codes == alone


def test_a_small_span_gives_what_a_large_one_gives(tmp_path: Path) -> None:
    results = []
    for span in (32, 128):
        loop = sampled(tmp_path)
        config = model_config("custom_voice", "1b7", tmp_path)
        lab.speak(loop, [lab.prompt_of(RYAN, config, full=True)], 0, slots=[0])
        results.append([lab.go_on(loop, [0], span).codes.tolist() for _ in range(8)])
    assert results[0] == results[1]


def test_the_end_is_not_drawn_before_its_time(tmp_path: Path) -> None:
    loop = sampled(tmp_path)
    config = model_config("custom_voice", "1b7", tmp_path)
    hidden = torch.randn(3, config.talker.hidden, generator=torch.Generator().manual_seed(1))
    loop.talker.head[:] = 0.0
    loop.talker.head[EOS] = 10.0 * hidden[0] / hidden[0].norm()
    slots = torch.tensor([0, 1, 2])
    loop.table.begin(slots, slots * 0, slots, torch.tensor([0, 1, 2]))
    status = loop._finish(hidden[:1].expand(3, -1), slots).status.tolist()
    assert status == [ENDED, 0, 0]
    assert loop._finish(hidden[:1].expand(3, -1), slots).status.tolist()[1:] == [ENDED, 0]


def test_special_codes_are_never_drawn(tmp_path: Path) -> None:
    loop = sampled(tmp_path)
    loop.talker.head[2048:] *= 50.0
    loop.talker.head[EOS] = -loop.talker.head[EOS].abs()
    codes = say(loop, tmp_path, (0, 1), True)
    assert all(frame[0] < 2048 for utterance in codes for frame in utterance)


def test_repetition_is_counted_and_numbers_that_are_none_are_told(tmp_path: Path) -> None:
    loop = lab.build(model_config("custom_voice", "1b7", tmp_path), 11)
    slots = torch.tensor([0, 1])
    loop.table.begin(slots, slots * 0, slots, slots * 0)
    loop.talker.head[:] = 0.0
    loop.talker.head[7] = 1.0
    hidden = torch.ones(2, 64)
    counts = [loop._finish(hidden, slots).repeats.tolist()[0] for _ in range(3)]
    assert counts == [0, 1, 2]
    hidden[1] = torch.nan
    frames = loop._finish(hidden, slots)
    assert frames.status.tolist() == [0, POISONED]
    assert frames.repeats.tolist()[0] == 3


def naive(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, last: int) -> torch.Tensor:
    """Attention of one query [heads, dim] over keys [S, kv_heads, dim] up to ``last``."""
    out = []
    for head in range(q.shape[0]):
        own = head // (q.shape[0] // k.shape[1])
        scores = k[: last + 1, own] @ q[head] / q.shape[1] ** 0.5
        out.append(torch.softmax(scores, 0) @ v[: last + 1, own])
    return torch.cat(out)


def test_attention_groups_heads_and_looks_no_further_than_it_may() -> None:
    generator = torch.Generator().manual_seed(2)
    q = torch.randn(2, 5, 4, 8, generator=generator)
    k, v = (torch.randn(2, 5, 2, 8, generator=generator) for _ in range(2))
    causal = attend_causal(q, k, v)
    for row in range(2):
        for at in range(5):
            expected = naive(q[row, at], k[row], v[row], at)
            assert torch.allclose(causal[row, at], expected, atol=1e-5)
    assert torch.allclose(attend_last(q[:, 4], k, v), causal[:, 4], atol=1e-5)


def test_attention_in_slots_remembers_the_newest_and_looks_no_further() -> None:
    generator = torch.Generator().manual_seed(3)
    entry = Entry(torch.ones(8), torch.empty(64, 8), *torch.rand(2, 8, generator=generator))
    qkv = torch.randn(2, 64, generator=generator)  # four queries, two keys and two values of 8
    cos, sin = torch.rand(2, 2, 1, 8, generator=generator)
    keys, values = torch.randn(2, 2, 5, 2, 8, generator=generator)
    slots, positions = torch.tensor([1, 0]), torch.tensor([3, 1])
    place = Slotted(keys.clone(), values.clone(), slots, positions, 4)
    over = attend_slots(qkv, entry, cos, sin, place, 1e-6)
    q, k, v = turn_heads(qkv, entry, cos, sin, 2, 1e-6)
    for row, (slot, position) in enumerate(zip(slots, positions, strict=True)):
        keys[slot, position], values[slot, position] = k[row], v[row]
        expected = naive(q[row], keys[slot], values[slot], int(position))
        assert torch.allclose(over[row], expected, atol=1e-5)
    assert torch.equal(place.keys, keys)
    assert torch.equal(place.values, values)


def test_a_recording_needs_its_codes_as_long_as_its_rows(tmp_path: Path) -> None:
    config = model_config("base", "1b7", tmp_path)
    loop = lab.build(config, 11)
    spoken = Spoken(3, vector=True, reference=(4, 2))
    prompt = lab.prompt_of(spoken, config, full=True)
    rows, lengths = lab.embed_prompts([prompt], loop.talker, loop.predictor)
    codes = spoken.reference_codes()
    assert codes is not None
    own = loop.predictor.embed(torch.from_numpy(codes))
    pad = loop.talker.text_table[config.ids.tts_pad]
    assert torch.allclose(rows[0, -4:], own + pad, atol=1e-5)
    assert lengths.tolist() == [len(prompt.rows)]
