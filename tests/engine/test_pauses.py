"""How long the machine itself stood still."""

import math

import pytest
from playhead.engine.pauses import HALF_LIFE, MOST, Pauses


def test_who_comes_late_has_stood_still() -> None:
    pauses = Pauses()
    assert pauses.worst(5.0) == 0.0
    pauses.turn(5.0)
    assert pauses.worst(5.0) == 0.0, "nothing was due"
    pauses.expect(6.0)
    pauses.turn(5.9)
    assert pauses.worst(5.9) == 0.0
    pauses.expect(6.0)
    pauses.turn(6.4)
    assert pauses.worst(6.4) == pytest.approx(0.4)
    pauses.expect(math.inf)
    pauses.turn(99.0)
    assert pauses.worst(6.4 + HALF_LIFE) == pytest.approx(0.2)


def test_the_worst_is_remembered_until_it_has_faded() -> None:
    pauses = Pauses()
    for due, now in ((1.0, 1.8), (2.0, 2.1), (2.0 + 3 * HALF_LIFE, 2.3 + 3 * HALF_LIFE)):
        pauses.expect(due)
        pauses.turn(now)
        assert pauses.worst(now) >= now - due
    assert pauses.worst(2.3 + 3 * HALF_LIFE) == pytest.approx(0.3)


def test_a_machine_that_was_suspended_for_hours_does_not_remember_it_for_hours() -> None:
    pauses = Pauses()
    pauses.expect(1.0)
    pauses.turn(30_000.0)
    assert pauses.worst(30_000.0) == MOST
    assert pauses.worst(30_000.0 + 5 * HALF_LIFE) < 0.05


def test_what_gateways_tell_counts_for_each_alone_where_it_is_worse() -> None:
    pauses = Pauses()
    pauses.expect(1.0)
    pauses.turn(1.2)
    pauses.told(1, 0.5, 2.0)
    pauses.told(1, 0.3, 3.0)
    pauses.told(2, 0.1, 3.0)
    assert pauses.worst(3.0) == pytest.approx(0.2, rel=0.05)
    assert pauses.elsewhere(3.0) == {1: pytest.approx(0.5, rel=0.05)}
    assert pauses.elsewhere(2.0 + HALF_LIFE)[1] == pytest.approx(0.25)
