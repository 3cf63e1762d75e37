"""Clients that have lost the same server do not come back in step."""

import random
from itertools import islice

import pytest
from playhead.client.backoff import FIRST, LONGEST, REACH, SPREAD, pauses, reaches


def test_pauses_double_up_to_the_longest() -> None:
    middle = list(islice(pauses(lambda: 0.5), 8))
    assert middle[:3] == pytest.approx([FIRST, 2 * FIRST, 4 * FIRST])
    assert middle[-1] == pytest.approx(LONGEST)


@pytest.mark.parametrize(("drawn", "factor"), [(0.0, 1 - SPREAD), (1.0, 1 + SPREAD)])
def test_a_pause_is_no_shorter_and_no_longer_than_said(drawn: float, factor: float) -> None:
    assert next(pauses(lambda: drawn)) == pytest.approx(factor * FIRST)


def test_a_thousand_come_back_spread_out() -> None:
    rng = random.Random(7)
    third = sorted(sum(islice(pauses(rng.random), 3)) for _ in range(1_000))
    tenth = (third[-1] - third[0]) / 10
    busiest = max(sum(at <= moment < at + tenth for moment in third) for at in third)
    assert busiest < 250


def test_each_attempt_has_twice_as_long_to_arrive() -> None:
    assert list(islice(reaches(), 3)) == [REACH, 2 * REACH, 4 * REACH]
