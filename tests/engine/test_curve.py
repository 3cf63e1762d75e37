"""What a full batch would yield, from batches of whatever sizes there were."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playhead.engine.curve import RECENT, STEADY, Curve

FRAME = 0.08
costs = st.floats(1e-4, 0.05)
sizes = st.lists(st.integers(1, 512), min_size=1, max_size=12)


def learned(
    batches: list[int], fixed: float, each: float, frames: int = 1, times: int = 1
) -> Curve:
    """From dispatches that take ``fixed + each * n`` seconds for each frame of all."""
    curve = Curve()
    for _ in range(times):
        for n in batches:
            curve.add(frames * (fixed + each * n), n, frames * n * FRAME)
    return curve


def true_cost(batch: float, fixed: float, each: float) -> float:
    return (fixed + each * batch) / FRAME / batch


def far_apart(batches: list[int]) -> bool:
    return max(batches).bit_length() - min(batches).bit_length() >= 2


@settings(max_examples=60, deadline=None)
@given(sizes.filter(far_apart), costs, costs, st.integers(1, 4))
def test_the_line_is_found_whatever_the_sizes_and_frames(
    batches: list[int], fixed: float, each: float, frames: int
) -> None:
    curve = learned(batches, fixed, each, frames, times=3)
    for batch in (max(batches), 2 * max(batches), 4 * max(batches)):
        assert curve.cost(batch) == pytest.approx(true_cost(batch, fixed, each), rel=0.02)


@settings(max_examples=60, deadline=None)
@given(sizes, st.lists(costs, min_size=1, max_size=12), st.integers(1, 1000))
def test_nothing_is_free_and_a_larger_batch_never_costs_a_stream_more(
    batches: list[int], held: list[float], batch: int
) -> None:
    """Whatever the noise."""
    curve = Curve()
    for n, seconds in zip(batches, held, strict=False):
        curve.add(seconds, n, n * FRAME)
    small, large = curve.cost(batch), curve.cost(2 * batch)
    assert 0.0 < large <= small * (1 + 1e-9)
    assert 2 * large >= small * (1 - 1e-9), "nor less than if all of it were shared out"


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(1, 512), min_size=2, max_size=4).filter(far_apart),
    st.floats(5e-3, 0.05),
    st.floats(1e-5, 1e-3),
    st.floats(0.4, 2.5),
    st.integers(1, 512),
)
def test_a_machine_that_has_become_slower_is_slower_at_every_size(
    batches: list[int], fixed: float, each: float, slower: float, now: int
) -> None:
    """Known of one size, it is told of all: others are not waited for."""
    curve = learned(batches, fixed, each, times=int(STEADY / (fixed + each)))
    held = slower * (fixed + each * now)
    for _ in range(1 + int(8 * RECENT / held)):
        curve.add(held, now, now * FRAME)
    batch = 4 * max(*batches, now)
    assert curve.cost(batch) == pytest.approx(slower * true_cost(batch, fixed, each), rel=0.3)


def test_batches_alike_say_nothing_of_what_each_stream_takes() -> None:
    """All of it counts as fixed: a busier lane shows it."""
    curve = learned([4], 0.010, 0.001, times=3)
    assert curve.cost(4) == pytest.approx(0.014 / FRAME / 4)
    assert curve.cost(8) == pytest.approx(0.014 / FRAME / 8)


def test_no_batch_counts_as_smaller_than_they_are_of_late() -> None:
    curve = learned([1, 32], 0.010, 0.001, times=5)
    assert curve.cost(1) == curve.cost(10) == pytest.approx(true_cost(31, 0.010, 0.001), rel=0.1)
    for _ in range(int(8 * RECENT / 0.011)):
        curve.add(0.011, 1, FRAME)
    assert curve.cost(1) == pytest.approx(true_cost(1, 0.010, 0.001), rel=0.1)


def test_a_rare_size_counts_as_much_as_the_usual_one() -> None:
    """Years at sixteen do not make what four hundred cost forgotten."""
    curve = learned([16], 0.010, 0.001, times=2000)
    for _ in range(20):
        curve.add(0.010 + 0.001 * 400, 400, 400 * FRAME)
    for _ in range(1000):
        curve.add(0.010 + 0.001 * 16, 16, 16 * FRAME)
    assert curve.cost(512) == pytest.approx(true_cost(512, 0.010, 0.001), rel=0.1)


def test_work_that_makes_nothing_is_paid_by_what_follows() -> None:
    curve = Curve()
    curve.add(0.030, 8, 0.0)
    curve.add(0.020, 0, 0.0)
    assert curve.audio == 0.0
    curve.add(0.010, 1, FRAME)
    assert curve.cost(1) == pytest.approx(0.060 / FRAME)
    curve.add(0.010, 1, FRAME)
    assert curve.cost(1) == pytest.approx(0.035 / FRAME), "once"
