"""The life of a session: hello in time, budgets, cut sockets, resume, drain and the end."""

from typing import Any

import pytest
from playhead.engine.types import Finish, Finished, ListenerState, Source, TextWarning
from playhead.gateway import messages as m
from playhead.gateway.effects import (
    CancelUtterance,
    Close,
    CloseEncoder,
    ForwardReport,
    Hold,
    Send,
    Submit,
)
from playhead.gateway.limits import Limits
from playhead.gateway.protocol import ProtocolError
from playhead.gateway.session import Tombstone, refuse_resume
from playhead.gateway.session_types import Outcome
from session_kit import Talk, of, sent, words

BACK = m.ResumeFrom("s1", "t1", 0)
BAD = ProtocolError("bad_message", "not a map", "a map")


def errors(effects: Any) -> list[m.ErrorEvent]:
    return [message for message in sent(effects) if isinstance(message, m.ErrorEvent)]


# ---------------------------------------------------------------- hello


def test_ready_tells_everything() -> None:
    talk = Talk(voice="bob", sample_rate=8_000)
    assert talk.ready == m.Ready(
        session="s1",
        token="t1",
        resumed=False,
        codec="pcm_s16le",
        sample_rate=8_000,
        pre_skip=0,
        packet_samples=0,
        voice="bob",
        voices=("ada", "bob"),
        formats=({"codec": "pcm_s16le", "sample_rates": [24_000]},),
        limits=Limits().public(),
        grace=30_000.0,
        epoch=0,
        time=0.0,
        model="fake",
        server="playhead/test",
        received=0,
        language="auto",
        languages=("auto", "german"),
        instruct=True,
    )


def test_hello_must_come_in_time() -> None:
    talk = Talk(greet=False)
    assert talk.session.get_timer() == 5.0
    assert talk.session.handle_timer(4.999) == []
    assert talk.session.handle_timer(5.0) == [Close(1008, "no hello in time")]
    assert talk.session.ended
    assert talk.session.get_timer() is None
    assert talk.session.handle_timer(6.0) == []


def test_hello_in_time_disarms_the_timer() -> None:
    assert Talk().session.get_timer() is None


def test_first_message_must_be_hello() -> None:
    talk = Talk(greet=False)
    (error,) = errors(talk.say(m.Text("Hi")))
    assert (error.code, error.expected) == ("invalid_state", "hello first")


def test_a_hello_that_cannot_be_met_may_be_repeated() -> None:
    talk = Talk(greet=False)
    (error,) = errors(talk.say(m.Hello(codec="morse")))
    assert (error.code, error.field) == ("unsupported_codec", "codec")
    (ready,) = sent(talk.say(m.Hello()))
    assert isinstance(ready, m.Ready)


def test_leaving_before_hello_ends_the_session() -> None:
    talk = Talk(greet=False)
    assert talk.session.detach(1.0) == []
    assert talk.session.ended
    assert talk.session.tombstone().outcome is None


# ---------------------------------------------------------------- faults and budgets


def test_frames_that_are_no_messages_are_answered() -> None:
    talk = Talk()
    assert talk.session.refuse(BAD, 0.0) == [
        Send(m.ErrorEvent(code="bad_message", message="not a map", expected="a map"))
    ]
    assert talk.session.counters["error.bad_message"] == 1


def test_errors_are_not_an_amplifier() -> None:
    talk = Talk(Limits(error_rate=1.0, error_burst=2.0))
    made = []

    def text() -> str:
        made.append("")
        return "not a map"

    fault = ProtocolError("bad_message", text, "a map")
    told = [bool(talk.session.refuse(fault, 0.0)) for _ in range(5)]
    assert told == [True, True, False, False, False]
    assert talk.session.counters["errors_untold"] == 3
    assert len(made) == 2, "and what is not told is not made either"


def test_too_many_messages() -> None:
    talk = Talk(Limits(control_rate=10.0, control_burst=1.0), greet=False)
    talk.say(m.Hello())
    (error,) = errors(talk.say(m.Ping(0.0)))
    assert (error.code, error.retry_after) == ("rate_limited", 100.0)
    (error,) = errors(talk.session.refuse(BAD, 0.0))
    assert error.code == "rate_limited"
    assert sent(talk.say(m.Ping(0.0), 0.1)) == [m.Pong(time=0.0, received=100.0, sent=100.0)]


