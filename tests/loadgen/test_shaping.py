"""Shaped networks as times, with literal numbers."""

import math
import random

import pytest
from playhead.loadgen.shaping import NETWORKS, Conditions, Shaper, Weather


def shaper(start: float = 0.0, **conditions: float) -> Shaper:
    given = Conditions(**conditions)  # type: ignore[arg-type]
    rng = random.Random(1)
    return Shaper(given, Weather(given, rng, start), rng)


def test_nothing_is_shaped_by_default() -> None:
    assert shaper().release(1_000_000, 5.0) == 5.0


def test_delay_is_added_to_everything() -> None:
    line = shaper(delay=0.05)
    assert line.release(100, 1.0) == pytest.approx(1.05)
    assert line.release(100, 2.0) == pytest.approx(2.05)


def test_bandwidth_makes_a_queue_and_the_queue_drains() -> None:
    line = shaper(bandwidth=1_000)
    assert [line.release(500, 1.0) for _ in range(3)] == pytest.approx([1.5, 2.0, 2.5])
    assert line.release(500, 10.0) == pytest.approx(10.5)


def test_jitter_never_changes_the_order() -> None:
    line = shaper(jitter=0.5)
    times = [line.release(10, number * 0.01) for number in range(300)]
    assert times == sorted(times)
    assert all(number * 0.01 <= at for number, at in enumerate(times))
    assert max(at - number * 0.01 for number, at in enumerate(times)) <= 0.5


def test_stalls_have_their_length_and_frequency() -> None:
    given = Conditions(stall_every=5.0, stall=(0.3, 1.5))
    weather = Weather(given, random.Random(3), 100.0)
    held = [(at, weather.clear(at)) for at in (100 + 0.01 * n for n in range(100_000))]
    ends = {there for at, there in held if there > at}
    assert len(ends) == pytest.approx(1_000 / 5.9, rel=0.15)
    longest = max(there - at for at, there in held)
    assert 1.3 < longest <= 1.5


def test_a_black_hole_swallows_all_that_comes_after_it() -> None:
    line = shaper(start=10.0, delay=1.0, black_hole_after=5.0)
    assert line.release(1, 13.9) == pytest.approx(14.9)
    assert line.release(1, 14.1) == math.inf
    assert line.release(1, 14.2) == math.inf


def test_the_named_networks_are_worse_than_none() -> None:
    for conditions in NETWORKS.values():
        assert conditions.delay > 0
    assert NETWORKS["shaky"].stall_every < math.inf
