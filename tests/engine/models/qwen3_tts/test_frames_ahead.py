"""What a stream allows a device that works ahead of its host."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

import runner_lab as lab
from playhead.engine.models.qwen3_tts.cuda_runner import EXTRA_FRAMES, extra_frames
from playhead.engine.models.qwen3_tts.runner import Qwen3Runner
from playhead.engine.models.qwen3_tts.stream import Stream
from runner_lab import request


def spoken_to(model: Qwen3Runner, text: str, *, end: bool) -> Stream:
    """A stream with its first frame."""
    model.open(request(1))
    model.push_text(1, text, flush=True, end=end)
    model.step([1])
    return model._streams[1]


def test_a_whole_text_goes_on_to_its_last_frame_and_no_further(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, frames=lambda _: 4)
    stream = spoken_to(model, "One two three", end=True)
    for ahead, able in ((0, True), (2, True), (3, False)):
        stream.ahead = ahead
        assert stream.can_go_on(model._builder) is able
    stream.ahead, stream.ended = 0, True
    assert not stream.can_go_on(model._builder)


def test_text_that_still_comes_bounds_what_is_made_ahead(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, frames=lambda _: 40)
    stream = spoken_to(model, "One two three", end=False)
    able = 0
    while stream.can_go_on(model._builder):
        stream.ahead += 1
        able += 1
    assert stream.made + able == len(stream.known) - stream.in_prompt + 1
    assert stream.steppable(model._builder)  # what is made already can be fetched
    stream.ahead = 0
    stream.made += able
    assert not stream.steppable(model._builder)
    model.push_text(1, " four", flush=True, end=False)
    assert stream.can_go_on(model._builder)
    model.push_text(1, "", flush=False, end=True)
    stream.ahead = 10
    assert stream.can_go_on(model._builder)


def test_the_usual_answers_are_made_once(tmp_path: Path) -> None:
    stream = spoken_to(lab.runner(tmp_path, frames=lambda _: 9), "One", end=True)
    assert stream.frames(2) is stream.frames(2)
    assert [stream.frames(count).frames for count in (1, 2, 3)] == [1, 2, 3]
    assert stream.one_frame() is stream.frames(1)


def test_a_device_works_ahead_only_for_many() -> None:
    least = min(streams for streams, _ in EXTRA_FRAMES)
    assert extra_frames(least - 1) == 0
    assert extra_frames(least) > 0
