"""The belief about a playhead: literal times, then properties against a player written apart."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playhead.engine.anchor import TOLERANCE
from playhead.engine.floor import QUICKEST
from playhead.engine.playhead import FRESH, STALE, Playhead
from playhead.engine.types import ListenerState, Report, Source
from truth_player import RATE, TICK, Script, TruthPlayer

S = ListenerState
HZ = 1_000  # of the literal cases: a sample is a millisecond


def belief(now: float = 0.0, **options: object) -> Playhead:
    return Playhead(HZ, now, **options)  # type: ignore[arg-type]


def said(received: int, buffered: int, state: ListenerState, at: float, **more: float) -> Report:
    """A report whose counters agree, taken at ``at`` by the client's clock."""
    consumed = received - buffered
    report = Report(1, received, consumed, consumed, buffered, 0, state, client_time=at)
    return replace(report, **more)  # type: ignore[arg-type]


# -- open loop --------------------------------------------------------------------------------


def test_before_anything_is_sent_the_listener_has_been_waiting_since_it_asked() -> None:
    head = belief(10.0)
    assert head.waiting
    assert not head.frozen
    assert head.deadline(12.0) == 10.0
    assert head.deadline(9.0) == 9.0
    assert (head.runway(12.0), head.depth(12.0), head.received(12.0), head.sent) == (0, 0, 0, 0)
    assert head.confidence(12.0) == 0.0
    assert head.estimated(12.0)
    assert head.starved == 0.0


def test_open_loop_the_listener_plays_from_arrival_without_a_break() -> None:
    head = belief(one_way=0.1)
    head.on_sent(1000, 5.0)
    assert head.deadline(5.0) == pytest.approx(6.1)
    assert head.runway(5.0) == pytest.approx(1.1)
    assert head.received(5.05) == 0
    assert head.depth(5.05) == pytest.approx(0.05)  # 1.05 s of runway, 1 s of it on its way
    assert head.received(5.1) == 1000
    assert head.depth(5.5) == pytest.approx(0.6)
    assert head.consumed(5.5) == 400
    head.on_sent(500, 5.5)
    assert head.deadline(5.5) == pytest.approx(6.6)
    assert head.consumed(6.6) == 1500
    assert head.runway(9.0) == 0.0


def test_open_loop_audio_that_comes_too_late_starts_over_at_its_arrival() -> None:
    head = belief(one_way=0.1)
    head.on_sent(1000, 5.0)
    head.on_sent(1000, 8.0)
    assert head.deadline(8.0) == pytest.approx(9.1)


def test_below_its_start_threshold_a_listener_waits_and_loses_nothing() -> None:
    head = belief(start_threshold=0.5)
    head.on_sent(300, 1.0)
    assert head.waiting
    assert head.deadline(3.0) == 0.0
    assert head.runway(3.0) == pytest.approx(0.3)
    head.on_sent(200, 3.0)
    assert not head.waiting
    assert head.deadline(3.0) == pytest.approx(3.5)


def test_a_fast_player_drains_faster() -> None:
    head = belief(playback_rate=2.0)
    head.on_sent(1000, 1.0)
    assert head.deadline(1.0) == pytest.approx(1.5)
    assert head.runway(1.0) == pytest.approx(0.5)


def test_a_client_that_never_reports_is_not_listened_to() -> None:
    head = belief(use_reports=False, one_way=0.1)
    for second in range(5):
        head.on_sent(1000, float(second))
    assert not head.on_report(said(1000, 0, S.STALLED, 1.0), 4.0)
    assert head.deadline(4.0) == pytest.approx(5.1)
    assert head.received(4.0) == 4000
    assert head.received(4.2) == 5000
    assert (head.counters.stale, head.counters.invalid, head.counters.clamped) == (0, 0, 0)


# -- reports ----------------------------------------------------------------------------------


