"""Every part of the model that is called operation by operation is counted."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

import runner_lab as lab
from playhead.engine.models.qwen3_tts.calls import Uncaptured, counted


def test_calls_are_counted_from_then_on() -> None:
    @counted("a part of this test")
    def part(first: int, *, second: int) -> int:
        """What it does."""
        return first + second

    before = Uncaptured()
    assert before.parts == {}
    assert part(1, second=2) == 3
    assert part.__doc__ == "What it does."
    after = Uncaptured()
    part(1, second=3)
    assert before.parts == {"a part of this test": 2}
    assert before() == 2
    assert after() == 1


def test_a_spoken_utterance_calls_every_part_of_its_way(tmp_path: Path) -> None:
    """On the processor nothing is captured, so all of it shows."""
    model = lab.runner(tmp_path, frames=lambda _: 3)
    calls = Uncaptured()
    lab.say(model, 1, "One two three")
    assert calls.parts == {"prompts": 1, "talker": 2, "predictor": 3, "codec": 3}
