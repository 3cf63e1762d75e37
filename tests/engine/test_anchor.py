"""Which reports are kept, which are old, and which contradict themselves."""

import math
from dataclasses import replace

import pytest
from playhead.engine.anchor import Anchor, Counters, is_invalid
from playhead.engine.types import ListenerState, Report

TAKEN = Report(
    utterance=7,
    received=1000,
    consumed=400,
    heard=350,
    buffered=500,
    discarded=100,
    state=ListenerState.PLAYING,
    starved=0.5,
    client_time=20.0,
)


def test_an_anchor_keeps_what_the_belief_needs() -> None:
    anchor = Anchor.of(TAKEN, 3.0)
    assert anchor == Anchor(3.0, 1000, 400, 500, ListenerState.PLAYING, 0.5, 20.0)


@pytest.mark.parametrize(
    ("change", "old"),
    [
        ({}, False),
        ({"client_time": 20.1, "consumed": 500, "received": 1100}, False),
        ({"client_time": 19.9}, True),
        ({"client_time": 20.1, "consumed": 399}, True),
        ({"client_time": 20.1, "received": 999}, True),
    ],
)
def test_a_report_is_old_when_its_clock_or_its_counters_run_backwards(
    change: dict[str, float], old: bool
) -> None:
    anchor = Anchor.of(TAKEN, 3.0)
    assert anchor.outdates(replace(TAKEN, **change)) is old  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "invalid"),
    [
        ({}, False),
        ({"buffered": 510}, False),  # within the tolerance of 10
        ({"buffered": 511}, True),
        ({"buffered": 489}, True),
        ({"received": -1, "consumed": 0, "buffered": -101}, True),
        ({"consumed": -1, "buffered": 901}, True),
        ({"buffered": -1, "consumed": 901}, True),
        ({"discarded": -100, "buffered": 700}, True),
        ({"client_time": math.nan}, True),
        ({"client_time": math.inf}, True),
        ({"starved": math.nan}, True),
        ({"starved": math.inf}, True),
    ],
)
def test_a_report_that_contradicts_itself_is_invalid(
    change: dict[str, float], invalid: bool
) -> None:
    assert is_invalid(replace(TAKEN, **change), 1000, 10.0) is invalid  # type: ignore[arg-type]


@pytest.mark.parametrize(("sent", "invalid"), [(1000, False), (990, False), (989, True)])
def test_nobody_can_have_received_what_was_not_sent(sent: int, invalid: bool) -> None:
    assert is_invalid(TAKEN, sent, 10.0) is invalid


def test_counters_start_at_nothing() -> None:
    assert Counters() == Counters(stale=0, invalid=0, clamped=0)
