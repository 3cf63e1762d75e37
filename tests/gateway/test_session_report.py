"""Reports are believed within what was sent, and only forwards."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playhead.engine.types import ListenerState, Report
from playhead.gateway.messages import PlaybackReport
from playhead.gateway.session_report import DelayFilter, Verdict, check, to_engine

HONEST = PlaybackReport(
    epoch=1,
    received=1_000,
    consumed=400,
    heard=300,
    buffered=500,
    discarded=100,
    state=ListenerState.PLAYING,
    time=50.0,
    underruns=2,
    starved=8.0,
)


def verdict(
    report: PlaybackReport, last: PlaybackReport | None = None, sent: int = 1_000
) -> Verdict:
    return check(report, last, sent=sent, quantum=10)[0]


def test_an_honest_report_is_believed_as_it_is() -> None:
    assert check(HONEST, None, sent=1_000, quantum=10) == (Verdict.TAKEN, HONEST)
    assert check(HONEST, HONEST, sent=1_000, quantum=10) == (Verdict.TAKEN, HONEST)


@pytest.mark.parametrize("off", [-10, 10])
def test_rounding_within_a_quantum_is_honest(off: int) -> None:
    assert verdict(replace(HONEST, buffered=500 + off)) is Verdict.TAKEN
    assert verdict(replace(HONEST, heard=400 + max(0, off))) is Verdict.TAKEN
    assert verdict(HONEST, sent=1_000 - max(0, off)) is Verdict.TAKEN


@pytest.mark.parametrize(
    "changes",
    [{"buffered": 511}, {"buffered": 489}, {"heard": 411}, {"received": 1_011}],
)
def test_a_report_that_contradicts_itself(changes: dict[str, int]) -> None:
    assert verdict(replace(HONEST, **changes)) is Verdict.REFUSED  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "ahead",
    [
        {"received": 1_001},
        {"consumed": 401},
        {"discarded": 101},
        {"underruns": 3},
        {"starved": 8.5},
        {"time": 50.5},
    ],
)
def test_a_report_that_goes_back(ahead: dict[str, float]) -> None:
    assert verdict(HONEST, replace(HONEST, **ahead)) is Verdict.REFUSED  # type: ignore[arg-type]


def test_a_claim_beyond_what_was_sent_is_clamped() -> None:
    claim = replace(HONEST, received=9_000, consumed=8_400, heard=8_000)
    assert check(claim, None, sent=1_000, quantum=10) == (
        Verdict.CLAMPED,
        replace(claim, received=1_000, consumed=900, heard=900, buffered=0),
    )


def test_within_the_tolerance_it_is_clamped_in_silence() -> None:
    taken, believed = check(HONEST, None, sent=995, quantum=10)
    assert taken is Verdict.TAKEN
    assert (believed.received, believed.buffered) == (995, 495)


def test_heard_never_steps_back() -> None:
    _, believed = check(replace(HONEST, heard=250), HONEST, sent=1_000, quantum=10)
    assert believed.heard == 300


counts = st.integers(0, 5_000)


@given(counts, counts, counts, counts, counts, counts)
def test_what_is_believed_holds_together(
    received: int, consumed: int, heard: int, buffered: int, discarded: int, sent: int
) -> None:
    report = replace(
        HONEST,
        received=received,
        consumed=consumed,
        heard=heard,
        buffered=buffered,
        discarded=discarded,
    )
    outcome, believed = check(report, None, sent=sent, quantum=240)
    if outcome is Verdict.REFUSED:
        return
    assert believed.received <= sent
    assert believed.heard <= believed.consumed
    assert believed.buffered >= 0
    gap = believed.received - believed.consumed - believed.discarded - believed.buffered
    assert abs(gap) <= 240


def test_to_the_engine_in_model_samples_and_seconds() -> None:
    report = to_engine(HONEST, utterance=7, wire_rate=8_000, model_rate=24_000)
    assert report == Report(
        utterance=7,
        received=3_000,
        consumed=1_200,
        heard=900,
        buffered=1_500,
        discarded=300,
        state=ListenerState.PLAYING,
        underruns=2,
        starved=0.008,
        client_time=0.05,
    )


def echoed(echo: float | None, hold: float | None) -> PlaybackReport:
    return replace(HONEST, echo=echo, hold=hold)


def test_delay_is_half_of_the_shortest_round_trip() -> None:
    delay = DelayFilter(most=0.25)
    assert delay.sample(echoed(1_000, 20), 1.080) == pytest.approx(0.030)
    assert delay.sample(echoed(2_000, 0), 2.300) is None  # longer: a queue, no news
    assert delay.sample(echoed(3_000, 0), 3.020) == pytest.approx(0.010)
    assert delay.sample(echoed(4_000, 0), 4.0195) is None  # less than a millisecond off


def test_delay_needs_a_new_echo_and_a_hold() -> None:
    delay = DelayFilter(most=0.25)
    assert delay.sample(echoed(None, 0), 1.0) is None
    assert delay.sample(echoed(500, None), 1.0) is None
    assert delay.sample(echoed(500, 0), 0.6) == pytest.approx(0.05)
    assert delay.sample(echoed(500, 0), 0.501) is None  # seen before
    assert delay.sample(echoed(9_000, 0), 0.7) is None  # never given


def test_delay_is_bounded_and_forgets() -> None:
    delay = DelayFilter(most=0.25)
    assert delay.sample(echoed(0, 0), 100.0) == 0.25
    assert delay.sample(echoed(1, 0), 0.021) == pytest.approx(0.010)
    later = [delay.sample(echoed(1_000 * n, 0), n + 0.1) for n in range(1, 18)]
    assert [value for value in later if value is not None] == [pytest.approx(0.05)]
