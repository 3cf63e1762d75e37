"""Text in, audio out, reports between: one session's speech at literal times."""

from collections import Counter
from typing import Any

import pytest
from playhead.codecs.base import Encoded
from playhead.engine.types import Finish, Finished, ListenerState, Report, Request, TextWarning
from playhead.gateway import messages as m
from playhead.gateway.effects import (
    CancelUtterance,
    CloseEncoder,
    Effect,
    ForwardDelay,
    ForwardReport,
    Hold,
    OpenEncoder,
    PushText,
    Send,
    Submit,
)
from playhead.gateway.limits import Limits
from playhead.gateway.protocol import ProtocolError
from playhead.gateway.session_channel import Channel
from playhead.gateway.session_queue import Fault
from playhead.gateway.session_speech import Speech
from session_kit import RATE, chunk, facts, of, open_format, sent, words

SMALL = Limits(text_waiting=20, text_utterance=30, queued_utterances=2, speech_rate=10.0)


class Kit:
    def __init__(self, limits: Limits | None = None, **hello: Any) -> None:
        self.counters: Counter[str] = Counter()
        self.channel = Channel(Limits())
        greeting = m.Hello(**hello)
        fmt = open_format(greeting.codec, greeting.sample_rate)
        self.speech = Speech(facts(limits), self.channel, self.counters, greeting, fmt, "carol")

    def utter(self, text: str) -> list[Effect]:
        effects = self.speech.open(m.Start(), 0.0)
        return effects + self.speech.add_text(text) + self.speech.end()

    def audio(
        self, number: int, samples: int, now: float = 0.0, final: bool = False, **more: Any
    ) -> list[Effect]:
        made = chunk(number, 0, samples, **more) if samples else None
        encoded = Encoded(bytes(2 * samples), samples)
        return self.speech.audio(number, encoded, made, final=final, now=now)

    def finish(self, number: int, now: float = 0.0) -> list[Effect]:
        effects = self.audio(number, 0, now, final=True)
        event = Finished(number, Finish.COMPLETE, 0)
        return effects + self.speech.engine_event(event, now)

    def report(self, epoch: int, consumed: int, now: float, **fields: Any) -> list[Effect]:
        given = {
            "received": 4_800,
            "heard": consumed,
            "buffered": 4_800 - consumed,
            "state": ListenerState.PLAYING,
            "time": now * 1_000,
            **fields,
        }
        report = m.PlaybackReport(epoch=epoch, consumed=consumed, **given)
        return self.speech.report(report, now)


def code_of(action: Any) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        action()
    return caught.value


# ---------------------------------------------------------------- text in


def test_open_submits_with_the_settings_of_hello() -> None:
    kit = Kit(voice="bob", speed=1.5, start_threshold=250, playback_rate=1.1, reports=False)
    request = Request(101, "carol", "bob", 1.5, 0, 0.25, 1.1, False)
    assert kit.speech.open(m.Start(id="mine"), 0.0) == [
        Send(m.Started(seq=1, epoch=1, id="mine")),
        OpenEncoder(101, kit.speech.format),
        Submit(request),
    ]
    assert (kit.speech.style.voice, kit.speech.epoch) == ("bob", 1)


def test_start_overrides_hello() -> None:
    (submit,) = of(Submit, Kit().speech.open(m.Start(voice="bob", speed=0.5), 0.0))
    assert (submit.request.voice, submit.request.speed) == ("bob", 0.5)


def test_text_of_the_current_goes_straight_to_the_engine() -> None:
    kit = Kit()
    kit.speech.open(m.Start(), 0.0)
    assert kit.speech.composing
    assert kit.speech.add_text("Hi") == [PushText(101, "Hi")]
    assert kit.speech.flush() == [PushText(101, "", flush=True)]
    assert kit.speech.end() == [PushText(101, "", end=True)]
    assert not kit.speech.composing


def test_the_next_collects_its_text_until_the_first_has_ended() -> None:
    kit = Kit()
    kit.utter("one")
    assert of(Submit, kit.utter("two")) == []
    effects = kit.finish(101)
    assert effects[-1] == PushText(102, "two", end=True)


@pytest.mark.parametrize(
    ("asked", "code"),
    [({"voice": "eve"}, "unknown_voice"), ({"language": "klingon"}, "unknown_language")],
)
def test_a_style_that_is_not_to_be_had_opens_nothing(asked: dict[str, str], code: str) -> None:
    assert code_of(lambda: Kit(**asked)).code == code
    kit = Kit()
    assert code_of(lambda: kit.speech.open(m.Start(**asked), 0.0)).code == code
    assert kit.speech.idle
    assert kit.speech.epoch == 0


