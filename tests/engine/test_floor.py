"""What the fastest listener there could be would still hold."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playhead.engine.floor import CATCH_UP, QUICKEST, SUSTAINED, Floor

RATE = 1_000


def test_nothing_is_held_before_anything_was_sent() -> None:
    assert Floor(RATE).end == -math.inf


def test_for_a_while_a_listener_may_be_the_quickest() -> None:
    floor = Floor(RATE)
    floor.add(1_100, 5.0)
    assert floor.end == pytest.approx(6.0)
    floor.add(1_100, 5.5)
    assert floor.end == pytest.approx(7.0)


def test_but_not_for_long() -> None:
    floor = Floor(RATE)
    for second in range(60):
        floor.add(1_100, float(second))
    played = (floor.end + CATCH_UP) * SUSTAINED
    assert played == pytest.approx(66.0), "all that was sent, at the sustained rate"


def test_a_listener_that_ran_dry_starts_anew() -> None:
    floor = Floor(RATE)
    floor.add(RATE, 0.0)
    floor.add(1_100, 100.0)
    assert floor.end == pytest.approx(101.0)


@given(
    st.lists(st.tuples(st.integers(1, 3_000), st.floats(0.0, 5.0)), min_size=1, max_size=30),
    st.floats(0.5, SUSTAINED),
)
def test_no_listener_with_an_ordinary_clock_ever_holds_less(
    sends: list[tuple[int, float]], rate: float
) -> None:
    floor, held, now = Floor(RATE), 0.0, 0.0
    for samples, pause in sends:
        held = max(0.0, held - pause * rate * RATE)
        now += pause
        held += samples
        floor.add(samples, now)
        assert floor.end - now <= held / RATE / rate + 1e-9


@given(st.integers(1, 2_000))
def test_a_player_that_catches_up_a_jitter_buffer_is_believed(samples: int) -> None:
    """Ten per cent too fast for as long as that takes."""
    floor, now = Floor(RATE), 0.0
    while (dry := now + samples / RATE / QUICKEST) < CATCH_UP * 10:
        floor.add(samples, now)
        assert floor.end <= dry + 1e-6
        now = dry
