"""One utterance of one client, message by message, with literal times."""

from typing import Any

import pytest
from loadgen_kit import RATE, audio, done, record, started
from playhead.engine.types import ListenerState as State
from playhead.gateway.messages import (
    Cancel,
    Cancelled,
    End,
    ErrorEvent,
    Failed,
    Pause,
    PlaybackReport,
    Pong,
    ResumePlayback,
    Text,
)
from playhead.loadgen.habits import Habits, Hold, Reports
from playhead.loadgen.listener import Stall
from playhead.loadgen.reporting import Link
from playhead.loadgen.turn import Turn
from playhead.loadgen.typist import Piece

ORIGIN = 100.0


def turn(**habits: Any) -> Turn:
    made = Turn(record(), Habits(**habits), Link(), origin=ORIGIN, deadline=160.0)
    assert made.start(101.0) == [Text("Hello there."), End()]
    return made


def opened(**habits: Any) -> Turn:
    made = turn(**habits)
    made.receive(started(), 20, 101.01)
    return made


def cancelled(heard: int = 0) -> Cancelled:
    return Cancelled(
        seq=5, epoch=1, heard=heard, heard_text="", unheard_text="", estimated=False
    )  # fmt: skip


def typing(*pieces: Piece, **habits: Any) -> Turn:
    kept = record(0, 1.0)
    return Turn(kept, Habits(**habits), Link(), origin=ORIGIN, deadline=160.0, pieces=pieces)


PIECES = (Piece(0.0, "Hel"), Piece(0.5, "lo "), Piece(1.0, "there."))


def test_a_text_that_is_written_slowly_goes_out_piece_by_piece() -> None:
    call = typing(*PIECES)
    assert call.start(101.0) == [Text("Hel")]
    call.sent(101.0)
    assert call.due() == 101.5
    assert call.tick(101.4) == []
    assert call.tick(101.5) == [Text("lo ")]
    call.sent(101.5)
    assert call.record.text_sent is None
    assert call.receive(started(), 20, 102.1) == [Text("there."), End()]
    call.sent(102.2)
    assert call.record.text_sent == pytest.approx(2.2)
    call.sent(103.0)
    assert call.record.text_sent == pytest.approx(2.2)


def test_a_late_start_sends_what_has_been_written_meanwhile() -> None:
    assert typing(*PIECES).start(101.7) == [Text("Hel"), Text("lo ")]


def test_a_listener_who_cuts_in_hears_no_more_of_the_text() -> None:
    call = typing(*PIECES, barge_in=0.1)
    call.start(101.0)
    call.receive(started(), 20, 101.01)
    call.receive(audio(0, 500), 1_100, 101.1)
    assert isinstance(call.tick(101.2)[-1], Cancel)
    assert call.tick(103.0) == []


def test_a_text_that_failed_half_way_is_ended() -> None:
    call = typing(*PIECES)
    call.start(101.0)
    call.receive(started(), 20, 101.01)
    failed = Failed(
        seq=3, epoch=1, code="engine_error", message="no", expected="yes", heard=0,
        heard_text="", unheard_text="",
    )  # fmt: skip
    assert call.receive(failed, 60, 101.1) == [End()]


def test_a_good_utterance_from_text_to_done() -> None:
    call = opened()
    (playing,) = call.receive(audio(0, 500), 1_100, 101.2)
    assert isinstance(playing, PlaybackReport)
    assert (playing.state, playing.epoch, playing.seq) == (State.PLAYING, 1, 2)
    assert call.due() == pytest.approx(101.45)
    call.receive(audio(500, 500, final=True), 1_100, 101.4)
    call.tick(101.9)
    assert not call.played
    (drained,) = call.tick(102.2)
    assert call.played
    assert isinstance(drained, PlaybackReport)
    assert drained.state is State.DRAINED
    assert call.receive(done(1_000), 60, 102.21) == []
    kept = call.record
    assert call.over
    assert (kept.finish, kept.fault, kept.stalls) == ("complete", "", [])
    assert kept.dispatched == pytest.approx(1.0)
    assert kept.first_byte == kept.first_playable == kept.started == pytest.approx(1.2)
    assert (kept.samples, kept.bytes, kept.heard, kept.server_samples) == (
        1_000,
        2_200,
        1_000,
        1_000,
    )
    assert [(c.position, c.lane, c.slack) for c in kept.chunks] == [
        (0, "urgent", 20.0),
        (500, "urgent", 20.0),
    ]
    assert kept.ended == pytest.approx(2.21)