def test_the_style_goes_to_the_engine() -> None:
    kit = Kit(language="German", instruct="whisper")
    (submit,) = of(Submit, kit.utter("one"))
    assert (submit.request.language, submit.request.instruct) == ("german", "whisper")


def test_queue_is_bounded() -> None:
    kit = Kit(SMALL)
    for _ in range(3):
        kit.utter("x")
    fault = code_of(lambda: kit.speech.open(m.Start(), 0.0))
    assert fault.code == "overloaded"
    assert kit.speech.epoch == 3


def test_text_of_one_utterance_is_bounded() -> None:
    kit = Kit(Limits(text_utterance=10))
    kit.speech.open(m.Start(), 0.0)
    kit.speech.check_text("x" * 10)
    kit.speech.add_text("x" * 6)
    kit.speech.check_text("x" * 4)
    fault = code_of(lambda: kit.speech.check_text("x" * 5))
    assert (fault.code, fault.retry_after) == ("text_too_long", None)


def test_text_that_waits_is_bounded_over_the_whole_queue() -> None:
    kit = Kit(SMALL)
    kit.utter("x" * 12)
    kit.utter("x" * 8)
    kit.speech.check_text("")
    fault = code_of(lambda: kit.speech.check_text("x" * 5))
    assert (fault.code, fault.retry_after) == ("text_too_long", 0.5)
    kit.audio(101, RATE)  # a second: ten code points are spoken
    kit.speech.check_text("x" * 10)


# ---------------------------------------------------------------- the listener


def test_a_report_is_forwarded_in_model_samples() -> None:
    kit = Kit(sample_rate=8_000)
    kit.utter("Hi")
    kit.audio(101, 4_800)
    assert kit.report(1, 1_600, 0.3, starved=20.0) == [
        ForwardReport(
            Report(101, 14_400, 4_800, 4_800, 9_600, 0, ListenerState.PLAYING, 0, 0.02, 0.3),
            0.3,
        )
    ]


def test_reports_of_other_epochs_are_counted_and_nothing_else() -> None:
    kit = Kit()
    assert kit.report(1, 0, 0.1) == []
    kit.utter("Hi")
    kit.utter("there")
    kit.audio(101, 4_800)
    assert kit.report(0, 100, 0.1) == []
    assert kit.report(2, 100, 0.1) == []
    assert kit.report(9, 100, 0.1) == []
    assert kit.counters["stale_reports"] == 4


def test_reports_that_lie() -> None:
    kit = Kit()
    kit.utter("Hi")
    kit.audio(101, 4_800)
    assert kit.report(1, 100, 0.1, buffered=0) == []
    assert kit.counters["refused_reports"] == 1
    (forward,) = of(ForwardReport, kit.report(1, 0, 0.2, received=9_600, buffered=9_600))
    assert forward.report.received == 4_800
    assert kit.counters["clamped_reports"] == 1


def test_reports_measure_the_network_whatever_their_epoch() -> None:
    kit = Kit()
    effects = kit.report(7, 0, 0.160, echo=100.0, hold=20.0)
    (delay,) = of(ForwardDelay, effects)
    assert delay.client == "carol"
    assert delay.one_way == pytest.approx(0.020)


def test_done_when_the_listener_has_played_all() -> None:
    kit = Kit()
    kit.utter("Hi")
    kit.audio(101, 4_800)
    kit.finish(101)
    assert sent(kit.report(1, 4_799, 0.3)) == []
    assert sent(kit.report(1, 4_800, 0.4, state=ListenerState.DRAINED)) == [
        m.Done(seq=4, epoch=1, samples=4_800, heard=4_800, estimated=False, reason="complete")
    ]
    assert kit.speech.idle


def test_pause_holds_the_current_and_the_next() -> None:
    kit = Kit()
    kit.utter("one")
    kit.utter("two")
    assert kit.speech.pause(True, 0.0) == [Hold(101, ListenerState.PAUSED)]
    assert Hold(102, ListenerState.PAUSED) in kit.finish(101)
    assert kit.speech.pause(False, 1.0) == [Hold(102, None)]


def test_a_lost_socket_suspends_and_a_pause_outlives_it() -> None:
    kit = Kit()
    kit.utter("one")
    kit.channel.attached = False
    assert kit.speech.update_hold(0.0) == [Hold(101, ListenerState.SUSPENDED)]
    assert kit.speech.pause(True, 0.0) == []
    kit.channel.attached = True
    assert kit.speech.update_hold(0.0) == [Hold(101, ListenerState.PAUSED)]


