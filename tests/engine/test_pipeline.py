"""When a lane takes a second dispatch behind the one that its device is at."""

import math

import pytest
from playhead.engine.pipeline import DONE_BY, FULL_BY, WEIGHT, Begun, Pipeline

FULL = 8
ENOUGH = 4


def measured(pace: float = 0.1) -> Pipeline:
    """Which has had a dispatch of ten frames, until 10.0."""
    made = Pipeline(FULL)
    first = Begun(10.0 - 10 * pace, 10)
    made.start(first)
    assert made.done(first, 10 * pace, 10.0) == pytest.approx(10 * pace)
    return made


def test_half_a_batch_and_half_the_time() -> None:
    assert (DONE_BY, FULL_BY) == (0.5, 0.5)
    made = measured()
    assert made.due(FULL) == math.inf, "nothing runs: it would be the first"
    made.start(Begun(11.0, 20))
    assert made.due(ENOUGH) == pytest.approx(11.0 + 0.5 * 2.0)
    assert made.due(ENOUGH - 1) == math.inf


def test_nothing_goes_second_before_any_was_timed() -> None:
    made = Pipeline(FULL)
    made.start(Begun(0.0, 5))
    assert made.due(FULL) == math.inf
    assert not made.queued


def test_there_are_two_at_most() -> None:
    made = measured()
    made.start(Begun(11.0, 20))
    made.start(Begun(12.0, 20))
    assert made.queued
    assert made.due(FULL) == math.inf


def test_the_time_behind_another_is_not_its_own() -> None:
    made = measured(0.1)
    first, second = Begun(11.0, 20), Begun(12.0, 20)
    made.start(first)
    made.start(second)
    assert made.done(first, 2.0, 13.0) == 2.0
    assert not made.queued
    assert made.due(ENOUGH) == pytest.approx(13.0 + 0.5 * 2.0), "the device had it from 13 on"
    assert made.done(second, 3.0, 15.0) == 2.0


def test_a_first_one_that_comes_back_second_takes_nothing_twice() -> None:
    made = measured()
    first, second = Begun(11.0, 20), Begun(12.0, 20)
    made.start(first)
    made.start(second)
    assert made.done(second, 1.5, 13.5) == 1.5
    assert made.done(first, 2.75, 13.75) == 0.25


def test_what_a_frame_takes_follows_what_was_seen() -> None:
    made = measured(0.1)
    begun = Begun(20.0, 10)
    made.start(begun)
    made.done(begun, 2.0, 22.0)  # 0.2 a frame
    made.start(Begun(30.0, 10))
    assert made.due(FULL) == pytest.approx(30.0 + 0.5 * 10 * (0.1 + WEIGHT * 0.1))


def test_a_dispatch_of_nothing_says_nothing_of_frames() -> None:
    made = Pipeline(1)
    empty = Begun(0.0, 0)
    made.start(empty)
    assert made.done(empty, 1.0, 1.0) == 1.0
    made.start(Begun(1.0, 1))
    assert made.due(1) == math.inf