def test_abuse_ends_the_session() -> None:
    talk = Talk(Limits(text_rate=0.1, text_burst=1.0))
    talk.utter("Hi")
    for now in (0.0, 1.0):
        (error,) = errors(talk.say(m.Text("x"), now))
        assert error.code == "rate_limited"
    effects = talk.say(m.Text("x"), 2.0)
    assert of(CancelUtterance, effects) == [CancelUtterance(101)]
    assert effects[-1] == Close(1008, "rate limits were broken repeatedly")
    assert talk.session.ended


def test_the_latest_of_too_many_reports_counts_when_there_is_budget() -> None:
    talk = Talk(Limits(control_rate=10.0, control_burst=4.0))
    number = talk.utter("Hi")  # hello, end
    talk.audio(number, 4_800)
    talk.say(m.Ping(0.0))
    assert of(ForwardReport, talk.report(1, 4_800, 100, 0.01))
    assert talk.report(1, 4_800, 200, 0.02) == []
    assert talk.report(1, 4_800, 300, 0.03) == []
    due = talk.session.get_timer()
    assert due == pytest.approx(0.1)
    (forward,) = of(ForwardReport, talk.session.handle_timer(0.101))
    assert (forward.report.consumed, forward.arrived) == (300, 0.03)
    assert talk.session.counters["coalesced_reports"] == 2
    assert talk.session.get_timer() is None


def test_a_newer_report_replaces_the_one_that_waits() -> None:
    talk = Talk(Limits(control_rate=10.0, control_burst=2.0))
    number = talk.utter("Hi")
    talk.audio(number, 4_800)
    talk.report(1, 4_800, 200, 0.01)
    (forward,) = of(ForwardReport, talk.report(1, 4_800, 400, 0.2))
    assert forward.report.consumed == 400
    assert talk.session.get_timer() is None


def test_a_waiting_report_counts_before_a_cancel() -> None:
    talk = Talk(Limits(control_rate=10.0, control_burst=2.0))
    number = talk.utter("Hi")
    talk.audio(number, 4_800)
    talk.report(1, 4_800, 200, 0.01)
    (cancelled,) = sent(talk.say(m.Cancel(), 0.02))
    assert isinstance(cancelled, m.Cancelled)
    assert (cancelled.heard, cancelled.estimated) == (200, False)


def test_a_waiting_report_does_not_hide_the_estimated_end() -> None:
    talk = Talk(Limits(control_rate=0.1, control_burst=2.0))
    number = talk.utter("Hi")
    talk.audio(number, 2_400)
    talk.complete(number)
    talk.report(1, 2_400, 100, 0.01)  # coalesced for ten seconds
    (done,) = sent(talk.session.handle_timer(0.7))  # 0.1 threshold + 0.1 + 0.5
    assert isinstance(done, m.Done)
    assert done.estimated


def test_messages_after_the_end_are_counted() -> None:
    talk = Talk()
    assert talk.say(m.CloseSession())[-1] == Close(1000, "closed by the client")
    assert talk.session.ended
    assert talk.say(m.Ping(0.0)) == []
    assert talk.session.refuse(BAD, 0.0) == []
    assert talk.session.counters["late_messages"] == 2


# ---------------------------------------------------------------- the engine


def test_engine_events_pass_and_settle_the_state() -> None:
    talk = Talk()
    talk.say(m.Text("Hi"))
    (warning,) = sent(talk.session.engine_event(TextWarning(101, "c", "m", "t"), 0.0))
    assert isinstance(warning, m.Warn)
    talk.session.engine_event(Finished(101, Finish.FAILED, 0, "overloaded", "full", 2.0), 0.0)
    assert talk.session.idle
    assert talk.say(m.Text("the rest")) == []
    assert talk.session.counters["ignored"] == 1


def test_text_for_an_utterance_that_the_engine_has_ended_is_dropped() -> None:
    talk = Talk()
    talk.say(m.Text("Far too long"))
    talk.audio(101, 480)
    talk.complete(101, 0.0, Finish.LENGTH_BUDGET)
    assert not talk.session.idle  # it still plays
    assert talk.say(m.Text(" a text")) == []
    assert talk.say(m.End()) == []
    assert sent(talk.say(m.Text("Next")))[0] == m.Started(seq=4, epoch=2)


