"""Quantiles over a window, and counts of what lanes have done."""

import random

import pytest
from playhead.engine.meters import HORIZON, LEAST, Meters, RollingQuantile
from playhead.engine.types import Lane


def test_a_quantile_is_the_first_guess_until_something_is_measured() -> None:
    quantile = RollingQuantile(0.02)
    assert quantile.quantile(0.95) == 0.02
    quantile.add(7.0, 0.0)
    assert quantile.quantile(0.95) == quantile.quantile(0.0) == quantile.quantile(1.0) == 7.0


@pytest.mark.parametrize(("q", "value"), [(0.0, 0), (0.5, 50), (0.95, 95), (0.99, 99), (1.0, 99)])
def test_quantiles_are_by_nearest_rank(q: float, value: float) -> None:
    quantile = RollingQuantile(0.0)
    for number in random.Random(1).sample(range(100), 100):
        quantile.add(float(number), 0.0)
    assert quantile.quantile(q) == value


def test_old_values_leave_the_window_in_their_order() -> None:
    quantile = RollingQuantile(0.0, window=3)
    for number in (9.0, 5.0, 5.0, 1.0):
        quantile.add(number, 0.0)
    assert [quantile.quantile(q) for q in (0.0, 0.5, 1.0)] == [1.0, 5.0, 5.0]
    quantile.add(2.0, 0.0)
    quantile.add(3.0, 0.0)
    assert [quantile.quantile(q) for q in (0.0, 0.5, 1.0)] == [1.0, 2.0, 3.0]


def test_what_a_crowd_measured_is_forgotten_when_it_has_gone() -> None:
    quantile = RollingQuantile(0.0)
    for number in range(100):
        quantile.add(7.0, 0.01 * number)
    quantile.add(0.1, 1.0 + HORIZON / 2)
    assert quantile.quantile(0.5) == 7.0  # it may still be there
    for number in range(1, LEAST - 1):
        quantile.add(0.1, 1.0 + HORIZON + number)
        assert quantile.quantile(1.0) == 7.0  # the newest stay, however old
    quantile.add(0.1, 10.0 + HORIZON)
    assert quantile.quantile(1.0) == 0.1


def test_a_dispatch_is_one_service_and_a_sojourn_per_item() -> None:
    meter = Meters.starting_from(0.02)[Lane.BACKGROUND]
    assert meter.sojourn.quantile(0.95) == meter.service.quantile(0.95) == 0.02
    meter.done(0.1, [0.3, 0.4], 0.0)
    meter.done(0.2, [0.5], 0.0)
    assert (meter.dispatches, meter.items) == (2, 3)
    assert meter.busy_seconds == pytest.approx(0.3)
    assert meter.service.quantile(1.0) == 0.2
    assert meter.sojourn.quantile(0.0) == 0.3
    assert meter.sojourn.quantile(1.0) == 0.5


def test_batches_are_told_apart_by_size() -> None:
    lane = Meters.starting_from(0.02)[Lane.LM]
    for size in (0, 1, 2, 3, 256, 257):
        lane.done(0.1, [0.1] * size, 0.0)
    assert lane.batches == [2, 1, 1, 0, 0, 0, 0, 0, 1, 1]
