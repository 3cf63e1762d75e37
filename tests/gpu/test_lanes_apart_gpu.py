"""The CUDA lanes in a process of their own: what they say, and that the other needs no device."""

import os
import sys
import time
from pathlib import Path

import gpu_kit as kit
import pytest
from apart_child import FRAMES
from gpu_kit import Made, Report
from playhead.engine.answers import Answer, News
from playhead.engine.remote.runner_proxy import RunnerProxy, start
from playhead.engine.types import Pcm, RunnerDead
from runner_lab import Heard, advance, request
from test_lanes_gpu import CLOSE, TEXTS, furthest, speak

pytestmark = pytest.mark.gpu
CHILD = Path(__file__).with_name("apart_child.py")
PATIENCE = 60.0


def speak_apart(runner: RunnerProxy, numbers: list[int]) -> dict[int, Pcm]:
    """As ``speak``; steps follow once every text has been answered."""
    answers: list[Answer] = []

    def hear(news: News) -> None:
        assert not isinstance(news, RunnerDead), news
        answers.extend(news)

    runner.follow(hear)
    for number in numbers:
        runner.open(request(number, seed=number))
        runner.push_text(number, TEXTS[number % len(TEXTS)], flush=False, end=True)
    until = time.monotonic() + PATIENCE
    while len(answers) < len(numbers) and time.monotonic() < until:
        time.sleep(0.001)
    assert sorted(answer.utterance for answer in answers if answer.steppable) == numbers
    heard = {number: Heard() for number in numbers}
    advance(runner, heard, most=400)  # type: ignore[arg-type]
    for number in numbers:
        runner.close(number)
    return {number: heard[number].sound for number in numbers}


def test_lanes_apart_say_what_lanes_here_say(
    tmp_path: Path, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    numbers = list(range(1, 9))
    here = speak(kit.tiny_runner(Made(tmp_path, frames=lambda _: FRAMES)), numbers)
    runner = start([sys.executable, str(CHILD)], str(tmp_path).encode())
    try:
        difference = furthest(speak_apart(runner, numbers), here)
        report("largest difference of PCM", difference)
        assert difference < CLOSE
        assert runner.counts().uncaptured == 0
    finally:
        runner.end()
    assert runner._process.returncode == 0
