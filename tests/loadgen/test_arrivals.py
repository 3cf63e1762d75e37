"""Arrival processes: their laws, their seeds, and what they refuse."""

import itertools
import statistics
from collections.abc import Callable

import pytest
from playhead.loadgen.arrivals import constant, gamma, poisson, trace


def gaps(times: list[float]) -> list[float]:
    return [b - a for a, b in itertools.pairwise(times)]


def test_constant_counts_exactly() -> None:
    assert constant(4.0, 1.0) == [0.0, 0.25, 0.5, 0.75]
    assert len(constant(3.0, 10.0)) == 30
    assert constant(2.0, 0.0) == []


def test_poisson_keeps_its_rate_and_varies_like_an_exponential() -> None:
    times = poisson(50.0, 200.0, seed=1)
    assert len(times) == pytest.approx(10_000, rel=0.04)
    between = gaps(times)
    assert statistics.stdev(between) == pytest.approx(statistics.mean(between), rel=0.05)
    assert times == sorted(times)
    assert times[0] > 0
    assert times[-1] < 200


def test_gamma_keeps_its_rate_and_has_the_asked_variation() -> None:
    between = gaps(gamma(50.0, 400.0, seed=1, variation=3.0))
    assert statistics.mean(between) == pytest.approx(1 / 50, rel=0.06)
    assert statistics.stdev(between) / statistics.mean(between) == pytest.approx(3.0, rel=0.1)


@pytest.mark.parametrize("process", [poisson, gamma])
def test_one_seed_gives_one_schedule(process: Callable[[float, float, int], list[float]]) -> None:
    assert process(5.0, 20.0, 7) == process(5.0, 20.0, 7)
    assert process(5.0, 20.0, 7) != process(5.0, 20.0, 8)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_rates_that_are_none_are_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        constant(rate, 1.0)
    with pytest.raises(ValueError, match="must be above 0"):
        poisson(rate, 1.0, 0)
    with pytest.raises(ValueError, match="must be above 0"):
        gamma(1.0, 1.0, 0, variation=rate)


def test_trace_starts_at_zero_in_order_and_ends_in_time() -> None:
    lines = ["# recorded on a Monday", "12.5", "", " 10 ", "99"]
    assert trace(lines) == [0.0, 2.5, 89.0]
    assert trace(lines, seconds=60.0) == [0.0, 2.5]


@pytest.mark.parametrize(
    ("lines", "says"),
    [(["1", "x"], "line 2 of the trace is 'x'"), (["nan"], "line 1"), (["#"], "holds no times")],
)
def test_trace_says_what_is_wrong(lines: list[str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        trace(lines)