def test_a_gap_is_in_the_record() -> None:
    call = opened()
    call.receive(audio(0, 500), 1_100, 101.2)
    call.tick(101.7)
    call.receive(audio(500, 500, final=True), 1_100, 101.95)
    call.tick(102.45)
    call.receive(done(1_000), 60, 102.46)
    assert call.record.stalls == [Stall(pytest.approx(1.7), pytest.approx(0.25), 1)]


def test_a_barge_in_comes_when_it_was_drawn_and_what_follows_is_waste() -> None:
    call = opened(barge_in=0.3)
    call.receive(audio(0, 500), 1_100, 101.2)
    call.tick(101.45)
    assert call.due() == pytest.approx(101.5)
    assert call.tick(101.5) == [Cancel(epoch=1, heard=300)]
    assert call.due() == 160.0
    assert call.tick(101.6) == []
    assert call.receive(audio(500, 500), 1_100, 101.51) == []
    call.receive(cancelled(300), 40, 101.52)
    kept = call.record
    assert (kept.finish, kept.fault, kept.heard, kept.server_heard) == ("cancelled", "", 300, 300)
    assert (kept.samples, kept.cancel_sent) == (1_000, pytest.approx(1.5))


def test_a_barge_in_that_crosses_the_end_is_a_complete_utterance() -> None:
    call = opened(barge_in=0.3)
    call.receive(audio(0, 500, final=True), 1_100, 101.2)
    call.tick(101.5)
    call.receive(done(500), 60, 101.51)
    assert (call.record.finish, call.record.fault, call.record.heard) == ("complete", "", 300)


def test_nobody_barges_into_what_is_over() -> None:
    call = opened(barge_in=5.0)
    call.receive(audio(0, 100, final=True), 300, 101.2)
    call.tick(101.3)
    assert call.due() == pytest.approx(101.55)


def test_the_pause_button_is_told_and_released() -> None:
    call = opened(holds=(Hold(0.1, 0.3, State.PAUSED),))
    call.receive(audio(0, 500), 1_100, 101.2)
    report, pressed = call.tick(101.3)
    assert isinstance(report, PlaybackReport)
    assert report.state is State.PAUSED
    assert pressed == Pause()
    assert call.tick(101.5)[1] == ResumePlayback()


def test_a_barge_in_during_a_pause_releases_it() -> None:
    call = opened(holds=(Hold(0.1, 9.0, State.PAUSED),), barge_in=1.0)
    call.receive(audio(0, 500), 1_100, 101.2)
    call.tick(101.3)
    assert call.tick(102.2) == [ResumePlayback(), Cancel(epoch=1, heard=100)]


def test_a_failure_during_a_pause_releases_it() -> None:
    call = opened(holds=(Hold(0.1, 9.0, State.PAUSED),))
    call.receive(audio(0, 500), 1_100, 101.2)
    call.tick(101.3)
    assert call.receive(failed("engine_error"), 40, 101.4) == [ResumePlayback()]


def failed(code: str) -> Failed:
    return Failed(
        seq=5, epoch=1, code=code, message="why", expected="", heard=0, heard_text="",
        unheard_text="",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("code", "fault"), [("engine_error", "failed"), ("overloaded", "overloaded")]
)
def test_failures_are_named(code: str, fault: str) -> None:
    call = opened()
    call.receive(failed(code), 40, 101.4)
    kept = call.record
    assert (kept.finish, kept.fault, kept.message) == ("failed", fault, f"{code}: why")
    assert kept.heard == 0


def test_an_error_before_the_utterance_opened_refuses_it() -> None:
    call = turn()
    call.receive(ErrorEvent(code="draining", message="going", expected=""), 40, 101.1)
    assert (call.record.finish, call.record.message) == ("refused", "draining: going")


