"""How far ahead to run for a listener, learned from its own reports."""

import math
from collections.abc import Iterable
from dataclasses import replace

import pytest
from playhead.engine.lead import (
    ENOUGH,
    GAP,
    HALF_LIFE,
    SAFETY,
    STEADY,
    LeadLearner,
    LeadLimits,
    parse_lead,
)
from playhead.engine.types import ListenerState, Report, Source

LIMITS = LeadLimits(least=0.6, unknown=2.0, most=2.8)
CLOCK = 9_000.0  # the client's clock is ahead by this much


def report(taken: float, state: ListenerState = ListenerState.PLAYING) -> Report:
    return Report(1, 0, 0, 0, 0, 0, state, client_time=taken + CLOCK)


def watch(
    learner: LeadLearner,
    seconds: float,
    *,
    start: float = 0.0,
    travel: float = 0.05,
    late: float = 0.0,
    state: ListenerState = ListenerState.PLAYING,
) -> float:
    """Report every 250 ms for ``seconds``; returns the time after the last one."""
    steps = round(seconds / 0.25)
    for number in range(steps + 1):
        taken = start + 0.25 * number
        learner.observe(report(taken, state), late, taken + travel)
    return start + 0.25 * steps + travel


def known(limits: LeadLimits = LIMITS) -> LeadLearner:
    learner = LeadLearner(limits)
    watch(learner, ENOUGH)
    return learner


def test_nobody_is_known_at_first() -> None:
    assert LeadLearner(LIMITS).limit == 2.0


def test_a_steady_listener_earns_the_least_lead_as_it_plays() -> None:
    learner = LeadLearner(LIMITS)
    watch(learner, ENOUGH / 2)
    assert learner.limit == pytest.approx(1.3)
    watch(learner, ENOUGH, start=100.0)
    assert learner.limit == pytest.approx(0.6)
    assert learner.worst_pause == 0.0


def test_only_playing_counts_as_observed() -> None:
    learner = LeadLearner(LIMITS)
    watch(learner, 60.0, state=ListenerState.PAUSED)
    assert learner.limit == 2.0


def test_a_long_silence_between_reports_counts_little() -> None:
    learner = LeadLearner(LIMITS)
    learner.observe(report(0.0), 0.0, 0.05)
    learner.observe(report(1000.0), 0.0, 1000.05)
    assert learner.limit == pytest.approx(2.0 - 1.4 * GAP / ENOUGH)


def test_a_fixed_lead_learns_nothing() -> None:
    limits = LeadLimits(fixed=1.1)
    learner = known(limits)
    learner.observe(report(50.0), 2.0, 50.05)
    assert learner.limit == 1.1
    assert limits.for_unknown == 1.1
    assert LIMITS.for_unknown == 2.0


@pytest.mark.parametrize(
    ("late", "lead"),
    [
        (STEADY, 0.6),  # ordinary jitter
        (0.2, 2.0),  # it does pause: no less than an unknown one
        (1.2, 0.6 + 1.2 * SAFETY),
        (30.0, 2.8),
    ],
)
def test_late_audio_lengthens_the_lead_at_once(late: float, lead: float) -> None:
    learner = known()
    learner.observe(report(100.0), late, 100.05)
    assert learner.limit == pytest.approx(lead)


def test_a_report_that_travelled_long_lengthens_the_lead() -> None:
    learner = known()
    learner.observe(report(100.0), 0.0, 101.25)
    assert learner.worst_pause == pytest.approx(1.2)
    assert learner.limit == pytest.approx(0.6 + 1.2 * SAFETY)


def test_the_first_report_of_all_cannot_be_late() -> None:
    learner = LeadLearner(LIMITS)
    learner.observe(report(0.0), 0.0, 3.0)
    assert learner.worst_pause == 0.0
    learner.observe(report(0.25), 0.0, 0.3)  # the quickest so far
    learner.observe(report(0.5), 0.0, 0.95)
    assert learner.worst_pause == pytest.approx(0.4)


def test_the_memory_of_a_pause_fades_while_the_listener_plays() -> None:
    learner = LeadLearner(LIMITS)
    learner.observe(report(0.0), 1.6, 0.05)
    watch(learner, HALF_LIFE, start=0.25)
    assert learner.worst_pause == pytest.approx(0.8, rel=0.01)
    watch(learner, 60.0, start=100.0, state=ListenerState.PAUSED)
    assert learner.worst_pause == pytest.approx(0.8, rel=0.01)
    watch(learner, 5 * HALF_LIFE, start=200.0)
    assert learner.limit == pytest.approx(0.6)


def test_drifting_clocks_do_not_make_a_listener_shaky() -> None:
    """100 parts per million over three hours of utterances: a second in all, nothing in one."""
    learner = LeadLearner(LIMITS)
    for utterance in range(1000):
        learner.begin()
        start = utterance * 10.8
        watch(learner, 6.0, start=start, travel=0.05 + start * 1e-4)
    assert learner.limit == pytest.approx(0.6)


def test_a_client_that_slept_is_not_late_for_ever() -> None:
    learner = known()
    learner.begin()
    watch(learner, 6.0, start=4000.0, travel=600.0)  # its clock stood still for ten minutes
    assert learner.worst_pause == 0.0


def test_nothing_a_client_claims_lasts_for_ever() -> None:
    learner = known()
    learner.observe(report(100.0), math.inf, 100.05)
    assert learner.limit == 2.8
    watch(learner, 6 * HALF_LIFE, start=101.0)
    assert learner.limit == pytest.approx(0.6)


def leads(values: Iterable[float]) -> list[float]:
    return [round(value, 3) for value in values]


def test_the_lead_stays_within_its_limits_whatever_comes() -> None:
    learner = LeadLearner(LIMITS)
    seen = []
    for number, late in enumerate((0.0, 5.0, -3.0, 0.1, math.nan, 0.0)):
        learner.observe(report(float(number)), late, number + 0.05)
        seen.append(learner.limit)
    assert all(0.6 <= lead <= 2.8 for lead in leads(seen))


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("learned", LeadLimits()),
        (" Learned:1.5 ", LeadLimits(unknown=1.5)),
        ("learned:0.4", LeadLimits(least=0.4, unknown=0.4)),
        ("learned:5", LeadLimits(unknown=5.0, most=5.0)),
        ("1.5", LeadLimits(fixed=1.5)),
    ],
)
def test_an_operator_writes_a_lead(text: str, limits: LeadLimits) -> None:
    assert parse_lead(text) == limits


@pytest.mark.parametrize("text", ["", "long", "0", "nan", "31", "learned:", "fixed:1", "a:b:1"])
def test_a_lead_that_is_none_says_what_is_right(text: str) -> None:
    with pytest.raises(ValueError, match=r"'learned', 'learned:SECONDS' or SECONDS"):
        parse_lead(text)


def test_a_socket_shows_pauses_but_no_steady_listener() -> None:
    learner = LeadLearner(LIMITS)
    said = replace(report(0.0), source=Source.SOCKET)
    for number in range(400):
        learner.observe(said, 0.0, 0.25 * number)
    assert learner.limit == LIMITS.unknown
    learner.observe(said, 0.5, 100.0)
    assert learner.worst_pause == 0.5
    assert learner.limit > LIMITS.least
