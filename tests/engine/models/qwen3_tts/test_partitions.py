"""How a device is divided: what is refused, and what is missing is named. On a device:
tests/gpu/test_partitions.py."""

import sys
from enum import IntEnum

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

import torch
from playhead.engine.models.qwen3_tts import partitions
from playhead.engine.models.qwen3_tts.partitions import LaneStreams, PartitionError, check_size
from playhead.engine.types import Lane


class Answer(IntEnum):
    """As the driver's bindings answer."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 914


@pytest.mark.parametrize("size", [8, 24, 128])
def test_sizes_in_groups_are_taken(size: int) -> None:
    check_size(size, 132)


@pytest.mark.parametrize("size", [-8, 4, 20, 132, 136])
def test_other_sizes_are_refused_with_what_would_be_right(size: int) -> None:
    with pytest.raises(PartitionError, match=f"{size} .* a multiple of 8 below 132"):
        check_size(size, 132)


def test_missing_bindings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(PartitionError, match="pip install cuda-bindings"):
        partitions._driver()


def test_the_drivers_answers() -> None:
    assert partitions._done((Answer.CUDA_SUCCESS, "stream")) == "stream"
    assert partitions._done((Answer.CUDA_SUCCESS, 1, 2)) == (1, 2)
    with pytest.raises(PartitionError, match="CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"):
        partitions._done((Answer.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, None))


def test_a_part_is_counted_on_while_its_lane_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    monkeypatch.setattr(partitions, "_count_on", counted.append)
    streams = {lane: torch.Stream("cpu") for lane in Lane}
    lanes = LaneStreams(streams, {Lane.LM: 108, Lane.BACKGROUND: 24, Lane.URGENT: 0})
    with lanes.captured(Lane.LM) as stream:
        assert stream is streams[Lane.LM]
        assert counted == [108]
    with lanes.captured(Lane.URGENT) as stream:
        assert stream is streams[Lane.URGENT]
    assert counted == [108, 0]


def test_a_torch_without_cuda_is_told() -> None:
    if torch.version.cuda is not None:
        pytest.skip("this torch has cuBLAS")
    with pytest.raises(PartitionError, match=r"libcublas\.so"):
        partitions._count_on(8)