def test_a_report_moves_the_dry_time_to_what_the_listener_really_holds() -> None:
    head = belief(one_way=0.1)
    head.on_sent(2000, 0.0)
    assert head.deadline(1.0) == pytest.approx(2.1)
    assert head.on_report(said(2000, 1700, S.PLAYING, 50.0), 1.0)  # it began 0.5 s late
    assert head.deadline(1.0) == pytest.approx(0.9 + 1.7)
    assert head.depth(1.0) == pytest.approx(1.6)
    assert head.confidence(1.0) == 1.0


def test_a_listener_that_played_on_while_the_machine_was_suspended_is_believed_to_be_dry() -> None:
    """The clock counts that time. To one that stood still, it could not have played so much."""
    head = belief(one_way=0.1)
    head.on_sent(2000, 0.0)
    slept = 3_600.0
    assert head.deadline(0.5 + slept) == pytest.approx(2.1), "long past, with no report"
    assert head.on_report(said(2000, 0, S.STALLED, 50.5 + slept), 0.5 + slept)
    assert head.waiting
    assert head.runway(0.5 + slept) == 0.0
    assert head.counters.clamped == 0


def test_what_is_in_flight_is_counted_on_top_of_a_report() -> None:
    head = belief(one_way=0.1)
    head.on_sent(1000, 0.0)
    head.on_sent(1000, 0.9)
    head.on_report(said(1000, 200, S.PLAYING, 50.0), 1.0)  # taken at 0.9, dry at 1.1
    assert head.deadline(1.0) == pytest.approx(2.1)
    assert head.received(0.95) == 1000
    assert head.received(1.0) == 2000


def test_a_stalled_listener_waits_from_the_moment_it_was_found_dry() -> None:
    head = belief(one_way=0.1, start_threshold=0.4)
    head.on_sent(500, 0.0)
    head.on_report(said(500, 0, S.STALLED, 50.0), 1.0)
    assert head.waiting
    assert head.deadline(1.0) == pytest.approx(0.9)
    head.on_report(said(500, 0, S.STALLED, 50.3), 1.3)
    assert head.deadline(1.3) == pytest.approx(0.9), "still the same stall"
    head.on_sent(400, 2.0)  # its threshold is covered when this arrives
    assert head.deadline(2.0) == pytest.approx(2.5)


def test_a_prebuffering_listener_that_holds_enough_is_about_to_play() -> None:
    head = belief(start_threshold=0.4)
    head.on_sent(500, 0.0)
    head.on_report(said(500, 500, S.PREBUFFER, 50.0), 3.0)
    assert not head.waiting
    assert head.deadline(3.0) == pytest.approx(3.5)


def test_a_prebuffering_listener_with_a_little_waits_with_what_it_has() -> None:
    head = belief(start_threshold=0.4)
    head.on_sent(200, 0.0)
    head.on_report(said(100, 100, S.PREBUFFER, 50.0), 3.0)
    assert head.waiting
    assert head.runway(3.0) == pytest.approx(0.2)


@pytest.mark.parametrize("state", [S.PAUSED, S.SUSPENDED])
def test_a_held_listener_has_no_deadline_and_loses_nothing(state: ListenerState) -> None:
    head = belief()
    head.on_sent(1500, 0.0)
    head.on_report(said(1000, 800, state, 50.0), 1.0)
    assert head.frozen
    assert not head.waiting
    assert head.deadline(99.0) == math.inf
    assert head.runway(99.0) == pytest.approx(1.3)  # 0.8 held, 0.5 on its way
    head.on_sent(100, 99.0)
    assert head.runway(99.0) == pytest.approx(1.4)
    assert head.confidence(99.0) == 1.0
    head.on_report(said(1600, 1400, S.PLAYING, 150.0), 100.0)
    assert head.deadline(100.0) == pytest.approx(101.4)


def test_a_listener_that_was_held_and_is_dry_waits_since_it_said_so() -> None:
    head = belief(start_threshold=0.5)
    head.on_sent(1000, 0.0)
    head.on_report(said(1000, 0, S.PAUSED, 50.0), 2.0)
    head.on_report(said(1000, 0, S.STALLED, 58.0), 10.0)
    assert head.deadline(10.0) == pytest.approx(10.0)


