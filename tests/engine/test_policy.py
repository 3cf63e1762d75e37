"""Each rule alone, with literal numbers."""

import math

import pytest
from playhead.engine.lead import LeadLimits
from playhead.engine.policy import (
    GROWTH,
    OUTLAST,
    PAD,
    LaneLimits,
    PolicyConfig,
    at,
    chunk_frames,
    cover,
    enough_below,
    fifo,
    margin,
    order,
    route,
)
from playhead.engine.types import Lane, Urgency

FRAME = 0.08
LADDER = (1, 2, 4, 8, 12)


# -- routing ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "slack", "urgency", "lane"),
    [
        (True, math.inf, Urgency.REPORTED, Lane.URGENT),
        (True, math.inf, Urgency.ESTIMATED, Lane.URGENT),
        (False, 0.099, Urgency.REPORTED, Lane.URGENT),
        (False, -3.0, Urgency.ESTIMATED, Lane.URGENT),
        (False, 0.1, Urgency.REPORTED, Lane.BACKGROUND),
        (False, math.inf, Urgency.REPORTED, Lane.BACKGROUND),
        (True, -3.0, Urgency.NONE, Lane.BACKGROUND),
        (False, -3.0, Urgency.NONE, Lane.BACKGROUND),
    ],
)
def test_first_and_late_chunks_are_urgent_unless_nothing_is(
    first: bool, slack: float, urgency: Urgency, lane: Lane
) -> None:
    assert route(first, slack, 0.1, urgency) is lane


def test_the_margin_is_what_the_lanes_need_and_the_way_and_more_of_it_in_doubt() -> None:
    assert margin(0.3, 0.05, 0.0) == pytest.approx(0.35 + PAD)
    assert margin(0.3, 0.05, 0.5) == pytest.approx(0.375 + PAD)
    assert margin(0.3, 0.05, 1.0) == pytest.approx(0.4 + PAD)


# -- chunk sizes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("runway", "frames"),
    [
        (0.0, 1),
        (0.15, 1),
        (0.16, 2),
        (0.31, 2),
        (0.32, 4),
        (0.64, 8),
        (0.95, 8),
        (0.96, 12),
        (9, 12),
    ],
)
def test_chunks_grow_with_what_the_listener_holds(runway: float, frames: int) -> None:
    assert chunk_frames(LADDER, 100, False, runway / GROWTH, FRAME) == frames


@pytest.mark.parametrize(
    ("available", "ends", "frames"),
    [
        (0, False, 0),
        (0, True, 0),
        (-1, True, 0),
        (3, False, 0),  # wait: the listener holds enough, and a larger chunk is cheaper
        (3, True, 3),  # nothing can join them
        (4, False, 4),
        (5, False, 4),
        (5, True, 4),  # the rest of 1 is a chunk of its own
    ],
)
def test_a_chunk_waits_for_its_frames_unless_no_more_can_come(
    available: int, ends: bool, frames: int
) -> None:
    assert chunk_frames(LADDER, available, ends, 0.32 / GROWTH, FRAME) == frames


@pytest.mark.parametrize(
    ("available", "ends", "runway", "frames"),
    [
        (9, True, 0.1, 9),
        (15, True, 0.1, 15),
        (15, False, 0.1, 8),
        (16, True, 0.1, 8),  # the rest is a chunk of its own
        (17, True, 0.2, 17),
        (19, True, 0.2, 19),
    ],
)
def test_a_rest_too_small_for_a_chunk_joins_the_last_if_it_fits(
    available: int, ends: bool, runway: float, frames: int
) -> None:
    assert chunk_frames((8, 16, 19), available, ends, runway / GROWTH, 0.0125) == frames


def test_a_rest_is_left_alone_when_joined_it_would_exceed_the_largest() -> None:
    assert chunk_frames((8, 16), 20, True, 9.0, 0.0125) == 16


def test_a_steady_backbone_gets_growing_chunks_not_crumbs() -> None:
    """One frame after another becomes ready: with a second in hand the codec is not called for
    each of them."""
    assert [chunk_frames(LADDER, ready, False, 0.7 / GROWTH, FRAME) for ready in range(10)] == [
        *[0] * 8,
        8,
        8,
    ]


# -- order ------------------------------------------------------------------------------------


