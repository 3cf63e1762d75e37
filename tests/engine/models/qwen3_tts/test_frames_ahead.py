"""What a stream allows a device that works ahead of its host."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

import numpy as np
import runner_lab as lab
from playhead.engine.models.qwen3_tts.counts import OVER
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


def able(stream: Stream) -> bool:
    return len(stream.counts.able(np.array([stream.slot]))) == 1


def test_a_whole_text_goes_on_to_its_last_frame_and_no_further(tmp_path: Path) -> None:
    stream = spoken_to(lab.runner(tmp_path, frames=lambda _: 4), "One two three", end=True)
    for ahead, expected in ((0, True), (2, True), (3, False)):
        stream.counts.ahead[stream.slot] = ahead
        assert able(stream) is expected
    stream.counts.ahead[stream.slot], stream.counts.phase[stream.slot] = 0, OVER
    assert not able(stream)


def test_text_that_still_comes_bounds_what_is_made_ahead(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, frames=lambda _: 40)
    stream = spoken_to(model, "One two three", end=False)
    counts, slot = stream.counts, stream.slot
    ahead = 0
    while able(stream):
        counts.ahead[slot] += 1
        ahead += 1
    assert stream.made + ahead == len(stream.known) - stream.in_prompt + 1
    assert stream.steppable(model._builder)  # what is made already can be fetched
    counts.ahead[slot] = 0
    counts.made[slot] += ahead
    assert not stream.steppable(model._builder)
    counts.owed[slot] = 1
    assert stream.steppable(model._builder)
    counts.owed[slot] = 0
    model.push_text(1, " four", flush=True, end=False)
    assert able(stream)
    model.push_text(1, "", flush=False, end=True)
    counts.ahead[slot] = 10
    assert able(stream)


def test_the_usual_answers_are_made_once(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, frames=lambda _: 9)
    spoken_to(model, "One", end=True)
    (one,), (again,) = model.step([1]), model.step([1])
    assert one is again
    assert one.frames == 1
    model.close(1)
    assert not any(model._seats._usual), "nothing is kept of an utterance that is over"


def test_nothing_is_kept_of_an_utterance_that_never_sat(tmp_path: Path) -> None:
    model = lab.runner(tmp_path)
    spoken_to(model, "  ", end=True)
    (answer,) = model.step([1])
    assert (answer.frames, answer.ended) == (0, True)
    model.close(1)
    assert not any(model._seats._usual)


def test_a_device_works_ahead_only_for_many() -> None:
    least = min(streams for streams, _ in EXTRA_FRAMES)
    assert extra_frames(least - 1) == 0
    assert extra_frames(least) > 0
