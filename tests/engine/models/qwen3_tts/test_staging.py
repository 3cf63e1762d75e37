# ruff: noqa: E402 - what follows needs torch
"""Memory between host and device, used in turns."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

from playhead.engine.models.qwen3_tts.staging import Staging

CPU = torch.device("cpu")


def test_numbers_arrive_however_often_the_memory_was_used() -> None:
    staging = Staging(6, CPU, turns=2)
    for turn in range(5):
        to = torch.zeros((2, 3), dtype=torch.int64)
        staging.send(to, range(turn, turn + 6))
        assert to.flatten().tolist() == list(range(turn, turn + 6))
    short = torch.zeros(2, dtype=torch.int64)
    staging.send(short, [8, 9])
    assert short.tolist() == [8, 9]


@pytest.mark.parametrize(("places", "numbers"), [(3, 2), (2, 3), (7, 7)])
def test_counts_must_agree_and_fit(places: int, numbers: int) -> None:
    with pytest.raises(ValueError, match=f"{numbers} numbers for {places} places, at most 6"):
        Staging(6, CPU).send(torch.zeros(places, dtype=torch.int64), [1] * numbers)