def test_starvation_is_remembered_as_reported() -> None:
    head = belief()
    head.on_sent(1000, 0.0)
    head.on_report(said(1000, 0, S.STALLED, 50.0, starved=0.25), 2.0)
    assert head.starved == 0.25


@pytest.mark.parametrize(
    ("age", "confidence"),
    [(0.0, 1.0), (FRESH, 1.0), ((FRESH + STALE) / 2, 0.5), (STALE, 0.0), (60.0, 0.0)],
)
def test_confidence_fades_with_the_age_of_the_last_report(age: float, confidence: float) -> None:
    head = belief()
    head.on_sent(100_000, 0.0)
    head.on_report(said(1000, 900, S.PLAYING, 50.0), 5.0)
    assert head.confidence(5.0 + age) == pytest.approx(confidence)
    assert head.estimated(5.0 + age) is (confidence == 0.0)


def test_a_belief_left_alone_goes_on_open_loop() -> None:
    head = belief(one_way=0.1)
    head.on_sent(1000, 0.0)
    head.on_report(said(1000, 800, S.PLAYING, 50.0), 0.4)  # taken at 0.3, dry at 1.1
    head.on_sent(1000, 30.0)
    assert head.estimated(30.0)
    assert head.deadline(30.0) == pytest.approx(31.1)


def test_audio_is_overdue_when_a_report_should_have_counted_it() -> None:
    head = belief(one_way=0.1)
    head.on_sent(500, 0.0)
    head.on_sent(500, 1.0)
    head.on_report(said(500, 400, S.PLAYING, 50.0), 1.15)  # left at 1.05, nothing is late
    assert head.overdue(1.15) == 0.0
    head.on_report(said(500, 100, S.PLAYING, 50.35), 1.5)  # left at 1.4; due there at 1.1
    assert head.overdue(1.5) == pytest.approx(0.3)
    head.on_report(said(1000, 350, S.PLAYING, 50.6), 1.75)
    assert head.overdue(1.75) == 0.0


# -- held by the server -----------------------------------------------------------------------


def test_hold_freezes_at_once_and_release_plays_on() -> None:
    head = belief(one_way=0.1)
    head.on_sent(1000, 0.0)
    head.hold(S.PAUSED, 0.6)
    head.hold(S.SUSPENDED, 0.8)  # already held
    assert head.deadline(5.0) == math.inf
    assert head.runway(5.0) == pytest.approx(0.5)
    assert head.confidence(5.0) == 0.0, "no report ever came"
    head.hold(None, 5.0)
    assert head.deadline(5.0) == pytest.approx(5.6)
    head.hold(None, 5.1)  # nothing to release
    assert head.deadline(5.1) == pytest.approx(5.6)


def test_a_released_listener_below_its_threshold_waits() -> None:
    head = belief(start_threshold=0.5)
    head.on_sent(1000, 0.0)
    head.hold(S.PAUSED, 0.8)
    head.hold(None, 3.0)
    assert head.waiting
    assert head.deadline(4.0) == 3.0
    assert head.runway(4.0) == pytest.approx(0.2)


def test_a_released_listener_that_holds_nothing_waits() -> None:
    head = belief()
    head.hold(S.SUSPENDED, 1.0)
    head.hold(None, 3.0)
    assert head.waiting
    assert head.deadline(4.0) == 3.0


def test_a_hold_that_was_said_before_the_utterance_reached_us_invents_no_audio() -> None:
    head = belief(100.0)
    head.hold(S.SUSPENDED, 99.0)
    assert head.runway(100.0) == 0.0


def test_a_hold_outlasts_a_report_that_says_playing() -> None:
    head = belief()
    head.on_sent(1000, 0.0)
    head.hold(S.PAUSED, 0.2)
    head.on_report(said(1000, 700, S.PLAYING, 50.0), 0.3)
    assert head.frozen
    assert head.runway(9.0) == pytest.approx(0.7)
    head.hold(None, 9.0)
    assert head.deadline(9.0) == pytest.approx(9.7)


