"""Where the listener is, with reports and without, at literal times (1,000 samples a second)."""

from dataclasses import replace

from playhead.engine.types import ListenerState, Source
from playhead.gateway.messages import PlaybackReport
from playhead.gateway.session_playback import Playback


def playback(threshold: float = 0.1) -> Playback:
    return Playback(rate=1_000.0, threshold=threshold, fresh=0.5, quantum=10)


def report(
    consumed: int,
    state: ListenerState = ListenerState.PLAYING,
    heard: int | None = None,
    discarded: int = 0,
) -> PlaybackReport:
    return PlaybackReport(
        epoch=1,
        received=1_000,
        consumed=consumed,
        heard=consumed if heard is None else heard,
        buffered=1_000 - consumed - discarded,
        discarded=discarded,
        state=state,
        time=0.0,
    )


def test_nothing_sent() -> None:
    made = playback()
    assert made.heard(5.0) == (0, False)
    assert made.has_ended()
    assert made.ends_at() is None


def test_open_loop_starts_after_the_threshold_and_stops_at_what_was_sent() -> None:
    made = playback()
    made.on_sent(1_000, 2.0)
    assert [made.heard(now) for now in (2.0, 2.1, 2.6, 3.1, 9.0)] == [
        (0, True),
        (0, True),
        (500, True),
        (1_000, True),
        (1_000, True),
    ]
    assert made.ends_at() == 3.1
    assert not made.has_ended()


def test_open_loop_begins_anew_after_running_dry() -> None:
    made = playback()
    made.on_sent(1_000, 0.0)
    made.on_sent(500, 1.0)  # in time
    assert made.ends_at() == 1.6
    made.on_sent(500, 3.0)  # dry since 1.6
    assert made.ends_at() == 3.5
    assert made.heard(3.2) == (1_700, True)


def test_hold_freezes_the_open_loop() -> None:
    made = playback(threshold=0.0)
    made.on_sent(1_000, 0.0)
    made.hold(0.4)
    made.hold(0.7)
    assert made.heard(5.0) == (400, True)
    assert made.ends_at() is None
    made.on_sent(100, 6.0)
    made.release(10.0)
    made.release(11.0)
    assert made.heard(10.1) == (500, True)
    assert made.ends_at() == 10.7


def test_hold_before_the_first_audio() -> None:
    made = playback()
    made.hold(0.0)
    made.release(1.0)
    assert made.heard(2.0) == (0, False)
    made.on_sent(100, 3.0)
    assert made.ends_at() == 3.2


def test_the_last_report_is_the_position() -> None:
    made = playback()
    made.on_sent(1_000, 0.0)
    made.on_report(report(400, heard=350), 0.5)
    assert made.heard(0.5) == (350, False)
    assert made.heard(1.0) == (350, False)
    assert made.heard(1.01) == (350, True)  # stale while it moved


def test_a_still_listener_s_report_does_not_grow_stale() -> None:
    for state in (ListenerState.PAUSED, ListenerState.SUSPENDED, ListenerState.DRAINED):
        made = playback()
        made.on_sent(1_000, 0.0)
        made.on_report(report(400, state), 0.5)
        assert made.heard(60.0) == (400, False)


def test_reported_end() -> None:
    made = playback()
    made.on_sent(1_000, 0.0)
    made.on_report(report(999), 0.5)
    assert not made.has_ended()
    made.on_report(report(900, discarded=100), 0.6)
    assert made.has_ended()


def test_drained_forgives_a_quantum_and_no_more() -> None:
    made = playback()
    made.on_sent(1_000, 0.0)
    made.on_report(report(989, ListenerState.DRAINED), 0.5)
    assert not made.has_ended()
    made.on_report(report(990, ListenerState.DRAINED), 0.6)
    assert made.has_ended()


def test_expected_end_follows_the_reports() -> None:
    made = playback()
    made.on_sent(1_000, 0.0)
    made.on_report(report(200), 0.5)
    assert made.ends_at() == 0.5 + 0.8
    made.on_sent(500, 0.6)
    assert made.ends_at() == 0.6 + 1.3
    made.on_report(report(400, ListenerState.STALLED), 0.4)  # read earlier, judged later
    assert made.ends_at() == 0.6 + 1.1
    made.hold(2.0)
    assert made.ends_at() is None
    made.release(4.0)
    assert made.ends_at() == 4.0 + 1.1


def test_no_end_is_expected_of_a_listener_that_stands_still() -> None:
    for state in (ListenerState.PAUSED, ListenerState.SUSPENDED):
        made = playback()
        made.on_sent(1_000, 0.0)
        made.on_report(report(200, state), 0.5)
        assert made.ends_at() is None


def test_between_marks_the_listener_plays_on() -> None:
    made = playback()
    made.on_sent(2_000, 0.0)
    made.on_report(replace(report(400), source=Source.MARK), 0.5)
    assert made.heard(0.5) == (400, False)
    assert made.heard(0.7) == (600, False)
    assert made.heard(1.0) == (900, False)
    assert made.heard(9.0) == (900, True), "not for ever: a mark is overdue"
    made.on_report(replace(report(900), source=Source.MARK), 1.1)
    made.on_report(replace(report(1_000, ListenerState.DRAINED), source=Source.MARK), 1.2)
    assert made.heard(1.3) == (1_000, False)


def test_what_is_inferred_again_and_again_does_not_put_off_the_end() -> None:
    made = playback()
    made.on_sent(1_000, 0.0)
    for tick in range(1, 40):
        played = min(1_000, 100 * tick)
        state = ListenerState.DRAINED if played == 1_000 else ListenerState.PLAYING
        made.on_report(replace(report(played, state), source=Source.SOCKET), 0.1 * tick)
    assert made.ends_at() == 1.0