# ---------------------------------------------------------------- barge-in


def test_cancel_drops_the_current_and_all_behind_it() -> None:
    kit = Kit()
    kit.utter("Hello world")
    kit.audio(101, 4_800, placed=words(("Hello", 0, 0), ("world", 2_400, 6)))
    kit.utter("two")
    effects = kit.speech.cancel(m.Cancel(heard=2_000), 0.1)
    assert effects[:2] == [CancelUtterance(101), CloseEncoder(101)]
    assert sent(effects) == [
        m.Cancelled(
            seq=4,
            epoch=1,
            heard=2_000,
            heard_text="Hello",
            unheard_text=" world",
            estimated=False,
        ),
        m.Cancelled(seq=5, epoch=2, heard=0, heard_text="", unheard_text="two", estimated=False),
    ]
    assert kit.speech.idle
    assert kit.audio(101, 480) == []
    assert kit.speech.engine_event(Finished(101, Finish.CANCELLED, 0), 0.2) == []
    assert (kit.counters["late_audio"], kit.counters["late_events"]) == (1, 1)


def test_cancel_of_one_that_waits_leaves_the_current() -> None:
    kit = Kit()
    kit.utter("one")
    kit.utter("two")
    kit.utter("three")
    effects = kit.speech.cancel(m.Cancel(epoch=2, heard=50), 0.0)
    assert [c.epoch for c in sent(effects) if isinstance(c, m.Cancelled)] == [2, 3]
    assert of(CancelUtterance, effects) == []
    assert kit.audio(101, 480) != []


def test_cancel_of_one_that_has_just_ended_still_drops_what_is_behind() -> None:
    kit = Kit()
    kit.utter("one")
    kit.utter("two")
    kit.finish(101)
    kit.audio(102, 4_800)
    (cancelled,) = sent(kit.speech.cancel(m.Cancel(epoch=1, heard=4_000), 0.2))
    assert isinstance(cancelled, m.Cancelled)
    # The position is of the other epoch: not believed for this one (0.1 s threshold passed).
    assert (cancelled.epoch, cancelled.heard, cancelled.estimated) == (2, 2_400, True)


def test_cancel_with_nothing_alive_is_a_race_and_of_the_future_a_fault() -> None:
    kit = Kit()
    assert kit.speech.cancel(m.Cancel(), 0.0) == []
    assert kit.counters["stale_cancels"] == 1
    fault = code_of(lambda: kit.speech.cancel(m.Cancel(epoch=1), 0.0))
    assert (fault.code, fault.field) == ("bad_value", "epoch")


def test_cancel_works_while_the_last_audio_waits_in_the_listener_s_buffer() -> None:
    kit = Kit()
    kit.utter("Hi")
    kit.audio(101, 4_800)
    kit.finish(101)
    kit.report(1, 1_000, 0.3)
    effects = kit.speech.cancel(m.Cancel(), 0.4)
    assert effects[0] == CancelUtterance(101)
    (cancelled,) = sent(effects)
    assert isinstance(cancelled, m.Cancelled)
    assert (cancelled.heard, cancelled.estimated) == (1_000, False)


@pytest.mark.parametrize(("now", "estimated"), [(0.8, False), (0.81, True)])
def test_an_old_report_makes_the_position_an_estimate(now: float, estimated: bool) -> None:
    kit = Kit()
    kit.utter("Hi")
    kit.audio(101, 4_800)
    kit.report(1, 1_000, 0.3)
    (cancelled,) = sent(kit.speech.cancel(m.Cancel(), now))
    assert isinstance(cancelled, m.Cancelled)
    assert (cancelled.heard, cancelled.estimated) == (1_000, estimated)


# ---------------------------------------------------------------- the engine


def test_an_encoder_that_still_collects_sends_nothing() -> None:
    kit = Kit()
    kit.utter("Hi")
    empty = Encoded(b"", 0)
    assert kit.speech.audio(101, empty, chunk(101, 0, 10), final=False, now=0.0) == []
    (audio,) = sent(kit.audio(101, 480))
    assert isinstance(audio, m.Audio)
    assert (audio.index, audio.position) == (0, 0)


def test_nothing_follows_the_final_audio() -> None:
    kit = Kit()
    kit.utter("Hi")
    kit.audio(101, 480, final=True)
    assert kit.audio(101, 480) == []
    assert kit.counters["late_audio"] == 1