def test_release_does_not_wake_a_listener_that_says_it_is_paused() -> None:
    head = belief()
    head.on_sent(1000, 0.0)
    head.hold(S.SUSPENDED, 0.2)
    head.on_report(said(1000, 700, S.PAUSED, 50.0), 0.3)
    head.hold(None, 1.0)
    assert head.frozen


# -- what is not believed ---------------------------------------------------------------------


def test_old_reports_are_ignored_and_counted() -> None:
    head = belief()
    head.on_sent(1000, 0.0)
    assert head.on_report(said(1000, 700, S.PLAYING, 50.0), 0.3)
    deadline = head.deadline(0.5)
    assert not head.on_report(said(1000, 0, S.STALLED, 49.9), 0.5)
    assert head.counters.stale == 1
    assert head.deadline(0.5) == deadline


def test_contradictions_are_ignored_and_counted() -> None:
    head = belief()
    head.on_sent(1000, 0.0)
    deadline = head.deadline(0.5)
    assert not head.on_report(said(1200, 0, S.STALLED, 50.0), 0.5)  # more than was sent
    assert not head.on_report(said(1000, 300, S.PLAYING, math.nan), 0.5)
    assert head.counters.invalid == 2
    assert head.deadline(0.5) == deadline
    assert head.estimated(0.5)


def test_nobody_can_have_played_faster_than_the_fastest() -> None:
    head = belief()
    head.on_sent(2200, 0.0)
    head.on_report(said(2200, 0, S.PLAYING, 50.0), 0.5)
    assert head.counters.clamped == 1
    assert head.deadline(0.5) == pytest.approx(2.2 / QUICKEST)
    assert head.runway(0.5) == pytest.approx(2.2 / QUICKEST - 0.5)


def test_a_claim_within_the_tolerance_is_not_counted() -> None:
    head = belief()
    head.on_sent(2200, 0.0)
    at = 2.2 / QUICKEST - TOLERANCE
    head.on_report(said(2200, 0, S.PLAYING, 50.0), at + 1e-6)
    assert head.counters.clamped == 0


def test_nobody_waits_who_must_hold_its_threshold() -> None:
    head = belief(start_threshold=0.4)
    head.on_sent(2200, 0.0)
    head.on_report(said(2200, 0, S.STALLED, 50.0), 0.5)  # it must hold 1.5 s at the least
    assert not head.waiting
    assert head.counters.clamped == 1
    assert head.deadline(0.5) == pytest.approx(2.2 / QUICKEST)
    head.on_report(said(2200, 0, S.STALLED, 51.2), 1.7)  # 0.3 s: this may be true
    assert head.waiting
    assert head.counters.clamped == 1
    head.on_sent(330, 1.7)  # 0.33 s on top of what it claims; 0.6 s at the least
    assert not head.waiting, "the floor holds between reports too"
    assert head.deadline(1.7) == pytest.approx(2.2 / QUICKEST + 0.3)
    assert head.counters.clamped == 1, "that was no report"


def test_a_pause_does_not_hide_what_a_listener_must_hold() -> None:
    head = belief()
    head.on_sent(2200, 0.0)
    head.on_report(said(2200, 0, S.PAUSED, 50.0), 0.5)
    assert head.deadline(0.5) == math.inf
    assert head.runway(0.5) == pytest.approx(1.5)
    assert head.runway(1.5) == pytest.approx(0.5)


# -- against the truth ------------------------------------------------------------------------


@dataclass
class Meeting:
    """One moment of a played script: the truth, and the belief after all that has arrived."""

    now: float
    truth: TruthPlayer
    head: Playhead
    anchored: float  # when the last report was taken (first send, before any)
    stopped: float  # the truth's ``stopped`` at that time
    last: Report | None


Sends = list[tuple[float, int]]
Tell = Callable[[Report, int], Report]


