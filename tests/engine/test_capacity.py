"""What a second of speech takes of the lanes, alone and in a crowd."""

import pytest
from playhead.engine.capacity import KNOWN, MEMORY, MOST, Capacity, Fit, Stage
from playhead.engine.policy import LaneLimits
from playhead.engine.types import Lane

SHARED = LaneLimits(2, dict.fromkeys(Lane, 2), {Lane.LM: 1, Lane.URGENT: 4, Lane.BACKGROUND: 4})
BATCHED = LaneLimits(3, dict.fromkeys(Lane, 1), dict.fromkeys(Lane, 64))


def work(capacity: Capacity, lane: Lane, seconds: float, cost: float) -> None:
    """Make ``seconds`` of speech in ``lane``, one by one."""
    for _ in range(round(seconds)):
        capacity.note(lane, cost, 1, 1.0)


def test_the_cost_of_a_second_is_that_of_backbone_and_codec() -> None:
    capacity = Capacity(SHARED)
    work(capacity, Lane.LM, 20, 0.05)
    work(capacity, Lane.URGENT, 5, 0.10)
    work(capacity, Lane.BACKGROUND, 15, 0.02)
    assert capacity.cost(1) == pytest.approx(0.05 + (5 * 0.10 + 15 * 0.02) / 20)
    assert capacity.cost(30) == capacity.cost(1), "workers that share what comes"


def test_frames_made_and_not_yet_decoded_do_not_look_dear() -> None:
    """A backbone may be seconds ahead of the codec, all the more when many start at once."""
    capacity = Capacity(SHARED)
    work(capacity, Lane.LM, 500, 0.01)
    work(capacity, Lane.URGENT, KNOWN, 0.03)
    assert capacity.cost(1) == pytest.approx(0.04)


def test_the_cost_is_unknown_until_enough_was_made() -> None:
    capacity = Capacity(SHARED)
    assert capacity.cost(1) == 0.0
    work(capacity, Lane.LM, 100, 0.01)
    work(capacity, Lane.URGENT, KNOWN - 1, 0.5)
    assert not capacity.known
    assert capacity.cost(1) == 0.0
    work(capacity, Lane.BACKGROUND, 1, 0.5)
    assert capacity.known
    assert capacity.cost(1) > 0.0


def test_the_cost_follows_the_machine() -> None:
    capacity = Capacity(SHARED)
    work(capacity, Lane.LM, 1000, 0.01)
    work(capacity, Lane.BACKGROUND, 1000, 0.01)
    work(capacity, Lane.BACKGROUND, 3 * MOST, 0.09)
    assert capacity.cost(1) == pytest.approx(0.10, rel=0.1)


def test_it_follows_within_seconds_of_work() -> None:
    capacity = Capacity(SHARED)
    work(capacity, Lane.LM, 60, 0.01)
    work(capacity, Lane.BACKGROUND, 60, 0.03)
    work(capacity, Lane.BACKGROUND, 3 * MEMORY / 0.3, 0.3)
    assert capacity.cost(1) > 0.75 * 0.31


def batches(*sizes: int, fixed: float, each: float) -> Fit:
    fit = Fit()
    for size in sizes:
        fit.add(size, fixed + each * size)
    return fit


def test_a_fit_tells_what_a_dispatch_costs_from_what_each_stream_does() -> None:
    fit = batches(1, 2, 8, fixed=0.010, each=0.001)
    for batch in (1.0, 8.0, 64.0):
        assert fit.each(batch) == pytest.approx(0.010 / batch + 0.001)


def test_while_all_batches_are_alike_all_of_it_is_fixed() -> None:
    fit = batches(4, 4, 4, fixed=0.010, each=0.001)
    assert fit.each(4.0) == pytest.approx(0.014 / 4)
    assert fit.each(8.0) == pytest.approx(0.014 / 8)


@pytest.mark.parametrize(("fixed", "each"), [(0.100, -0.001), (-0.01, 0.02)])
def test_nothing_is_free_and_nothing_pays(fixed: float, each: float) -> None:
    """Noise may tilt a fit beyond what is possible."""
    fit = batches(1, 8, fixed=fixed, each=each)
    assert 0.0 < fit.each(64.0) <= fit.each(1.0)


def test_what_is_made_for_nobody_counts_as_time_alone() -> None:
    stage = Stage()
    stage.add(0.5, 0, 1.0)
    assert stage.cost(8.0) == 0.5


def accelerated(batch: int) -> Capacity:
    """80 ms a step: 7 ms and 0.1 ms a stream; codec 1 ms and 0.5 ms for a third of a second."""
    capacity = Capacity(BATCHED)
    for size in (1, 2, batch):
        for _ in range(200):
            capacity.note(Lane.LM, 0.007 + 1e-4 * size, size, 0.08 * size)
            capacity.note(Lane.BACKGROUND, 0.001 + 5e-4 * size, size, 0.32 * size)
    return capacity


def test_capacity_is_not_one_over_latency() -> None:
    capacity = accelerated(4)
    alone, crowd = capacity.cost(1), capacity.cost(64)
    assert 11 * alone / BATCHED.workers > 0.35, "eleven of them alone would fill the backbone"
    assert 64 * crowd / BATCHED.workers < 0.3, "and 64 in a batch do not"
    full = (0.007 / 64 + 1e-4) / 0.08
    assert crowd == pytest.approx(full * BATCHED.workers, rel=0.1), "the backbone is full first"
    assert capacity.cost(640) == pytest.approx(crowd), "no batch is larger than the lane takes"


def test_batches_as_large_as_they_are_are_not_counted_smaller() -> None:
    capacity = accelerated(32)
    assert capacity.cost(1) <= accelerated(4).cost(1)


def test_the_backbone_s_part_is_told_once_it_is_known() -> None:
    capacity = Capacity(SHARED)
    assert capacity.backbone_part == 0.0
    capacity.note(Lane.LM, 1.0, 1, KNOWN)
    capacity.note(Lane.URGENT, 3.0, 1, KNOWN)
    assert capacity.backbone_part == pytest.approx(0.25)
