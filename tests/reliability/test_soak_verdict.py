"""A soak's verdict: growth is told apart from a rise that ends, and from memory that wanders."""

import importlib.util
import math
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent.parent


def loaded() -> ModuleType:
    path = ROOT / "bench" / "reliability" / "soak_verdict.py"
    spec = importlib.util.spec_from_file_location("soak_verdict", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules.setdefault("soak_verdict", importlib.util.module_from_spec(spec))
    spec.loader.exec_module(module)
    return module


soak = loaded()
BEFORE = soak.Sample(0.0, 200.0, 14, 9, 2, 0, 0)
AFTER = replace(BEFORE, at=1900.0, utterances=1_250, lags=18_000, lags_good=17_950)


def half_an_hour(growth: float, *, start: float = 0.0) -> list[object]:
    """Every 10 s; ``growth`` MiB an hour, after a rise of ``start`` MiB in the first minutes."""
    return [
        soak.Sample(at, 200 + start * min(1, at / 300) + growth * at / 3600, 18, 9, 5, 3, int(at))
        for at in range(10, 1810, 10)
    ]


def missed(lines: list[object]) -> list[str]:
    return [line.what.partition(",")[0] for line in lines if line.good is False]  # type: ignore[attr-defined]


def test_flat_memory_meets_all() -> None:
    lines = soak.verdict(BEFORE, half_an_hour(0.5, start=8.0), AFTER, hurry=False)
    assert missed(lines) == []
    assert "| +0.50 ± 0.00 MiB an hour" in soak.table(lines)


def test_growth_misses() -> None:
    assert missed(soak.verdict(BEFORE, half_an_hour(1.5), AFTER, hurry=False)) == ["memory"]
    # In a hurry an hour is reckoned by utterances: here one a second, 3,600 an hour.
    assert missed(soak.verdict(BEFORE, half_an_hour(1.5), AFTER, hurry=True)) == ["memory"]
    assert missed(soak.verdict(BEFORE, half_an_hour(1.2), AFTER, hurry=True)) == []


def test_what_stays_open_misses() -> None:
    left = replace(AFTER, descriptors=15, tasks=3, threads=10, sessions=1)
    found = missed(soak.verdict(BEFORE, half_an_hour(0.0), left, hurry=False))
    assert found == ["descriptors", "threads", "tasks", "sessions"]


def test_a_late_loop_misses() -> None:
    late = replace(AFTER, lags_good=17_800)
    assert len(missed(soak.verdict(BEFORE, half_an_hour(0.0), late, hurry=False))) == 1


def test_lags_are_read_from_the_metrics() -> None:
    text = "".join(
        f'playhead_loop_lag_seconds_bucket{{le="{bound}"}} {count}\n'
        for bound, count in (("0.005", "7.0"), ("0.01", "9.0"), ("0.02", "10.0"), ("+Inf", "12.0"))
    )
    assert soak.lags(text) == (12, 9)
    assert soak.lags("") == (0, 0)


def test_too_few_samples_say_nothing() -> None:
    assert soak.slope([1.0, 2.0], [1.0, 2.0]) == (0.0, math.inf)