def meet(
    script: Script, sends: Sends, seconds: float, tell: Tell | None = None
) -> Iterator[Meeting]:
    """Play ``script`` beside a belief that sees what a server sees; yield every tick."""
    truth = TruthPlayer(script)
    head = Playhead(RATE, 0.0, start_threshold=script.threshold, one_way=script.one_way)
    stopped: dict[float, float] = {}
    meeting = Meeting(0.0, truth, head, 0.0, 0.0, None)
    todo = list(sends)
    for number in range(round(seconds / TICK)):
        now = meeting.now = number * TICK
        truth.tick(now)
        stopped[round(now, 6)] = truth.stopped
        for arrived, report in truth.mail(now):
            head.on_report(tell(report, truth.sent) if tell else report, arrived)
            taken = round(arrived - script.one_way, 6)
            meeting.last, meeting.anchored, meeting.stopped = report, taken, stopped[taken]
        while todo and todo[0][0] <= now:
            samples = todo.pop(0)[1]
            truth.send(samples, now)
            head.on_sent(samples, now)
            if meeting.last is None and head.sent == samples:  # the first
                meeting.anchored = now
        yield meeting


THRESHOLDS = st.sampled_from([0.0, 0.1, 0.25, 0.5])
RATES = st.floats(0.9, QUICKEST)
DELAYS = st.integers(0, 15).map(lambda ticks: ticks * TICK)
QUANTUM = 2 * TICK  # the player moves in ticks, and a report counts whole ones


@st.composite
def sendings(draw: st.DrawFn) -> Sends:
    out, now = [], 0.0
    for gap, samples in draw(
        st.lists(st.tuples(st.integers(0, 60), st.integers(240, 24_000)), min_size=1, max_size=8)
    ):
        now += gap * TICK
        out.append((now, samples))
    return out


@st.composite
def spans(draw: st.DrawFn) -> list[tuple[float, float]]:
    out, now = [], 0.0
    for gap, length in draw(
        st.lists(st.tuples(st.integers(10, 200), st.integers(5, 150)), max_size=2)
    ):
        out.append((now + gap * TICK, now + (gap + length) * TICK))
        now = out[-1][1]
    return out


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    return Script(draw(THRESHOLDS), draw(RATES), draw(DELAYS), draw(spans()), draw(spans()))


@settings(max_examples=30, deadline=None)
@given(scripts(), sendings())
def test_belief_is_as_near_to_the_truth_as_the_reports_allow(script: Script, sends: Sends) -> None:
    """An honest listener's runway is never overstated by more than its clock can have drifted
    since the report, nor understated by more than that and the time it has stood still since."""
    for meeting in meet(script, sends, 4.0):
        now, truth, head = meeting.now, meeting.truth, meeting.head
        if truth.changed_at + script.one_way + TICK >= now:
            continue  # the report of that change is on its way
        real = (truth.sent - truth.consumed) / RATE
        drift = abs(script.rate - 1.0) * (now - meeting.anchored) + QUANTUM
        held = (truth.received - truth.consumed) / RATE
        plays_on = truth.state is S.PLAYING and held > drift + script.one_way
        gap = 0.0 if plays_on else script.one_way  # of audio on its way to one who is dry
        assert head.runway(now) <= real + drift + gap
        assert head.runway(now) >= real - drift - (truth.stopped - meeting.stopped)


@settings(max_examples=30, deadline=None)
@given(scripts(), sendings())
def test_belief_respects_what_cannot_be_otherwise(script: Script, sends: Sends) -> None:
    runway = 0.0
    for meeting in meet(script, sends, 4.0):
        now, truth, head, last = meeting.now, meeting.truth, meeting.head, meeting.last
        held = last is not None and last.state is S.PAUSED
        assert head.frozen is held
        assert math.isinf(head.deadline(now)) is held
        assert head.sent == truth.sent
        assert head.consumed(now) <= head.received(now) + 1, "never past what was received"
        assert truth.received <= head.received(now + 1e-9), "arrives no earlier than the delay"
        assert head.received(now) <= head.sent
        assert 0.0 <= head.depth(now) <= head.runway(now) + 1e-9
        if held and runway > 0.0:
            assert head.runway(now) >= runway - 1e-9, "a held listener loses nothing"
        runway = head.runway(now) if held else 0.0
    assert head.counters.stale == head.counters.invalid == head.counters.clamped == 0