def test_an_error_later_is_a_fault_but_speech_goes_on() -> None:
    call = opened()
    call.receive(ErrorEvent(code="bad_value", message="x", expected=""), 40, 101.1)
    assert not call.over
    assert call.record.fault == "error_event"


def test_a_server_that_says_nothing_times_out() -> None:
    call = turn()
    assert call.due() == 160.0
    assert call.tick(130.0) == []
    assert call.tick(160.0) == [Cancel()]
    assert (call.record.finish, call.record.fault) == ("timeout", "timeout")


def test_other_epochs_and_messages_are_not_ours() -> None:
    call = turn()
    call.receive(audio(0, 500), 1_100, 101.0)
    call.receive(started(epoch=3), 20, 101.1)
    call.receive(started(epoch=4), 20, 101.1)
    call.receive(audio(0, 500), 1_100, 101.2)
    call.receive(done(500), 1_100, 101.2)
    call.receive(failed("x"), 1_100, 101.2)
    call.receive(cancelled(), 1_100, 101.2)
    assert call.receive(Pong(time=0.0, received=0.0, sent=0.0), 9, 101.2) == []
    assert call.record.chunks == []
    assert not call.over


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([audio(0, 500, final=True), done(900)], "truncated"),
        ([audio(0, 500, data=bytes(1_000)), done(500)], "silence"),
        ([audio(0, 0, final=True), done(0)], "no_audio"),
        ([audio(0, 500), audio(700, 500)], "out_of_order"),
        ([audio(0, 500), audio(500, 500, sent=1.0)], "clock_backwards"),
        ([audio(0, 500, final=True), done(500)], "early_done"),
        ([audio(0, 500), cancelled()], "cut_by_server"),
        ([audio(0, 500, data=bytes(1_000)), audio(500, 1), done(900)], "truncated"),
    ],
)
def test_a_server_that_cheats_is_named(messages: list[Any], fault: str) -> None:
    call = opened()
    for number, message in enumerate(messages):
        call.receive(message, 100, 101.2 + number * 0.1)
    assert call.record.fault == fault


@pytest.mark.parametrize("style", [Reports.OFF, Reports.EMPTY])
def test_whose_end_the_server_must_guess_plays_on(style: Reports) -> None:
    call = opened(reports=style)
    call.receive(audio(0, 5_000, final=True), 100, 101.2)
    call.receive(done(5_000, estimated=style is Reports.OFF), 60, 103.0)
    assert (call.record.fault, call.record.heard) == ("", 5_000)


def test_silence_in_a_compressed_codec_cannot_be_told() -> None:
    call = opened()
    call.record.codec = "opus"
    call.receive(audio(0, 500, final=True, data=bytes(9)), 100, 101.2)
    call.tick(101.7)
    call.receive(done(500), 60, 101.8)
    assert call.record.fault == ""


def test_a_lost_socket_ends_it_once() -> None:
    call = opened()
    call.receive(audio(0, 500), 100, 101.2)
    call.lost("reset by peer", 101.4)
    call.lost("again", 105.0)
    call.abandon(105.0)
    kept = call.record
    assert (kept.finish, kept.fault, kept.message) == ("lost", "connection_lost", "reset by peer")
    assert kept.heard == 200
    assert kept.ended == pytest.approx(1.4)


def test_an_interrupted_run_says_so() -> None:
    call = turn()
    call.abandon(101.5)
    assert (call.record.finish, call.record.fault) == ("interrupted", "interrupted")


def test_the_listener_of_a_turn_counts_in_wire_samples() -> None:
    assert turn().record.sample_rate == RATE


def test_onlookers_are_told_the_state_and_what_is_held() -> None:
    call = opened()
    assert call.listening == (State.IDLE, 0.0)
    call.receive(audio(0, RATE // 2), 20, 101.02)
    state, held = call.listening
    assert state is State.PLAYING
    assert held == pytest.approx(0.5, abs=0.02)


def test_what_comes_after_the_end_is_counted_and_not_heard() -> None:
    call = opened()
    call.receive(audio(0, 100, final=True), 300, 101.1)
    call.receive(done(100), 60, 101.3)
    assert call.receive(audio(100, 100, seq=12), 300, 101.4) == []
    assert (call.record.samples, call.record.fault) == (100, "")
