"""What a second of speech takes of the lanes, alone and in a crowd."""

import pytest
from playhead.engine.capacity import KNOWN, MEMORY, MOST, MOST_HELD, Capacity
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
    alone, crowd = accelerated(1).cost(1), capacity.cost(64)
    assert 11 * alone / BATCHED.workers > 0.85, "eleven of them alone would fill the backbone"
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
    capacity.note(Lane.LM, 0.2, 1, KNOWN)
    capacity.note(Lane.URGENT, 0.6, 1, KNOWN)
    assert capacity.backbone_part == pytest.approx(0.25)


def test_a_lane_that_is_always_busy_may_have_room() -> None:
    """A few streams keep it busy without a pause, and hundreds fit: in batches of 64."""
    capacity = accelerated(4)
    for _ in range(3):
        for size in (1, 2, 4):
            capacity.note(Lane.LM, 0.007 + 1e-4 * size, size, 0.08 * size)
    assert 300 * capacity.cost(300) / BATCHED.workers < 0.8


def test_the_urgent_lane_is_counted_by_itself() -> None:
    """And is not promised to anybody, while the other one works."""
    capacity = accelerated(4)
    before = capacity.cost(64)
    assert capacity.urgent(8) == 0.0, "it has done nothing yet"
    for size in (1, 4, 8):
        for _ in range(20):
            capacity.note(Lane.URGENT, 0.005 + 1e-3 * size, size, 0.08 * size)
    assert capacity.cost(64) == before
    assert capacity.urgent(8) == pytest.approx((0.005 / 8 + 1e-3) / 0.08, rel=0.05)
    assert capacity.urgent(64) == capacity.urgent(500) < capacity.urgent(8)
    assert Capacity(BATCHED).urgent(8) == 0.0, "nothing is known"


def test_a_codec_that_only_does_urgent_work_is_judged_by_that() -> None:
    capacity = Capacity(BATCHED)
    for size in (1, 4, 16):
        for _ in range(20):
            capacity.note(Lane.LM, 0.007 + 1e-4 * size, size, 0.08 * size)
            capacity.note(Lane.URGENT, 0.010 * size, size, 0.08 * size)
    assert capacity.cost(64) == pytest.approx(BATCHED.workers * 0.010 / 0.08, rel=0.01)


def test_workers_that_share_what_comes_have_no_lane_for_urgent_work() -> None:
    capacity = Capacity(SHARED)
    work(capacity, Lane.LM, 20, 0.05)
    work(capacity, Lane.URGENT, 20, 0.10)
    assert capacity.known
    assert capacity.urgent(3) == 0.0


@pytest.mark.parametrize("limits", [SHARED, BATCHED])
def test_a_dispatch_that_was_held_up_says_little_of_the_cost(limits: LaneLimits) -> None:
    """The machine was suspended for an hour in the middle of it."""
    one, other = Capacity(limits), Capacity(limits)
    for capacity, held in ((one, 3_600.0), (other, MOST_HELD)):
        for lane in Lane:
            work(capacity, lane, 30, 0.02)
            capacity.note(lane, held, 1, 1.0)
    assert one.cost(1) == other.cost(1)
