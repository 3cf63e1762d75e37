# ruff: noqa: E402 - what follows needs torch
"""What slots take of a device, worked out and as they are laid out."""

from collections.abc import Iterable

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")
pytest.importorskip("safetensors", reason="safetensors is not installed (extra: qwen)")

from playhead.engine.models.qwen3_tts import memory, presets
from playhead.engine.models.qwen3_tts.codec import CodecDecoder
from playhead.engine.models.qwen3_tts.codec_ops import TorchOps
from playhead.engine.models.qwen3_tts.codec_spec import decoder_tensors
from playhead.engine.models.qwen3_tts.slots import SlotTable
from playhead.engine.models.qwen3_tts.startup import CAPTURE_ROOM, GIB, TooLarge

META = torch.device("meta")


def laid_out(tensors: Iterable[object]) -> int:
    """Bytes of the tensors among these."""
    found = [one for one in tensors if isinstance(one, torch.Tensor)]
    return sum(tensor.numel() * tensor.element_size() for tensor in found)


@pytest.mark.parametrize("size", ["1.7b", "0.6b"])
@pytest.mark.parametrize(("slots", "positions"), [(1_500, 700), (512, 1_024), (2_048, 384)])
def test_slots_take_what_is_worked_out(size: str, slots: int, positions: int) -> None:
    """Never less is asked for, and no more than two percent: who is refused would not have fit."""
    config, codec = presets.model_config(size), presets.codec_config()
    rows = slots + memory.SPARE_SLOTS
    with META:
        table = SlotTable(config.talker, rows, positions, device=META, dtype=torch.bfloat16)
        weights = {
            name: torch.empty(spec.shape) for name, spec in decoder_tensors(codec.decoder).items()
        }
        arena = CodecDecoder(codec.decoder, weights, TorchOps(torch.bfloat16)).arena(rows)
    taken = laid_out([*vars(table).values(), table.cache.keys, table.cache.values, *arena.tensors])
    worked_out = rows * memory.needs_of(config, codec, 2).slot(positions)
    assert taken < worked_out < 1.02 * taken


def test_1500_slots_of_the_larger_size_fit_139_gib_with_room() -> None:
    """With all graphs some 11 GiB more than this were in use on a device."""
    needed = memory.needed("random:1.7b", 1_500, 700, 139 * GIB)
    assert needed + 11 * GIB < 139 * GIB
    with pytest.raises(TooLarge, match=r"1508 streams with 700 positions of context take 118"):
        memory.needed("random:1.7b", 1_500, 700, needed + CAPTURE_ROOM - 1)
