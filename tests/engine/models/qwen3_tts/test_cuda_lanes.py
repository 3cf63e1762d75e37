# ruff: noqa: E402 - what follows needs torch
"""The CUDA lanes on a processor, where a stand-in for the device runs what graphs hold: they say
what the plain runner says. On a true device tests/gpu has the same."""

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

import cuda_double
import runner_lab as lab
from playhead.engine.models.qwen3_tts import cuda_runner, partitions
from playhead.engine.models.qwen3_tts.codec import Codec, CodecDecoder
from playhead.engine.models.qwen3_tts.codec_spec import decoder_tensors
from playhead.engine.models.qwen3_tts.counts import Limits
from playhead.engine.models.qwen3_tts.cuda_codec import CodecLane
from playhead.engine.models.qwen3_tts.cuda_lm import LmBuckets
from playhead.engine.models.qwen3_tts.cuda_runner import Buckets, CudaRunner
from playhead.engine.models.qwen3_tts.partitions import LaneStreams
from playhead.engine.models.qwen3_tts.runner import Qwen3Runner
from playhead.engine.models.qwen3_tts.splits import WHOLE
from playhead.engine.models.qwen3_tts.weights import random_tensors
from playhead.engine.types import Finish, Lane, ModelCounts, RunnerDead
from runner_lab import Heard, advance, chunk, request

LADDER, POSITIONS = (1, 2, 4), 40
CLOSE = 1e-5
"""Largest difference of PCM."""


@pytest.fixture(autouse=True)
def _device() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a model only waits for a second
    with cuda_double.working():
        yield
    torch.set_num_threads(threads)


def codec(slots: int) -> Codec:
    decoder = CodecDecoder(lab.CODEC, random_tensors(decoder_tensors(lab.CODEC), 5))
    return Codec(decoder, decoder.arena(slots), 25)


def test_chunks_of_all_sizes_are_the_whole_utterance() -> None:
    """Longer than the ladder, more than a batch, in several dispatches."""
    draw = np.random.default_rng(3)
    codes = torch.from_numpy(draw.integers(0, 2048, (8, POSITIONS, 16)))
    slots = np.array([6, 1, 4, 0, 3])
    with torch.inference_mode():
        rows = torch.from_numpy(slots)
        whole = codec(7).decode(codes[rows].transpose(1, 2), rows).numpy()
        lane = CodecLane(codec(7), codes, (1, 2, 4), LADDER, torch.cuda.Stream())
    parts: list[list[np.ndarray]] = [[] for _ in slots]
    first = np.zeros(5, np.int64)
    while (first < POSITIONS - 11).all():
        who = draw.permutation(5)[: draw.integers(1, 6)]
        frames = draw.integers(1, 12, len(who))
        made = lane.decode(slots[who], first[who], frames)
        assert made.shape == (frames.sum(), lab.FRAME)
        for job, pcm in zip(who, np.split(made, np.cumsum(frames)[:-1]), strict=True):
            parts[job].append(pcm.ravel())
        first[who] += frames
    for job, found in enumerate(parts):
        sound = np.concatenate(found)
        assert np.abs(sound - whole[job, : len(sound)]).max() < 1e-5


def test_a_usual_dispatch_waits_for_the_device_once() -> None:
    codes = torch.zeros((8, POSITIONS, 16), dtype=torch.int64)
    lane = CodecLane(codec(7), codes, (4,), LADDER, torch.cuda.Stream())
    cuda_double.CALLS.clear()
    lane.decode(np.array([0, 1, 2]), np.zeros(3, np.int64), np.array([4, 3, 1]))
    assert cuda_double.CALLS["replay"] == 3  # a launch per chunk size
    assert cuda_double.CALLS["event.synchronize"] == 1


SMALL = Buckets(
    lm=LmBuckets(steps=(1, 4, 8), firsts=(1, 2), prompts=((1, 32), (4, 32))),
    urgent=(1, 4),
    background=(1, 4),
)
TEXT = "The quick brown fox jumps over the lazy dog"
FRAMES = 13


