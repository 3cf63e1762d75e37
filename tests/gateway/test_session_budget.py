"""Honest bursts pass, excess is refused with the time to wait, abuse ends the connection."""

from playhead.engine.types import ListenerState
from playhead.gateway import messages as m
from playhead.gateway.limits import Limits
from playhead.gateway.session_budget import Budget, TokenBucket, Verdict

REPORT = m.PlaybackReport(
    epoch=1, received=0, consumed=0, heard=0, buffered=0, state=ListenerState.IDLE, time=0.0
)
PING = m.Ping(0.0)
SMALL = Limits(
    control_rate=10.0,
    control_burst=2.0,
    text_rate=20.0,
    text_burst=3.0,
    frame_rate=100.0,
    frame_burst=50.0,
)


def test_bucket_starts_full_refills_and_does_not_overflow() -> None:
    bucket = TokenBucket(rate=2.0, burst=3.0)
    assert [bucket.take(10.0) for _ in range(4)] == [True, True, True, False]
    assert bucket.wait() == 0.5
    assert bucket.take(10.5)
    assert not bucket.take(10.75)
    assert bucket.wait() == 0.25
    assert [bucket.take(99.0) for _ in range(4)] == [True, True, True, False]


def test_bucket_takes_an_older_time_for_the_latest() -> None:
    bucket = TokenBucket(rate=1.0, burst=1.0)
    assert bucket.take(5.0)
    assert not bucket.take(2.0)
    assert not bucket.take(5.5)
    assert bucket.take(6.0)
    assert bucket.wait() > 0
    assert TokenBucket(1.0, 1.0).wait() == 0.0


def test_control_messages_and_texts_have_budgets_of_their_own() -> None:
    budget = Budget(SMALL)
    verdicts = [budget.admit(PING, 0.0) for _ in range(3)]
    assert verdicts == [Verdict.PASS, Verdict.PASS, Verdict.REFUSE]
    verdicts = [budget.admit(m.Text("a"), 0.0) for _ in range(4)]
    assert verdicts == [Verdict.PASS] * 3 + [Verdict.REFUSE]


def test_reports_are_coalesced_and_frames_that_are_no_messages_count() -> None:
    budget = Budget(SMALL)
    assert budget.admit(None, 0.0) is Verdict.PASS
    assert budget.admit(REPORT, 0.0) is Verdict.PASS
    assert budget.admit(REPORT, 0.0) is Verdict.COALESCE
    assert budget.admit(None, 0.0) is Verdict.REFUSE


def test_barge_in_passes_without_budget() -> None:
    budget = Budget(SMALL)
    while budget.admit(PING, 0.0) is Verdict.PASS:
        pass
    for message in (m.Cancel(), m.Ack(1), m.CloseSession()):
        assert budget.admit(message, 0.0) is Verdict.PASS


def test_a_flood_of_anything_is_refused() -> None:
    budget = Budget(SMALL)
    verdicts = [budget.admit(m.Cancel(), 0.0) for _ in range(51)]
    assert verdicts[-2:] == [Verdict.PASS, Verdict.REFUSE]


def test_third_strike_in_a_row_closes() -> None:
    budget = Budget(Limits(control_rate=0.01, control_burst=1.0))
    budget.admit(PING, 0.0)
    at = [0.0, 0.5, 0.99, 1.0, 1.5, 2.0]
    verdicts = [budget.admit(PING, now) for now in at]
    assert verdicts == [Verdict.REFUSE] * 5 + [Verdict.CLOSE]


def test_five_thousand_texts_of_one_character() -> None:
    """At once they are a flood; as fast as a language model can be, they are speech."""
    flood = Budget(Limits())
    verdicts = [flood.admit(m.Text("a"), number * 0.001) for number in range(5_000)]
    assert verdicts.count(Verdict.PASS) <= 1_000 + 400 * 5
    assert Verdict.CLOSE in verdicts
    steady = Budget(Limits())
    assert {steady.admit(m.Text("a"), number / 390) for number in range(5_000)} == {Verdict.PASS}


def test_good_behaviour_forgives() -> None:
    budget = Budget(Limits(control_rate=0.01, control_burst=1.0))
    budget.admit(PING, 0.0)
    for now in (0.0, 1.0, 6.5, 7.5):
        assert budget.admit(PING, now) is Verdict.REFUSE
    assert budget.admit(PING, 8.5) is Verdict.CLOSE


def test_excess_names_the_rates_and_the_wait() -> None:
    budget = Budget(SMALL)
    for _ in range(4):
        budget.admit(m.Text("a"), 0.0)
        budget.admit(PING, 0.0)
    error = budget.excess(m.Text("a"))
    assert (error.code, error.retry_after) == ("rate_limited", 0.05)
    assert "20 texts and 10 other" in error.expected
    assert budget.excess(PING).retry_after == 0.1
    assert budget.excess(None).retry_after == 0.1


def test_a_fast_language_model_is_not_limited() -> None:
    budget = Budget(Limits())
    verdicts = {budget.admit(m.Text("token"), n / 300) for n in range(3_000)}
    assert verdicts == {Verdict.PASS}
