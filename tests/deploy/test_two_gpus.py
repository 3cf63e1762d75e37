"""bench/gpu/two_gpus.py: which rates are tried, and what follows from them."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench" / "gpu"))

from two_gpus import one_device, two_devices  # noqa: E402


def up_to(limit: float, tried: list[float]) -> Callable[[float], bool]:
    def holds(rate: float) -> bool:
        tried.append(rate)
        return rate <= limit

    return holds


@pytest.mark.parametrize(
    ("limit", "best", "above", "tried"),
    [
        (155, 150, [165], [120, 150, 165]),
        (200, 165, [], [120, 150, 165]),
        (100, 96, [120, 150, 165], [120, 96]),
        (10, 0, [120, 150, 165], [120, 96, 72, 48]),
    ],
)
def test_one_device(limit: float, best: float, above: list[float], tried: list[float]) -> None:
    asked: list[float] = []
    assert one_device([120, 150, 165], up_to(limit, asked)) == (best, above)
    assert asked == tried


@pytest.mark.parametrize(
    ("limit", "best", "tried"),
    [
        (305, 300, [300, 330]),
        (340, 330, [300, 330]),
        (295, 292.5, [300, 292.5]),
        (10, 0, [300, 292.5, 285, 270, 240]),
    ],
)
def test_two_devices(limit: float, best: float, tried: list[float]) -> None:
    asked: list[float] = []
    assert two_devices(150, [165], up_to(limit, asked)) == best
    assert asked == tried