def test_earliest_deadline_first_and_among_the_dry_the_least_served() -> None:
    now = 100.0
    keys = {
        "dry for long, served much": order(90.0, 50.0, 0.0, now, 1),
        "just dry, served little": order(99.9, 10.0, 0.0, now, 2),
        "dry, served as little, came later": order(50.0, 10.0, 0.0, now, 3),
        "soon": order(100.2, 0.0, 0.0, now, 4),
        "later": order(101.0, 0.0, 0.0, now, 5),
        "never": order(math.inf, 0.0, 0.0, now, 6),
    }
    assert sorted(keys, key=keys.__getitem__) == [
        "just dry, served little",
        "dry, served as little, came later",
        "dry for long, served much",
        "soon",
        "later",
        "never",
    ]


def test_other_work_of_one_utterance_has_the_key_that_it_would_be_given() -> None:
    key = order(105.0, 3.0, 2.0, 100.0, 7)
    for deadline in (50.0, 104.0, math.inf):
        assert at(key, deadline, 101.0, 0.5) == order(deadline, 3.5, 2.5, 101.0, 7)


def test_without_deadlines_it_is_first_come_first_served() -> None:
    assert sorted([fifo(3.0, 1), fifo(1.0, 3), fifo(1.0, 2)]) == [
        fifo(1.0, 2),
        fifo(1.0, 3),
        fifo(3.0, 1),
    ]


# -- the machine ------------------------------------------------------------------------------


def limits(workers: int, reserve: int = 1) -> LaneLimits:
    return LaneLimits(
        workers=workers,
        slots={Lane.LM: 1, Lane.URGENT: workers, Lane.BACKGROUND: workers},
        batch=dict.fromkeys(Lane, 1),
        reserve=reserve,
    )


def busy(lm: int = 0, urgent: int = 0, background: int = 0) -> dict[Lane, int]:
    return {Lane.LM: lm, Lane.URGENT: urgent, Lane.BACKGROUND: background}


@pytest.mark.parametrize(
    ("workers", "running", "free"),
    [
        (4, busy(), {"lm": 1, "urgent": 4, "background": 3}),
        (4, busy(lm=1), {"lm": 0, "urgent": 3, "background": 2}),
        (4, busy(background=3), {"lm": 1, "urgent": 1, "background": 0}),
        (4, busy(lm=1, urgent=3), {"lm": 0, "urgent": 0, "background": 0}),
        (2, busy(), {"lm": 1, "urgent": 2, "background": 1}),
        (2, busy(background=1), {"lm": 1, "urgent": 1, "background": 0}),
        (1, busy(), {"lm": 1, "urgent": 1, "background": 1}),  # nothing to reserve
        (1, busy(urgent=1), {"lm": 0, "urgent": 0, "background": 0}),
    ],
)
def test_background_work_leaves_the_reserve_alone(
    workers: int, running: dict[Lane, int], free: dict[str, int]
) -> None:
    machine = limits(workers)
    assert {str(lane): machine.free(lane, running) for lane in Lane} == free


def test_without_a_reserve_background_work_may_take_every_worker() -> None:
    assert limits(4, reserve=0).free(Lane.BACKGROUND, busy()) == 4
    assert limits(4, reserve=1).free(Lane.BACKGROUND, busy(), yields=True) == 4


def test_defaults_are_the_reported_playhead_and_learned_leads() -> None:
    config = PolicyConfig()
    assert config.urgency is Urgency.REPORTED
    assert config.lead == LeadLimits()
    assert config.lead.fixed is None


def test_a_chunk_lasts_as_long_as_the_runway() -> None:
    assert cover(0.4, 0.01) == GROWTH * 0.4


def test_a_chunk_outlasts_a_crowded_urgent_lane() -> None:
    assert cover(0.05, 0.2) == OUTLAST * 0.2


@pytest.mark.parametrize("available", range(1, 20))
def test_frames_are_a_chunk_for_whoever_holds_less(available: int) -> None:
    below = enough_below(LADDER, available, FRAME)
    for held, chunk in ((below - 1e-6, True), (below, False)):
        if 0.0 <= held < 60.0 and below > 0.0:
            assert bool(chunk_frames(LADDER, available, False, cover(held, 0.0), FRAME)) is chunk


def test_frames_below_the_smallest_chunk_wait_for_more_and_those_of_the_largest_never_do() -> None:
    assert enough_below((8, 16), 7, FRAME) == 0.0
    assert enough_below((8, 16), 16, FRAME) == 0.0
