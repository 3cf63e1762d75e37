# ruff: noqa: E402 - what follows needs torch
"""Rows that are handed out, used, and reused."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

from playhead.engine.models.qwen3_tts.slots import NoSlot, SlotTable
from talker_kit import model_config

PAD = 502


def table(folder: Path, slots: int = 2) -> SlotTable:
    config = model_config("custom_voice", "1b7", folder).talker
    cpu = torch.device("cpu")
    return SlotTable(config, slots, 8, device=cpu, dtype=torch.float32, text_pad=PAD)


def test_slots_are_taken_until_none_is_left(tmp_path: Path) -> None:
    made = table(tmp_path)
    assert [made.take(), made.take()] == [0, 1]
    assert made.free == 0
    with pytest.raises(NoSlot, match="all 2 streams"):
        made.take()
    made.give_back(0)
    assert made.take() == 0


@pytest.mark.parametrize("slot", [-1, 0, 2], ids=["below", "free", "spare"])
def test_only_taken_slots_can_be_given_back(tmp_path: Path, slot: int) -> None:
    with pytest.raises(ValueError, match="not taken"):
        table(tmp_path).give_back(slot)


def test_a_stream_begins_with_nothing_of_the_one_before(tmp_path: Path) -> None:
    made = table(tmp_path)
    slots = torch.tensor([1])
    for tensor in (made.made, made.repeats, made.seen, made.text):
        tensor[:] = 1
    made.begin(slots, torch.tensor([5]), torch.tensor([42]), torch.tensor([2]))
    assert made.length[1] == 5
    assert made.seeds[1] == 42
    assert made.least[1] == 2
    assert (made.made[1], made.repeats[1]) == (0, 0)
    assert not made.seen[1].any()
    assert (made.text[1] == PAD).all()
    assert made.seen[0].all()


def test_text_joins_the_frames_it_is_for(tmp_path: Path) -> None:
    made = table(tmp_path)
    made.write_text(torch.tensor([0, 0, 1]), torch.tensor([2, 3, 0]), torch.tensor([7, 8, 9]))
    assert made.text[0].tolist() == [PAD, PAD, 7, 8, PAD, PAD, PAD, PAD]
    assert made.text[1, 0] == 9


def test_a_poisoned_slot_is_scrubbed(tmp_path: Path) -> None:
    made = table(tmp_path)
    slot = made.take()
    made.cache.keys[:, slot] = torch.nan
    made.cache.values[:, slot] = torch.nan
    made.cache.keys[:, 1] = 3.0
    made.give_back(slot, scrub=True)
    assert not made.cache.keys[:, slot].any()
    assert not made.cache.values[:, slot].any()
    assert (made.cache.keys[:, 1] == 3.0).all()
    assert made.cache.positions == 8