def test_the_engine_speaks_to_an_ended_session() -> None:
    talk = Talk()
    number = talk.utter("Hi")
    talk.say(m.CloseSession())
    assert talk.audio(number, 480) == []
    assert talk.session.engine_event(Finished(number, Finish.CANCELLED, 0), 0.0) == []
    assert talk.session.counters["late_audio"] == talk.session.counters["late_events"] == 1


def test_done_by_timer_hands_the_next_to_the_engine() -> None:
    talk = Talk(reports=False)
    number = talk.utter("one")
    talk.say(m.Text("two"))
    talk.audio(number, 2_400)
    talk.complete(number)
    due = talk.session.get_timer()
    assert due is not None
    effects = talk.session.handle_timer(due)
    assert of(Submit, effects)[0].request.utterance == 102
    assert not talk.session.idle


# ---------------------------------------------------------------- cut and resume


def spoken() -> tuple[Talk, int]:
    talk = Talk()
    number = talk.utter("Hello world")
    talk.audio(number, 4_800, 0.1, words(("Hello", 0, 0), ("world", 2_400, 6)))
    return talk, number


def test_a_cut_socket_holds_the_speech_and_nothing_is_sent() -> None:
    talk, number = spoken()
    assert talk.session.detach(1.0) == [Hold(number, ListenerState.SUSPENDED)]
    assert talk.session.detach(1.5) == []
    assert talk.session.get_timer() == 31.0
    assert talk.audio(number, 480, 2.0) == []
    assert talk.say(m.Ping(0.0), 2.0) == []
    assert talk.session.handle_timer(30.9) == []


def test_resume_replays_what_the_client_lacks() -> None:
    talk, number = spoken()
    talk.session.detach(1.0)
    talk.audio(number, 480, 2.0)
    back = m.ResumeFrom("s1", "t1", 1)
    assert talk.session.can_resume(back)
    ready, *rest = talk.session.resume(back, "t2", 3.0)
    assert isinstance(ready, Send)
    assert isinstance(ready.message, m.Ready)
    assert (ready.message.resumed, ready.message.token) == (True, "t2")
    assert (ready.message.epoch, ready.message.received) == (1, 2)
    numbers = [message.seq for message in sent(rest) if isinstance(message, m.Audio)]
    assert numbers == [2, 3]
    assert rest[-1] == Hold(number, None)
    assert talk.session.get_timer() is None
    assert sent(talk.audio(number, 480, 3.1))


def test_replayed_messages_are_the_very_ones() -> None:
    talk = Talk()
    first = sent(talk.say(m.Text("Hello")))
    number = 101
    first += sent(talk.audio(number, 480, 0.5))
    talk.session.detach(1.0)
    assert sent(talk.session.resume(BACK, "t2", 2.0))[1:] == first
    talk.session.detach(3.0)
    again = m.ResumeFrom("s1", "t2", 1)
    assert sent(talk.session.resume(again, "t3", 4.0))[1:] == first[1:]


def test_a_token_is_good_until_the_next_one_is_known_to_have_arrived() -> None:
    talk, _ = spoken()
    talk.session.detach(1.0)
    talk.session.resume(BACK, "t2", 2.0)  # this ready is lost with its socket
    talk.session.detach(3.0)
    assert talk.session.can_resume(BACK)
    talk.session.resume(BACK, "t3", 4.0)  # and this one, too
    talk.session.detach(5.0)
    assert talk.session.can_resume(BACK), "it is all that the client knows"
    talk.session.resume(BACK, "t4", 6.0)
    talk.say(m.Ping(0.0), 7.0)  # the client has read the ready
    talk.session.detach(8.0)
    for lost in ("t1", "t2", "t3"):
        assert not talk.session.can_resume(m.ResumeFrom("s1", lost, 1))
    assert talk.session.can_resume(m.ResumeFrom("s1", "t4", 1))


def test_a_pause_outlives_a_cut() -> None:
    talk, number = spoken()
    talk.say(m.Pause(), 0.5)
    talk.session.detach(1.0)
    effects = talk.session.resume(BACK, "t2", 2.0)
    assert effects[-1] == Hold(number, ListenerState.PAUSED)