@pytest.mark.parametrize("threshold", [0.0, 0.25])
def test_the_first_report_after_a_stall_puts_the_belief_right(threshold: float) -> None:
    script = Script(threshold, one_way=0.03, cuts=[(0.9, 2.4)])
    sends = [(0.0, RATE), (0.8, RATE), (1.5, RATE)]
    wrong = right = 0.0
    for meeting in meet(script, sends, 3.0):
        real = (meeting.truth.sent - meeting.truth.consumed) / RATE
        off = abs(meeting.head.runway(meeting.now) - real)
        if meeting.truth.changed_at + 0.03 + TICK < meeting.now:
            wrong = max(wrong, off) if meeting.now < 2.4 else wrong
            right = max(right, off) if meeting.now > 2.45 else right
    assert meeting.truth.underruns == 1
    assert wrong > 0.2, "while nothing arrives the belief must be wrong, or this tests nothing"
    assert right <= QUANTUM


def test_a_listener_that_falls_silent_becomes_an_estimate_and_comes_back() -> None:
    script = Script(silent_from=1.0)
    sends = [(second * 0.5, RATE) for second in range(8)]
    for meeting in meet(script, sends, 4.0):
        age = meeting.now - meeting.anchored - script.one_way
        assert meeting.head.estimated(meeting.now) is (meeting.last is None or age >= STALE)
    now = meeting.now
    assert meeting.head.on_report(meeting.truth.report(now), now + script.one_way)
    assert not meeting.head.estimated(now)


# -- liars ------------------------------------------------------------------------------------


def empty(report: Report, sent: int) -> Report:
    return replace(report, received=sent, consumed=sent, buffered=0, state=S.STALLED)


def full(report: Report, sent: int) -> Report:
    return replace(report, received=sent, consumed=0, buffered=sent, state=S.PLAYING)