def lanes(folder: Path, **options: Any) -> CudaRunner:
    """As ``runner_lab.runner``, with lanes."""
    plain = lab.runner(folder, slots=8, **options)
    return CudaRunner(plain._parts, plain._options, SMALL)


def plain(folder: Path, **options: Any) -> Qwen3Runner:
    return lab.runner(folder, slots=8, **options)


def text(number: int) -> str:
    """Some are longer than the longest captured prompt."""
    return TEXT[: 9 * number] if number % 4 else TEXT + " and again and again" * 4


def speak(model: Qwen3Runner, numbers: Sequence[int], **more: Any) -> dict[int, Heard]:
    """Utterances whose text and seed go by their number, spoken together."""
    for number in numbers:
        model.open(request(number, seed=number, **more))
        model.push_text(number, text(number), flush=False, end=True)
    heard = {number: Heard() for number in numbers}
    advance(model, heard, most=200)
    for number in numbers:
        model.close(number)
    return heard


def furthest(one: dict[int, Heard], other: dict[int, Heard]) -> float:
    assert one.keys() == other.keys()
    assert [heard.frames for heard in one.values()] == [heard.frames for heard in other.values()]
    return max(float(np.abs(one[n].sound - other[n].sound).max()) for n in one)


@pytest.mark.parametrize(
    ("extra", "whole_text"), [(0, True), (1, False), (3, True)], ids=["none", "one", "three"]
)
def test_lanes_say_what_single_calls_say(
    tmp_path: Path, extra: int, whole_text: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the device makes ahead of its host."""
    monkeypatch.setattr(cuda_runner, "EXTRA_FRAMES", ((1, extra),))
    options = {"frames": lambda _: FRAMES, "positions": 128, "whole_text": whole_text}
    numbers = list(range(1, 8))
    found = speak(lanes(tmp_path, **options), numbers)
    assert all(heard.last.ended for heard in found.values())
    assert furthest(found, speak(plain(tmp_path, **options), numbers)) < CLOSE


def test_text_that_is_written_meanwhile_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces of text while the device is ahead: the same sound as of the whole text, laid out the
    same way, and no step is asked for in vain."""
    options = {"frames": lambda _: 25, "whole_text": False}
    wanted = speak(plain(tmp_path, **options), [2])[2]
    for extra in (0, 3):
        monkeypatch.setattr(cuda_runner, "EXTRA_FRAMES", ((1, extra),))
        model = lanes(tmp_path, **options)
        model.open(request(2, seed=2))
        heard = {2: Heard()}
        for piece in (TEXT[:3], TEXT[3:12], TEXT[12:13], text(2)[13:]):
            if model.push_text(2, piece, flush=False, end=False):
                advance(model, heard)
                assert heard[2].last.hungry
        waiting = heard[2].frames
        assert 0 < waiting < wanted.frames
        (again,) = model.step([2])
        assert (again.frames, again.hungry) == (0, True)
        assert model.push_text(2, "", flush=True, end=True)
        advance(model, heard)
        assert heard[2].frames == wanted.frames
        assert np.abs(heard[2].sound - wanted.sound).max() < CLOSE


def test_slots_change_hands_though_the_device_was_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was given up in the middle leaves frames on the device that are nobody's."""
    monkeypatch.setattr(cuda_runner, "EXTRA_FRAMES", ((1, 2),))
    options = {"frames": lambda _: FRAMES}
    alone = speak(plain(tmp_path, **options), [5])
    model = lanes(tmp_path, **options)
    for number in range(100, 108):
        model.open(request(number, seed=number))
        model.push_text(number, "Something else", flush=False, end=True)
    model.step(list(range(100, 108)))
    model.step(list(range(100, 108)))
    for number in range(100, 108):
        model.close(number)
    found = speak(model, [5])
    assert sum(result.frames for result in found[5].results) == FRAMES
    assert furthest(found, alone) < CLOSE


def test_a_stream_that_pauses_gets_what_was_made_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The frames that the device made of a stream beside others are told when it steps again."""
    monkeypatch.setattr(cuda_runner, "EXTRA_FRAMES", ((1, 1),))
    options = {"frames": lambda _: FRAMES}
    wanted = speak(plain(tmp_path, **options), [1, 2])
    model = lanes(tmp_path, **options)
    heard = {number: Heard() for number in (1, 2)}
    for number in heard:
        model.open(request(number, seed=number))
        model.push_text(number, text(number), flush=False, end=True)
    advance(model, heard, most=2)
    advance(model, {1: heard[1]}, most=3)
    advance(model, heard)
    assert furthest(heard, wanted) < CLOSE


def test_a_poisoned_stream_fails_alone_and_leaves_a_clean_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_runner, "EXTRA_FRAMES", ((1, 2),))
    options = {"frames": lambda _: FRAMES}
    wanted = speak(plain(tmp_path, **options), [1, 2])
    model = lanes(tmp_path, **options)
    heard = {number: Heard() for number in (1, 2)}
    for number in heard:
        model.open(request(number, seed=number))
        model.push_text(number, text(number), flush=False, end=True)
    advance(model, heard, most=1)
    model._table.carry[model._streams[2].slot] = math.nan
    advance(model, heard)
    assert heard[2].last.error == "the model gave no numbers for this utterance"
    assert heard[2].frames < FRAMES
    assert np.abs(heard[1].sound - wanted[1].sound).max() < CLOSE
    for number in heard:
        model.close(number)
    assert furthest(speak(model, [1, 2]), wanted) < CLOSE


def test_a_fault_of_the_device_is_the_end_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a step and of a chunk, and no other fault is."""
    model = lanes(tmp_path, frames=lambda _: FRAMES)
    model.open(request(1))
    model.push_text(1, TEXT, flush=False, end=True)
    model.step([1])
    faults: list[Exception] = [torch.AcceleratorError("CUDA error: unspecified launch failure")]

    def broken(_: object) -> None:
        raise faults[0]

    monkeypatch.setattr(cuda_double.AtOnce, "replay", broken)
    for work in (lambda: model.step([1]), lambda: model.decode([chunk(1, 0, 1)])):
        with pytest.raises(RunnerDead, match="unspecified launch failure"):
            work()
    faults[0] = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        model.decode([chunk(1, 0, 1)])


@pytest.mark.parametrize(
    ("limits", "frames", "extra"),
    [
        (Limits(frames_base=2, frames_per_token=1), 2 + 6, 0),
        (Limits(frames_base=4, frames_per_token=0), 4, 2),
        (Limits(repeats=0), 1, 2),
        (Limits(silence=0.0), 1, 2),
    ],
    ids=["per token", "fixed", "repeats", "silence"],
)
def test_what_never_ends_is_ended(
    tmp_path: Path, limits: Limits, frames: int, extra: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_runner, "EXTRA_FRAMES", ((1, extra),))
    model = lanes(tmp_path, limits=limits)
    heard = speak(model, [2])[2]
    assert heard.frames == frames
    assert heard.last.finish is Finish.LENGTH_BUDGET


def test_a_full_context_ends_an_utterance(tmp_path: Path) -> None:
    limits = Limits(frames_base=1000)
    wanted = speak(plain(tmp_path, positions=40, limits=limits), [2])[2]
    found = speak(lanes(tmp_path, positions=40, limits=limits), [2])[2]
    assert found.last.finish is wanted.last.finish is Finish.LENGTH_BUDGET
    assert found.frames == wanted.frames


def test_silence_is_heard(tmp_path: Path) -> None:
    """The count of silence goes on from chunk to chunk, as the plain runner's."""
    counts = []
    for model in (lanes(tmp_path), plain(tmp_path)):
        heard = speak_some(model)
        slot = model._streams[1].slot
        assert slot is not None
        counts.append((heard.frames, float(model._counts.quiet[slot])))
    assert counts[0] == counts[1]


def speak_some(model: Qwen3Runner) -> Heard:
    model.open(request(1, seed=1))
    model.push_text(1, TEXT, flush=False, end=True)
    heard = Heard()
    advance(model, {1: heard}, most=5)
    return heard


def test_a_prompt_that_cannot_be_laid_out_is_told(tmp_path: Path) -> None:
    model = lanes(tmp_path)
    for number, words in ((1, 1), (2, 92), (3, 0)):
        model.open(request(number))
        model.push_text(number, "word " * words, flush=False, end=number != 4)
    one, two, three = model.step([1, 2, 3])
    assert (one.frames, one.error) == (1, None)
    assert "the prompt takes" in str(two.error)
    assert (three.frames, three.ended) == (0, True)


def test_frames_are_decoded_in_order_and_only_once_made(tmp_path: Path) -> None:
    model = lanes(tmp_path, frames=lambda _: 4)
    for number in (1, 2):
        model.open(request(number))
        model.push_text(number, TEXT, flush=False, end=True)
    model.step([1, 2])
    found = model.decode([chunk(1, 1, 1), chunk(2, 0, 1), chunk(1, 0, 2), chunk(9, 0, 1)])
    assert [type(one) for one in found] == [ValueError, np.ndarray, ValueError, KeyError]
    faults = model.decode([chunk(7, 0, 1)])
    assert [type(one) for one in faults] == [KeyError]


def test_warnings_come_once_with_a_result(tmp_path: Path) -> None:
    model = lanes(tmp_path, frames=lambda _: 6)
    model.open(request(1))
    model.push_text(1, "One <|stop|>two", flush=False, end=True)
    heard = {1: Heard()}
    advance(model, heard)
    found = [warning.text for result in heard[1].results for warning in result.warnings]
    assert found == ["<|stop|>"]


def test_who_waits_for_its_prompt_to_be_read_is_said_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind other newcomers, and while it is read piece by piece beside who speaks already."""
    monkeypatch.setattr(cuda_runner, "PROMPTS_AT_ONCE", 1)
    monkeypatch.setattr(cuda_runner, "ROWS_PER_STEP", 1)
    model = lanes(tmp_path, frames=lambda _: 30, positions=256)
    texts = {1: text(1), 4: text(4) * 4, 8: text(4) * 4, 2: text(2)}
    heard = {number: Heard() for number in texts}
    for number in heard:
        model.open(request(number))
        model.push_text(number, texts[number], flush=False, end=True)
    advance(model, heard, most=60)
    waited = {}
    for number, one in heard.items():
        assert one.frames == 30
        assert all(not (result.frames and result.waiting) for result in one.results)
        first = next(place for place, result in enumerate(one.results) if result.frames)
        assert all(result.waiting for result in one.results[:first])
        waited[number] = first
    assert waited[1] == 0
    assert waited[2] == 3, "it is the fourth to begin"
    assert waited[4] > 1
    assert waited[8] > waited[4]


def calls_of(work: Callable[[], object]) -> Counter[str]:
    """Functions that ``work`` calls, in Python or of a library."""
    seen: Counter[str] = Counter()

    def note(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            seen[frame.f_code.co_qualname] += 1
        elif event == "c_call":
            seen[arg.__qualname__] += 1

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.parametrize("given", [True, False], ids=["lengths given", "the model ends"])
def test_the_hosts_work_does_not_grow_with_the_batch(
    tmp_path: Path, given: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of streams that just go on: as many calls for eight as for four, a launch and two copies per
    frame, one wait per step."""
    monkeypatch.setattr(cuda_runner, "EXTRA_FRAMES", ((1, 1),))
    model = lanes(tmp_path, frames=(lambda _: 10**6) if given else None)
    for number in range(1, 9):
        model.open(request(number, seed=number))
        model.push_text(number, TEXT, flush=False, end=True)
    every, half = list(range(1, 9)), list(range(1, 5))
    model.step(every)
    monkeypatch.setattr(cuda_double.AtOnce, "replay", lambda _: None)
    for _ in range(2):  # the usual answers are made
        model.step(half)
        model.step(every)
    model.step(every)
    before = cuda_double.CALLS.copy()
    of_eight = calls_of(lambda: model.step(every))
    asked = cuda_double.CALLS - before
    assert (asked["event.record"], asked["event.synchronize"]) == (2, 1)
    assert sum(count for name, count in of_eight.items() if name.endswith("copy_")) == 4
    model.step(half)
    assert calls_of(lambda: model.step(half)) == of_eight


def test_the_hosts_work_does_not_grow_with_the_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = lanes(tmp_path, frames=lambda _: 10**6)
    for number in range(1, 5):
        model.open(request(number, seed=number))
        model.push_text(number, TEXT, flush=False, end=True)
    for _ in range(4):
        model.step([1, 2, 3, 4])
    monkeypatch.setattr(cuda_double.AtOnce, "replay", lambda _: None)
    two = [chunk(number, 0, 2) for number in (1, 2)]
    four = [chunk(number, 2 if number < 3 else 0, 2) for number in (1, 2, 3, 4)]
    of_two = calls_of(lambda: model.decode(two))
    assert calls_of(lambda: model.decode(four)) == of_two


PARTS = (8, 16, WHOLE)


def in_parts(folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> CudaRunner:
    """As ``lanes``, on a device whose background lane has several parts to choose from."""
    counted: list[int] = []
    streams = {lane: torch.cuda.Stream() for lane in Lane}
    counts = {Lane.LM: 124, Lane.BACKGROUND: 8, Lane.URGENT: 0}
    parts = {size: torch.cuda.Stream() for size in PARTS}
    divided = LaneStreams(streams, counts, parts, 132)
    monkeypatch.setattr(cuda_runner, "lane_streams", lambda *_: divided)
    monkeypatch.setattr(partitions, "_count_on", counted.append)
    plain = lab.runner(folder, slots=8, **options)
    model = CudaRunner(plain._parts, plain._options, replace(SMALL, parts=PARTS))
    assert counted == [124, 0, 8, 0, 16, 0]  # the LM lane, then each part while it is captured
    return model


def test_a_lane_that_changes_its_part_all_the_time_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another part for every dispatch of streams in mid speech, and every part has had some."""
    options = {"frames": lambda _: FRAMES}
    numbers = [1, 2]
    wanted = speak(lanes(tmp_path, **options), numbers)
    model = in_parts(tmp_path, monkeypatch, **options)
    chosen = model._lanes._chosen
    assert chosen is not None
    turns, used = cycle(PARTS), Counter[int]()

    def choose(_: float, streams: int) -> int:
        assert streams == len(numbers)
        used[size := next(turns)] += 1
        return size

    monkeypatch.setattr(chosen._splits, "choose", choose)
    assert furthest(speak(model, numbers), wanted) == 0.0
    assert len(used) == len(PARTS)
    assert min(used.values()) >= FRAMES // len(PARTS)


def test_what_the_background_lane_has_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lanes(tmp_path).counts() == ModelCounts()
    model = in_parts(tmp_path, monkeypatch)
    assert len(model._lanes.every) == 1 + len(PARTS)
    chosen = model._lanes._chosen
    assert chosen is not None
    assert model.counts() == ModelCounts(0, WHOLE, 0)
    chosen._splits._take(0, 0.0)
    chosen._size = chosen._splits.size
    assert model.counts() == ModelCounts(0, 8, 1)


def test_urgent_chunks_have_all_of_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = in_parts(tmp_path, monkeypatch, frames=lambda _: 4)
    model.open(request(1))
    model.push_text(1, TEXT, flush=False, end=True)
    model.step([1])
    asked: list[float] = []
    monkeypatch.setattr(model._lanes._chosen, "decode", asked.append)
    urgent = replace(chunk(1, 0, 1), lane=Lane.URGENT)
    (pcm,) = model.decode([urgent])
    assert isinstance(pcm, np.ndarray)
    assert not asked


def test_fewer_parts_are_prepared_where_not_all_fit() -> None:
    """The smallest and the largest, so that there is one for every load."""
    whole, half, least = replace(SMALL, parts=partitions.AUTO).plans()
    assert whole.parts == partitions.AUTO
    assert half.parts == least.parts == (partitions.AUTO[0], partitions.AUTO[-1])
    assert [plan.captures - len(plan.lm.steps) for plan in (whole, half)] == [3 + 6, 3 + 2]
    assert SMALL.captures == len(SMALL.lm.steps) + 4
    fixed = replace(SMALL, parts=(24,)).plans()
    assert {plan.parts for plan in fixed} == {(24,)}