def test_what_is_inferred_in_the_clients_place_is_no_message_of_it() -> None:
    talk, number = spoken()
    talk.session.detach(1.0)
    before = sent(talk.session.resume(BACK, "t2", 2.0))[0]
    talk.audio(number, 100, 2.5)
    talk.report(1, 100, 50, 3.0, source=Source.SOCKET)
    talk.session.detach(4.0)
    assert talk.session.can_resume(BACK), "it may not have got its ready"
    after = sent(talk.session.resume(BACK, "t3", 5.0))[0]
    assert isinstance(before, m.Ready)
    assert isinstance(after, m.Ready)
    assert after.received == before.received


def test_frames_are_counted_over_all_connections() -> None:
    talk, _ = spoken()  # text, end
    talk.session.refuse(BAD, 0.5)
    talk.say(m.Hello(), 0.6)  # refused, and not counted
    talk.session.detach(1.0)
    (ready, *_) = sent(talk.session.resume(BACK, "t2", 2.0))
    assert isinstance(ready, m.Ready)
    assert ready.received == 3


@pytest.mark.parametrize(
    "back",
    [
        m.ResumeFrom("s2", "t1", 0),
        m.ResumeFrom("s1", "t2", 0),
    ],
    ids=["session", "token"],
)
def test_strangers_learn_nothing(back: m.ResumeFrom) -> None:
    talk, _ = spoken()
    talk.session.detach(1.0)
    assert not talk.session.can_resume(back)
    assert talk.session.resume(back, "t9", 2.0) == refuse_resume(back, None, 2.0)
    assert talk.session.can_resume(BACK)  # nothing has changed


@pytest.mark.parametrize("seq", [0, 9])
def test_a_gap_cannot_be_resumed_but_the_owner_is_told(seq: int) -> None:
    talk, _ = spoken()
    talk.say(m.Ack(1), 0.2)
    talk.session.detach(1.0)
    back = m.ResumeFrom("s1", "t1", seq)
    assert not talk.session.can_resume(back)
    send, close = talk.session.resume(back, "t2", 2.0)
    assert isinstance(send, Send)
    assert isinstance(send.message, m.ErrorEvent)
    assert send.message.epoch == 1
    assert str(send.message.heard_text) + str(send.message.unheard_text) == "Hello world"
    assert close == Close(4001, "resume failed")


def test_a_session_without_hello_cannot_be_resumed() -> None:
    assert not Talk(greet=False).session.can_resume(BACK)


def test_the_newest_connection_wins() -> None:
    talk, number = spoken()
    assert talk.session.can_resume(BACK)
    assert talk.session.takeover(1.0) == [Close(4000, "taken over by a newer connection")]
    effects = talk.session.resume(BACK, "t2", 1.0)
    assert not of(Hold, effects)  # the speech was never held
    assert sent(talk.audio(number, 480, 1.1))


def test_grace_ends_and_the_tombstone_tells_the_owner() -> None:
    talk, number = spoken()
    talk.utter("and more", 0.2)
    talk.report(1, 4_800, 2_000, 0.3)
    talk.session.detach(1.0)
    effects = talk.session.handle_timer(31.0)
    assert effects == [CancelUtterance(number), CloseEncoder(number)]
    assert talk.session.ended
    assert not talk.session.can_resume(BACK)
    stone = talk.session.tombstone()
    assert isinstance(stone, Tombstone)
    assert stone.outcome == Outcome(1, 2_000, "Hello", " world")
    assert stone.expires == 631.0
    (error,) = errors(refuse_resume(BACK, stone, 60.0))
    assert (error.code, error.heard, error.heard_text) == ("resume_failed", 2_000, "Hello")


def test_no_tombstone_for_the_living() -> None:
    with pytest.raises(AssertionError, match="living"):
        Talk().session.tombstone()


def test_a_report_that_waits_is_lost_with_the_socket() -> None:
    talk = Talk(Limits(control_rate=10.0, control_burst=1.0))
    talk.report(0, 0, 0, 0.01)
    talk.session.detach(0.02)
    assert talk.session.get_timer() == 30.02


# ---------------------------------------------------------------- going down


