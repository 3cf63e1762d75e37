"""The model in a process of its own: what it says there is what it says here, sample for sample."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

import runner_lab as lab
from machine import until
from playhead.engine.remote.runner_proxy import start

CHILD = Path(__file__).resolve().parents[2] / "remote" / "model_child.py"


def test_the_model_sounds_the_same_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    here = lab.runner(tmp_path, frames=lambda _: 5)
    wanted = {number: lab.say(here, number, "One two three.").sound for number in (1, 2)}
    runner = start([sys.executable, str(CHILD)], b"qwen:" + str(tmp_path).encode())
    told: list[object] = []
    runner.follow(told.append)
    try:
        for number, sound in wanted.items():
            runner.open(lab.request(number))
            assert not runner.push_text(number, "One two three.", flush=False, end=True)
            until(lambda number=number: len(told) == number)
            heard = {number: lab.Heard()}
            lab.advance(runner, heard)  # type: ignore[arg-type]
            runner.close(number)
            np.testing.assert_array_equal(heard[number].sound, sound)
        assert runner.counts().uncaptured == 7
        runner.open(lab.request(9))
        runner.push_text(9, "word " * 100, flush=False, end=True)
        until(lambda: "at most 95 fit" in str(told[-1]))
    finally:
        runner.end()