def test_audio_and_events_of_strangers() -> None:
    kit = Kit()
    assert kit.audio(55, 480) == []
    assert kit.speech.engine_event(TextWarning(55, "c", "m", "t"), 0.0) == []
    assert (kit.counters["late_audio"], kit.counters["late_events"]) == (1, 1)


def test_warnings_reach_the_client() -> None:
    kit = Kit()
    kit.utter("Hi 😀")
    warning = TextWarning(101, "unspeakable_text", "skipped", "😀")
    assert sent(kit.speech.engine_event(warning, 0.0)) == [
        m.Warn(seq=2, epoch=1, code="unspeakable_text", message="skipped", text="😀")
    ]


def test_refused_by_the_engine() -> None:
    kit = Kit()
    kit.utter("Hi")
    kit.utter("there")
    event = Finished(101, Finish.FAILED, 0, "overloaded", "no room", 0.75)
    effects = kit.speech.engine_event(event, 0.0)
    assert effects[0] == CloseEncoder(101)
    (failed,) = [e for e in sent(effects) if isinstance(e, m.Failed)]
    assert (failed.code, failed.retry_after, failed.unheard_text) == ("overloaded", 750, "Hi")
    assert of(CancelUtterance, effects) == []
    assert of(Submit, effects)[0].request.utterance == 102


def test_failed_in_the_middle_tells_what_was_heard() -> None:
    kit = Kit()
    kit.utter("Hello world")
    kit.audio(101, 4_800, placed=words(("Hello", 0, 0), ("world", 2_400, 6)))
    kit.report(1, 600, 0.1)
    (failed,) = sent(kit.speech.engine_event(Finished(101, Finish.FAILED, 4_800), 0.2))
    assert isinstance(failed, m.Failed)
    assert (failed.code, failed.heard, failed.heard_text) == ("engine_error", 600, "Hello")


def test_given_up_by_the_engine() -> None:
    kit = Kit()
    kit.utter("Hi")
    (failed,) = sent(kit.speech.engine_event(Finished(101, Finish.CANCELLED, 0), 0.0))
    assert isinstance(failed, m.Failed)
    assert failed.code == "engine_error"


def test_the_encoder_is_flushed_before_the_end() -> None:
    kit = Kit()
    kit.utter("Hi")
    with pytest.raises(AssertionError, match="flushed"):
        kit.speech.engine_event(Finished(101, Finish.COMPLETE, 0), 0.0)


# ---------------------------------------------------------------- time and ends


def test_a_silent_listener_s_utterance_is_done_after_its_estimated_end() -> None:
    kit = Kit(start_threshold=100)
    assert kit.speech.get_timer() is None
    kit.utter("Hi")
    kit.utter("there")
    kit.audio(101, 4_800, now=1.0)
    assert kit.speech.get_timer() is None  # more may come
    kit.finish(101, now=1.1)
    due = kit.speech.get_timer()
    assert due == pytest.approx(1.0 + 0.1 + 0.2 + 0.5)
    assert kit.speech.handle_timer(due - 0.001) == []
    effects = kit.speech.handle_timer(due)
    (done, *_) = sent(effects)
    assert isinstance(done, m.Done)
    assert (done.heard, done.estimated) == (4_800, True)
    assert of(Submit, effects)[0].request.utterance == 102
    assert kit.speech.handle_timer(due) == []


def test_reports_put_the_estimated_end_off() -> None:
    kit = Kit()
    kit.utter("Hi")
    kit.audio(101, 4_800)
    kit.finish(101)
    kit.report(1, 2_400, 0.4)
    assert kit.speech.get_timer() == pytest.approx(0.4 + 0.1 + 0.5)
    kit.report(1, 2_400, 0.5, state=ListenerState.SUSPENDED)
    assert kit.speech.get_timer() is None


def test_fail_all_in_order_and_all_but_the_current() -> None:
    fault = Fault("draining", "going down")
    kit = Kit()
    for text in ("one", "two", "three"):
        kit.utter(text)
    failed = sent(kit.speech.fail_all(fault, 0.0, but_current=True))
    assert [e.epoch for e in failed if isinstance(e, m.Failed)] == [2, 3]
    assert not kit.speech.idle
    failed = sent(kit.speech.fail_all(fault, 0.0))
    assert [e.epoch for e in failed if isinstance(e, m.Failed)] == [1]
    assert kit.speech.idle


def test_outcome() -> None:
    kit = Kit()
    assert kit.speech.outcome(0.0) is None
    kit.utter("Hi")
    outcome = kit.speech.outcome(0.0)
    assert outcome is not None
    assert outcome.unheard_text == "Hi"
