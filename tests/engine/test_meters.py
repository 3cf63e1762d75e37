"""Quantiles over a window, and what a second of speech costs."""

import random

import pytest
from playhead.engine.meters import KNOWN, MEMORY, Meters, RollingQuantile
from playhead.engine.types import Lane


def test_a_quantile_is_the_first_guess_until_something_is_measured() -> None:
    quantile = RollingQuantile(0.02)
    assert quantile.quantile(0.95) == 0.02
    quantile.add(7.0)
    assert quantile.quantile(0.95) == quantile.quantile(0.0) == quantile.quantile(1.0) == 7.0


@pytest.mark.parametrize(("q", "value"), [(0.0, 0), (0.5, 50), (0.95, 95), (0.99, 99), (1.0, 99)])
def test_quantiles_are_by_nearest_rank(q: float, value: float) -> None:
    quantile = RollingQuantile(0.0)
    for number in random.Random(1).sample(range(100), 100):
        quantile.add(float(number))
    assert quantile.quantile(q) == value


def test_old_values_leave_the_window_in_their_order() -> None:
    quantile = RollingQuantile(0.0, window=3)
    for number in (9.0, 5.0, 5.0, 1.0):
        quantile.add(number)
    assert [quantile.quantile(q) for q in (0.0, 0.5, 1.0)] == [1.0, 5.0, 5.0]
    quantile.add(2.0)
    quantile.add(3.0)
    assert [quantile.quantile(q) for q in (0.0, 0.5, 1.0)] == [1.0, 2.0, 3.0]


def test_a_dispatch_is_one_service_and_a_sojourn_per_item() -> None:
    meter = Meters.starting_from(0.02)[Lane.BACKGROUND]
    assert meter.sojourn.quantile(0.95) == meter.service.quantile(0.95) == 0.02
    meter.done(0.1, [0.3, 0.4], 1.0)
    meter.done(0.2, [0.5], 0.5)
    assert (meter.dispatches, meter.items) == (2, 3)
    assert meter.busy_seconds == pytest.approx(0.3)
    assert meter.service.quantile(1.0) == 0.2
    assert meter.sojourn.quantile(0.0) == 0.3
    assert meter.sojourn.quantile(1.0) == 0.5


def work(meters: Meters, lane: Lane, seconds: float, cost: float) -> None:
    """Make ``seconds`` of speech in ``lane``, one by one."""
    for _ in range(round(seconds)):
        meters[lane].done(cost, [cost], 1.0)


def test_the_cost_of_a_second_is_that_of_backbone_and_codec() -> None:
    meters = Meters.starting_from(0.02)
    work(meters, Lane.LM, 20, 0.05)
    work(meters, Lane.URGENT, 5, 0.10)
    work(meters, Lane.BACKGROUND, 15, 0.02)
    assert meters.cost_per_second() == pytest.approx(0.05 + (5 * 0.10 + 15 * 0.02) / 20)


def test_frames_made_and_not_yet_decoded_do_not_look_dear() -> None:
    """A backbone may be seconds ahead of the codec, all the more when many start at once."""
    meters = Meters.starting_from(0.02)
    work(meters, Lane.LM, 500, 0.01)
    work(meters, Lane.URGENT, KNOWN, 0.03)
    assert meters.cost_per_second() == pytest.approx(0.04)


def test_the_cost_is_unknown_until_enough_was_made() -> None:
    meters = Meters.starting_from(0.02)
    assert meters.cost_per_second() == 0.0
    work(meters, Lane.LM, 100, 0.01)
    work(meters, Lane.URGENT, KNOWN - 1, 0.5)
    assert meters.cost_per_second() == 0.0
    work(meters, Lane.BACKGROUND, 1, 0.5)
    assert meters.cost_per_second() > 0.0


def test_the_cost_follows_the_machine() -> None:
    meters = Meters.starting_from(0.02)
    work(meters, Lane.LM, 1000, 0.01)
    work(meters, Lane.BACKGROUND, 1000, 0.01)
    work(meters, Lane.BACKGROUND, 3 * MEMORY, 0.09)
    assert meters.cost_per_second() == pytest.approx(0.10, rel=0.1)


def test_batches_are_told_apart_by_size() -> None:
    lane = Meters.starting_from(0.02)[Lane.LM]
    for size in (0, 1, 2, 3, 256, 257):
        lane.done(0.1, [0.1] * size, 1.0)
    assert lane.batches == [2, 1, 1, 0, 0, 0, 0, 0, 1, 1]
