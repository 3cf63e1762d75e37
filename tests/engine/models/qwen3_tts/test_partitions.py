"""How a device is divided: what is refused, and what is missing is named. On a device:
tests/gpu/test_partitions.py."""

import sys
from enum import IntEnum
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

import torch
from playhead.engine.models.qwen3_tts import partitions
from playhead.engine.models.qwen3_tts.partitions import (
    AUTO,
    PRIORITIES,
    LaneStreams,
    PartitionError,
    check_size,
    lane_streams,
)
from playhead.engine.models.qwen3_tts.splits import WHOLE
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


# -- with a driver that only keeps books ---------------------------------------------------------

CPU = torch.device("cpu", 0)
Part = frozenset[int]


class Resource:
    """Multiprocessors by their numbers."""

    def __init__(self, where: Part) -> None:
        self.where = where
        self.sm = SimpleNamespace(smCount=len(where))


class Driver:
    """Divides a device of ``total`` multiprocessors, of which ``groups`` groups of eight can be
    made at most; what a part was made of is the number of its stream."""

    CUdevResourceType = SimpleNamespace(CU_DEV_RESOURCE_TYPE_SM=1)
    CUgreenCtxCreate_flags = SimpleNamespace(CU_GREEN_CTX_DEFAULT_STREAM=1)
    CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)

    def __init__(self, total: int = 132, groups: int = 16) -> None:
        self._total, self._groups, self.picky = total, groups, False
        self.made: list[tuple[Part, int]] = []

    def cuDeviceGet(self, index: int) -> tuple[int, int]:
        return 0, index

    def cuDeviceGetDevResource(self, handle: int, kind: int) -> tuple[int, Resource]:
        return 0, Resource(frozenset(range(self._total)))

    def cuDevSmResourceSplitByCount(
        self, count: int, whole: Resource, flags: int, least: int
    ) -> tuple[int, list[Resource], int, Resource]:
        made = min(count, self._groups if least == 8 else count)
        parts = [frozenset(range(at * least, (at + 1) * least)) for at in range(made)]
        rest = whole.where - frozenset().union(*parts)
        empty = [Resource(frozenset())] * (count - made)
        return 0, [*map(Resource, parts), *empty], made, Resource(rest)

    def cuDevResourceGenerateDesc(self, part: list[Resource], count: int) -> tuple[int, Part]:
        assert count == len(part)
        if self.picky and len({resource.sm.smCount for resource in part}) > 1:
            return Answer.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, frozenset()
        return 0, frozenset().union(*(resource.where for resource in part))

    def cuGreenCtxCreate(self, part: Part, handle: int, flags: int) -> tuple[int, Part]:
        return 0, part

    def cuGreenCtxStreamCreate(self, part: Part, flags: int, priority: int) -> tuple[int, int]:
        self.made.append((part, priority))
        return 0, len(self.made) - 1


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver()
    properties = SimpleNamespace(multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _: None)
    monkeypatch.setattr(torch.cuda, "ExternalStream", lambda number, device: number)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device, priority: ("whole", priority))
    monkeypatch.setattr(partitions, "_driver", lambda: made)
    return made


def where(driver: Driver, stream: Any) -> tuple[int, int]:
    """How many multiprocessors and which priority."""
    part, priority = driver.made[stream]
    return len(part), priority


def test_lanes_share_the_device_unless_it_is_divided(driver: Driver) -> None:
    lanes = lane_streams(CPU, PRIORITIES)
    assert set(lanes.counts.values()) == {0}
    assert lanes.streams[Lane.LM] == ("whole", PRIORITIES[Lane.LM])
    assert not driver.made
    assert not lanes.parts


def test_a_part_of_one_size(driver: Driver) -> None:
    lanes = lane_streams(CPU, PRIORITIES, (24,))
    assert where(driver, lanes.streams[Lane.BACKGROUND]) == (24, PRIORITIES[Lane.BACKGROUND])
    assert where(driver, lanes.streams[Lane.LM]) == (108, PRIORITIES[Lane.LM])
    assert lanes.streams[Lane.URGENT] == ("whole", PRIORITIES[Lane.URGENT])
    assert lanes.counts == {Lane.LM: 108, Lane.BACKGROUND: 24, Lane.URGENT: 0}
    assert not lanes.parts


def test_parts_to_choose_from_lie_within_each_other(driver: Driver) -> None:
    lanes = lane_streams(CPU, PRIORITIES, AUTO)
    assert list(lanes.parts) == list(AUTO)
    parts = [driver.made[lanes.parts[size]][0] for size in AUTO[:-1]]
    assert [len(part) for part in parts] == list(AUTO[:-1])
    assert all(small < large for small, large in pairwise(parts))
    assert lanes.parts[WHOLE] == ("whole", PRIORITIES[Lane.BACKGROUND])
    step = driver.made[lanes.streams[Lane.LM]][0]
    assert step == frozenset(range(132)) - parts[0]
    assert (lanes.counts[Lane.LM], lanes.total) == (108, 132)


def test_nothing_may_be_left_over(driver: Driver) -> None:
    driver._total = 128
    assert lane_streams(CPU, PRIORITIES, (24, 32)).counts[Lane.LM] == 104


def test_a_remainder_that_does_not_go_with_the_groups_is_left_out(driver: Driver) -> None:
    driver.picky = True
    lanes = lane_streams(CPU, PRIORITIES, (24, 32))
    assert lanes.counts[Lane.LM] == 104
    assert where(driver, lanes.streams[Lane.LM]) == (104, PRIORITIES[Lane.LM])


def test_a_remainder_alone_that_is_refused_is_told(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Answer.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION
    monkeypatch.setattr(driver, "cuGreenCtxCreate", lambda *_: (refused, None))
    with pytest.raises(PartitionError, match="INVALID_RESOURCE_CONFIGURATION"):
        lane_streams(CPU, PRIORITIES, (24,))


def test_parts_that_the_device_does_not_give_are_refused(driver: Driver) -> None:
    driver._groups = 5
    with pytest.raises(PartitionError, match=r"no part of 48 .* 5 groups of 8"):
        lane_streams(CPU, PRIORITIES, AUTO)
    with pytest.raises(PartitionError, match="0 multiprocessors cannot"):
        lane_streams(CPU, PRIORITIES, (WHOLE,))


def test_a_part_to_choose_is_counted_on_while_it_is_captured() -> None:
    counted: list[int] = []
    lanes = LaneStreams({}, {}, {24: torch.Stream("cpu"), WHOLE: torch.Stream("cpu")})
    with mock.patch.object(partitions, "_count_on", counted.append):
        for size, stream in lanes.parts.items():
            with lanes.captured_part(size) as found:
                assert found is stream
    assert counted == [24, 0]
