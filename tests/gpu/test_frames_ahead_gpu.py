"""Frames that the device makes ahead of its host are those that it would have made anyway."""

from pathlib import Path

import gpu_kit as kit
import pytest
from gpu_kit import Made, Report
from playhead.engine.models.qwen3_tts import cuda_runner
from playhead.engine.models.qwen3_tts.runner import Options, Qwen3Runner
from runner_lab import Heard, advance, request
from test_lanes_gpu import CLOSE, furthest, speak

pytestmark = pytest.mark.gpu
FRAMES = 13


@pytest.mark.parametrize("extra", [1, 2, 3])
def test_a_device_ahead_of_its_host_says_the_same(
    tmp_path: Path, extra: int, monkeypatch: pytest.MonkeyPatch, report: Report
) -> None:
    made = Made(tmp_path, frames=lambda _: FRAMES)
    numbers = list(range(1, 13))
    plain = speak(Qwen3Runner(kit.tiny_parts(made), Options(frames=made.frames)), numbers)
    monkeypatch.setattr(cuda_runner, "EXTRA_FRAMES", ((1, extra),))
    ahead = speak(kit.tiny_runner(made), numbers)
    difference = furthest(ahead, plain)
    report(f"largest difference of PCM, {extra} ahead", difference)
    assert difference < CLOSE


def test_slots_change_hands_though_the_device_was_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An utterance given up in the middle leaves frames on the device that are nobody's: whoever
    gets its slot is not disturbed."""
    made = Made(tmp_path, frames=lambda _: FRAMES)
    alone = speak(kit.tiny_runner(made), [5])
    monkeypatch.setattr(cuda_runner, "EXTRA_FRAMES", ((1, 2),))
    model = kit.tiny_runner(made)
    for number in range(100, 100 + kit.SLOTS):
        model.open(request(number, seed=number))
        model.push_text(number, "Something else altogether", flush=False, end=True)
    running = list(range(100, 100 + 16))
    model.step(running)
    model.step(running)
    for number in range(100, 100 + kit.SLOTS):
        model.close(number)
    again = speak(model, [5])
    assert furthest(again, alone) < CLOSE


def test_text_that_comes_late_is_waited_for_ahead_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(tmp_path, frames=lambda _: FRAMES)
    sounds = []
    for extra in (0, 3):
        monkeypatch.setattr(cuda_runner, "EXTRA_FRAMES", ((1, extra),))
        model = kit.tiny_runner(made)
        model.open(request(1))
        heard = {1: Heard()}
        for piece in ("One word, ", "and two ", "and then the rest of it"):
            model.push_text(1, piece, flush=True, end=False)
            advance(model, heard)
        model.push_text(1, "", flush=False, end=True)
        advance(model, heard)
        assert heard[1].frames == FRAMES
        sounds.append({1: heard[1].sound})
    assert furthest(*sounds) < CLOSE
