# ruff: noqa: E402 - what follows needs a device
"""Parts of the device: kernels stay in theirs, graphs too, and make the same of the same.

The number of a multiprocessor is PTX's %smid.
"""

from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

import gpu_kit as kit
import triton
import triton.language as tl
from gpu_kit import Made
from playhead.engine.models.qwen3_tts.partitions import (
    PRIORITIES,
    LaneStreams,
    PartitionError,
    lane_streams,
)
from playhead.engine.models.qwen3_tts.splits import WHOLE
from playhead.engine.types import Lane
from runner_lab import say

pytestmark = pytest.mark.gpu
DEVICE = torch.device("cuda")
SIZE = 16
BLOCKS = 4096
CLOSE = 1e-4


@triton.jit
def _where(out, x, turns):
    """The multiprocessor that runs this block, held long enough for others to need theirs."""
    block = tl.program_id(0)
    lane = tl.arange(0, 128)
    value = tl.load(x + lane)
    for _ in range(turns):
        value = tl.sin(value)
    tl.store(x + lane, value)
    place = tl.inline_asm_elementwise(
        "mov.u32 $0, %smid;", "=r,r", [block], dtype=tl.int32, is_pure=False, pack=1
    )
    tl.store(out + block, place)


@pytest.fixture(scope="module")
def lanes() -> LaneStreams:
    return lane_streams(DEVICE, PRIORITIES, (SIZE,))


def places(stream: "torch.cuda.Stream", *, graph: bool = False) -> set[int]:
    """Where the blocks of a wide kernel ran. A graph is captured on the stream, and replayed on
    another."""
    out = torch.full((BLOCKS,), -1, dtype=torch.int32, device=DEVICE)
    x = torch.ones(128, device=DEVICE)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        _where[(BLOCKS,)](out, x, 200)
        stream.synchronize()
        if graph:
            recorded = torch.cuda.CUDAGraph()
            with torch.cuda.graph(recorded, stream=stream):
                _where[(BLOCKS,)](out, x, 200)
    if graph:
        out.fill_(-1)
        recorded.replay()
    torch.cuda.synchronize()
    return set(out.tolist())


@pytest.mark.parametrize("graph", [False, True], ids=["called", "captured"])
def test_every_lane_keeps_to_its_part(lanes: LaneStreams, graph: bool) -> None:
    total = torch.cuda.get_device_properties(DEVICE).multi_processor_count
    background = places(lanes.streams[Lane.BACKGROUND], graph=graph)
    step = places(lanes.streams[Lane.LM], graph=graph)
    urgent = places(lanes.streams[Lane.URGENT], graph=graph)
    assert -1 not in background | step | urgent
    assert len(background) == lanes.counts[Lane.BACKGROUND] == SIZE
    assert len(step) == lanes.counts[Lane.LM] == total - SIZE
    assert not background & step
    assert urgent == background | step


def test_lanes_that_share_the_device_use_all_of_it() -> None:
    lanes = lane_streams(DEVICE, PRIORITIES, ())
    total = torch.cuda.get_device_properties(DEVICE).multi_processor_count
    assert [len(places(lanes.streams[lane])) for lane in Lane] == [total] * len(Lane)


def test_a_size_that_does_not_fit_is_refused() -> None:
    with pytest.raises(PartitionError, match="a multiple of 8"):
        lane_streams(DEVICE, PRIORITIES, (20,))


@pytest.mark.parametrize("lane", list(Lane), ids=str)
def test_products_are_the_same_in_a_part(lanes: LaneStreams, lane: Lane) -> None:
    """Of the library and of the codec's own kernels, at the precision that serves."""
    x = torch.randn(512, 2048, device=DEVICE, dtype=torch.bfloat16)
    weight = torch.randn(3072, 2048, device=DEVICE, dtype=torch.bfloat16)
    codec = kit.tiny_codec(torch.bfloat16)
    codes = torch.randint(0, 32, (4, kit.CODEC.quantizers, 6), device=DEVICE)
    slots = torch.arange(4, device=DEVICE)

    def both() -> tuple["torch.Tensor", "torch.Tensor"]:
        codec.reset(slots)
        return x @ weight.t(), codec.decode(codes, slots, clamp=False)

    wanted = both()
    torch.cuda.synchronize()
    with lanes.captured(lane) as stream, torch.cuda.stream(stream):
        found = both()
    torch.cuda.synchronize()
    for mine, theirs, limit in zip(found, wanted, (1e-2, 5e-2), strict=True):
        assert mine.isfinite().all()
        assert kit.error(mine, theirs) < limit


def test_a_runner_in_parts_says_what_one_on_the_whole_device_says(
    tmp_path: Path,
) -> None:
    sounds = []
    for sizes in ((), (SIZE,), (SIZE, 2 * SIZE, WHOLE)):
        model = kit.tiny_runner(Made(tmp_path, frames=lambda _: 8), replace(kit.SMALL, parts=sizes))
        sounds.append(say(model, 1, "One two three", seed=1).sound)
    assert len(sounds[0]) == 8 * kit.CODEC.frame_samples
    assert all(abs(sounds[0] - sound).max() <= CLOSE for sound in sounds[1:])


def test_parts_to_choose_from_lie_within_each_other() -> None:
    sizes = (SIZE, 2 * SIZE, WHOLE)
    lanes = lane_streams(DEVICE, PRIORITIES, sizes)
    small, large, whole = (places(lanes.parts[size], graph=True) for size in sizes)
    step = places(lanes.streams[Lane.LM], graph=True)
    assert [len(small), len(large)] == [SIZE, 2 * SIZE]
    assert small < large < whole
    assert step <= whole - small  # what no group holds may have to be left out
    assert len(whole - small - step) < 8
    assert len(step) == lanes.counts[Lane.LM]


def test_a_lane_that_changes_its_part_in_mid_speech_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another part for every dispatch: the codec's state goes with the stream."""
    sizes, made = (SIZE, 2 * SIZE, WHOLE), Made(tmp_path, frames=lambda _: 24)
    turns = cycle(sizes)
    alone = say(kit.tiny_runner(made), 1, "One two three", seed=1).sound
    model = kit.tiny_runner(made, replace(kit.SMALL, parts=sizes))
    assert model._lanes._chosen is not None
    monkeypatch.setattr(model._lanes._chosen._splits, "choose", lambda *_: next(turns))
    found = say(model, 1, "One two three", seed=1).sound
    assert abs(found - alone).max() <= CLOSE