def test_drain_tells_and_lets_the_current_finish() -> None:
    talk, number = spoken()
    talk.utter("two", 0.2)
    effects = talk.session.drain(31.0, 1.0)
    assert effects[0] == Send(m.Draining(seq=4, deadline=30_000.0))
    failed = sent(effects)[1]
    assert isinstance(failed, m.Failed)
    assert (failed.epoch, failed.code) == (2, "draining")
    assert talk.session.drain(31.0, 2.0) == []
    (error,) = errors(talk.say(m.Text("three"), 2.0))
    assert error.code == "draining"
    assert not talk.session.idle
    talk.complete(number, 2.0)
    talk.report(1, 4_800, 4_800, 3.0)
    assert talk.session.idle


def test_drain_before_hello() -> None:
    talk = Talk(greet=False)
    assert talk.session.drain(30.0, 0.0) == []
    assert talk.session.idle
    assert talk.say(m.Hello()) == [Close(1001, "the server is going down")]
    assert talk.session.ended


def test_drain_ends_whoever_is_away() -> None:
    talk, number = spoken()
    talk.session.detach(1.0)
    assert of(CancelUtterance, talk.session.drain(30.0, 2.0)) == [CancelUtterance(number)]
    assert talk.session.ended
    assert talk.session.drain(30.0, 3.0) == []


def test_leaving_during_a_drain_is_for_good() -> None:
    talk, number = spoken()
    talk.session.drain(30.0, 1.0)
    assert of(CancelUtterance, talk.session.detach(2.0)) == [CancelUtterance(number)]
    assert talk.session.ended


def test_a_late_drain_does_not_promise_the_past() -> None:
    (told,) = sent(Talk().session.drain(1.0, 2.0))
    assert told == m.Draining(seq=1, deadline=0.0)


def test_stop_fails_what_is_alive() -> None:
    talk, number = spoken()
    talk.report(1, 4_800, 2_500, 0.3)
    effects = talk.session.stop(1001, "shutting down", 1.0)
    assert effects[0] == CancelUtterance(number)
    (failed,) = sent(effects)
    assert isinstance(failed, m.Failed)
    assert (failed.code, failed.heard, failed.heard_text) == ("draining", 2_500, "Hello world")
    assert effects[-1] == Close(1001, "shutting down")
    assert talk.session.stop(1001, "again", 1.0) == []
    assert talk.session.tombstone().outcome == Outcome(1, 2_500, "Hello world", "")


def test_stop_before_hello() -> None:
    assert Talk(greet=False).session.stop(1012, "restart", 0.0) == [Close(1012, "restart")]


def test_who_lost_its_place_while_away_finds_its_texts_and_goes_on_with_what_waits() -> None:
    talk = Talk()
    first = talk.utter("One two.")
    talk.audio(first, 4_800, 0.1, words(("One", 0, 0)))
    assert talk.utter("Three.") == 0, "it waits"
    talk.session.detach(1.0)
    lost = Finished(first, Finish.FAILED, 4_800, "overloaded", "the place was needed", 1.0)
    assert of(Submit, talk.session.engine_event(lost, 12.0)) == [], "nobody listens"
    effects = talk.session.resume(m.ResumeFrom("s1", "t1", 2), "t2", 20.0)
    replayed = sent(effects)
    failed = next(message for message in replayed if isinstance(message, m.Failed))
    assert (failed.code, failed.epoch, failed.retry_after) == ("overloaded", 1, 1_000)
    assert failed.heard_text + failed.unheard_text == "One two."
    (submitted,) = of(Submit, effects)
    assert submitted.request.utterance == first + 1
    assert not of(Hold, effects)


def test_a_session_that_is_displaced_in_its_account_gives_all_texts_back() -> None:
    talk = Talk()
    number = talk.utter("One.")
    talk.utter("Two.")
    talk.session.detach(1.0)
    effects = talk.session.displace(12.0)
    assert of(CancelUtterance, effects) == [CancelUtterance(number)]
    assert talk.session.idle
    replayed = sent(talk.session.resume(m.ResumeFrom("s1", "t1", 0), "t2", 20.0))
    failed = [message for message in replayed if isinstance(message, m.Failed)]
    assert [(message.code, message.unheard_text) for message in failed] == [
        ("overloaded", "One."),
        ("overloaded", "Two."),
    ]
    assert Talk(greet=False).session.displace(1.0) == [], "it never spoke"