def flip() -> Tell:
    turn = iter(range(1_000_000))
    return lambda report, sent: (empty, full)[next(turn) // 2 % 2](report, sent)


def negative(report: Report, sent: int) -> Report:
    return replace(report, consumed=sent + 100, buffered=report.received - sent - 100)


def beyond(report: Report, sent: int) -> Report:
    return replace(report, received=2 * sent + 1_000, consumed=2 * sent + 1_000, buffered=0)


def backwards() -> Tell:
    turn = iter(range(1_000_000))
    return lambda report, sent: replace(
        empty(report, sent), client_time=report.client_time - next(turn)
    )


def nan_clock(report: Report, sent: int) -> Report:
    return replace(empty(report, sent), client_time=math.nan)


def replay() -> Tell:
    said_once: list[Report] = []

    def tell(report: Report, sent: int) -> Report:
        if not said_once:
            said_once.append(empty(report, sent))
        return said_once[0]

    return tell


def paused_then_empty() -> Tell:
    turn = iter(range(1_000_000))
    return lambda report, sent: (
        replace(empty(report, sent), state=S.PAUSED) if next(turn) % 4 < 3 else empty(report, sent)
    )


LIARS: dict[str, Callable[[], Tell]] = {
    "empty": lambda: empty,
    "full": lambda: full,
    "flip": flip,
    "negative": lambda: negative,
    "beyond": lambda: beyond,
    "backwards": backwards,
    "nan clock": lambda: nan_clock,
    "replay": replay,
    "paused, then empty": paused_then_empty,
}


def check_floor(script: Script, sends: Sends, tell: Tell) -> Playhead:
    """Whatever it says, a listener is not believed drier than the fastest honest one could be."""
    floor, sent, before = 0.0, 0, 0.0  # seconds of audio the fastest player would hold
    for meeting in meet(script, sends, 3.0, tell):
        now, head = meeting.now, meeting.head
        floor = max(0.0, floor - (now - before) * QUICKEST) + (head.sent - sent) / RATE
        sent, before = head.sent, now
        least = floor / QUICKEST
        assert head.runway(now) >= least - 1e-9
        assert head.runway(now) <= head.sent / RATE + 2 * (script.one_way + TOLERANCE)
        if head.waiting:
            assert least <= script.threshold + TOLERANCE + 1e-9
        else:
            assert least == 0.0 or head.deadline(now) >= now + least - 1e-9
    return head


@pytest.mark.parametrize("name", LIARS)
@settings(max_examples=10, deadline=None)
@given(scripts(), sendings())
def test_a_liar_gains_nothing_over_the_fastest_honest_listener(
    name: str, script: Script, sends: Sends
) -> None:
    check_floor(script, sends, LIARS[name]())


@settings(max_examples=30, deadline=None)
@given(
    scripts(),
    sendings(),
    st.lists(
        st.tuples(
            st.tuples(*[st.integers(-(2**53), 2**53) | st.integers(0, 50_000)] * 4),
            st.sampled_from(S),
            st.floats() | st.floats(0, 100),
        ),
        min_size=1,
    ),
)
def test_garbage_is_survived(
    script: Script, sends: Sends, garbage: list[tuple[tuple[int, ...], ListenerState, float]]
) -> None:
    turn = iter(range(1_000_000))

    def tell(report: Report, sent: int) -> Report:
        counts, state, clock = garbage[next(turn) % len(garbage)]
        received, consumed, buffered, discarded = counts
        return Report(1, received, consumed, consumed, buffered, discarded, state, 0, clock, clock)

    check_floor(script, sends, tell)


@pytest.mark.parametrize(
    ("name", "counter"),
    [
        ("empty", "clamped"),
        ("flip", "clamped"),
        ("negative", "invalid"),
        ("beyond", "invalid"),
        ("backwards", "stale"),
        ("nan clock", "invalid"),
    ],
)
def test_lies_are_counted(name: str, counter: str) -> None:
    sends = [(0.0, RATE), (0.3, RATE), (0.7, RATE)]
    head = check_floor(Script(), sends, LIARS[name]())
    counts = {
        "stale": head.counters.stale,
        "invalid": head.counters.invalid,
        "clamped": head.counters.clamped,
    }
    assert counts[counter] >= 3, counts


# -- speech before this one, and reports that are none -----------------------------------------


def test_behind_earlier_speech_nobody_waits_and_what_is_sent_plays_after_it() -> None:
    head = belief(10.0, ahead=2.0)
    assert not head.waiting
    assert head.deadline(10.0) == pytest.approx(12.0)
    assert head.runway(10.5) == pytest.approx(1.5)
    head.on_sent(500, 10.5)
    assert head.deadline(10.5) == pytest.approx(12.5)
    assert head.consumed(11.0) == 0
    assert head.consumed(12.25) == 250
    assert head.runway(13.0) == 0.0


def test_a_report_behind_earlier_speech_takes_over() -> None:
    head = belief(ahead=1.0)
    head.on_sent(1000, 0.5)
    assert head.on_report(said(1000, 900, S.PLAYING, 1.1), 1.1)
    assert head.deadline(1.1) == pytest.approx(2.0)


def test_what_a_socket_tells_moves_the_belief_and_gives_no_confidence() -> None:
    head = belief()
    head.on_sent(1000, 0.0)
    assert head.on_report(said(400, 200, S.PLAYING, 0.2, source=Source.SOCKET), 0.2)
    assert head.depth(0.2) == pytest.approx(0.8)
    assert head.confidence(0.2) == 0.0
    assert head.estimated(0.2)
    assert head.on_report(said(1000, 700, S.PLAYING, 0.3, source=Source.MARK), 0.3)
    assert head.confidence(0.3) == 1.0
