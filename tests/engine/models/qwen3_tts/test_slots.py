# ruff: noqa: E402 - what follows needs torch
"""Rows that are handed out, used, and reused."""

from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

from playhead.engine.models.qwen3_tts.slots import NoSlot, SlotTable
from talker_kit import model_config


def table(folder: Path, slots: int = 2) -> SlotTable:
    config = model_config("custom_voice", "1b7", folder).talker
    cpu = torch.device("cpu")
    return SlotTable(config, slots, 8, device=cpu, dtype=torch.float32)


def test_slots_are_taken_until_none_is_left(tmp_path: Path) -> None:
    made = table(tmp_path)
    assert [made.take(), made.take()] == [0, 1]
    assert made.free == 0
    with pytest.raises(NoSlot, match="all 2 streams"):
        made.take()
    made.give_back(0)
    assert made.take() == 0


def test_a_slot_comes_back_once(tmp_path: Path) -> None:
    made = table(tmp_path)
    first, second = made.take(), made.take()
    made.give_back(second)
    with pytest.raises(ValueError, match=f"slot {second} is not taken"):
        made.give_back(second)
    made.give_back(first)
    assert {made.take(), made.take()} == {first, second}
    assert made.free == 0


def test_giving_back_costs_the_same_however_many_are_free(tmp_path: Path) -> None:
    """No search: of the numbers kept as free none is looked at."""

    class Looked(list[int]):
        def __contains__(self, _: object) -> bool:
            raise AssertionError("the free slots were searched")

        def __iter__(self) -> Iterator[int]:
            raise AssertionError("the free slots were walked")

    made = table(tmp_path, 64)
    slot = made.take()
    made._free = Looked(made._free)
    made.give_back(slot)
    assert made.free == 64


@pytest.mark.parametrize("slot", [-1, 0, 2], ids=["below", "free", "spare"])
def test_only_taken_slots_can_be_given_back(tmp_path: Path, slot: int) -> None:
    with pytest.raises(ValueError, match="not taken"):
        table(tmp_path).give_back(slot)


def test_a_stream_begins_with_nothing_of_the_one_before(tmp_path: Path) -> None:
    made = table(tmp_path)
    slots = torch.tensor([1])
    for tensor in (made.made, made.repeats, made.seen):
        tensor[:] = 1
    made.begin(slots, torch.tensor([5]), torch.tensor([42]), torch.tensor([2]))
    assert made.length[1] == 5
    assert made.seeds[1] == 42
    assert made.least[1] == 2
    assert (made.made[1], made.repeats[1]) == (0, 0)
    assert not made.seen[1].any()
    assert made.seen[0].all()


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
