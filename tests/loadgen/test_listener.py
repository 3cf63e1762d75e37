"""The virtual listener, with literal times. 1,000 samples a second make them easy to read."""

import math

import pytest
from playhead.engine.types import ListenerState as State
from playhead.loadgen.habits import Habits, Hold
from playhead.loadgen.listener import Counters, Listener, Stall

RATE = 1_000


def listener(**habits: object) -> Listener:
    return Listener(Habits(**habits), RATE, now=100.0)  # type: ignore[arg-type]


def test_is_idle_until_something_comes() -> None:
    player = listener()
    assert player.counters(101.0) == Counters(0, 0, 0, State.IDLE, 0, 0.0)
    assert player.next_change() == math.inf


def test_the_strict_player_starts_at_the_first_sample() -> None:
    player = listener()
    player.arrive(0, False, 100.5)
    assert player.first_playable is None
    player.arrive(500, False, 101.0)
    assert (player.first_playable, player.started) == (101.0, 101.0)
    assert player.next_change() == pytest.approx(101.5)
    assert player.counters(101.2) == Counters(500, 200, 300, State.PLAYING, 0, 0.0)


def test_waits_for_its_threshold() -> None:
    player = listener(threshold=0.3)
    player.arrive(200, False, 101.0)
    assert player.counters(105.0).state is State.PREBUFFER
    player.arrive(100, False, 105.0)
    assert player.started == 105.0
    assert player.first_playable == 101.0


def test_the_end_is_played_below_the_threshold() -> None:
    player = listener(threshold=5.0)
    player.arrive(200, True, 101.0)
    assert player.counters(101.1).consumed == 100
    player.advance(101.3)
    assert player.over
    assert player.next_change() == math.inf


def test_a_gap_is_a_stall_of_its_exact_length() -> None:
    player = listener()
    player.arrive(500, False, 101.0)
    assert player.counters(101.75) == Counters(500, 500, 0, State.STALLED, 1, pytest.approx(0.25))
    player.arrive(500, True, 102.0)
    player.advance(110.0)
    assert player.stalls == [Stall(pytest.approx(101.5), pytest.approx(0.5), 1)]
    assert player.counters(110.0).starved == pytest.approx(0.5)
    assert player.over


def test_audio_that_comes_just_in_time_is_no_stall() -> None:
    player = listener()
    for turn in range(50):
        player.arrive(20, turn == 49, 101.0 + turn * 0.02)
    player.advance(110.0)
    assert player.stalls == []
    assert player.over


@pytest.mark.parametrize(("rate", "dry"), [(0.9, 1.1111), (1.1, 0.9091)])
def test_its_clock_has_its_own_speed(rate: float, dry: float) -> None:
    player = listener(rate=rate)
    player.arrive(1_000, False, 101.0)
    assert player.next_change() == pytest.approx(101.0 + dry, abs=1e-4)
    assert player.counters(101.5).consumed == round(500 * rate)


def test_collects_again_after_a_stall_when_it_is_such_a_player() -> None:
    player = listener(rebuffer=0.2)
    player.arrive(100, False, 101.0)
    player.arrive(100, False, 102.0)
    assert player.counters(102.1).state is State.STALLED
    player.arrive(100, False, 102.2)
    assert player.stalls == [Stall(pytest.approx(101.1), pytest.approx(1.1), 2)]


def test_an_empty_last_message_after_the_sound_is_no_gap() -> None:
    player = listener()
    player.arrive(100, False, 101.0)
    player.arrive(0, True, 105.0)
    assert player.over
    assert player.stalls == []
    assert player.counters(106.0).underruns == 1


def test_a_delayed_start_keeps_what_comes_meanwhile() -> None:
    player = listener(holds=(Hold(0.0, 2.0, State.SUSPENDED),))
    player.arrive(500, False, 101.0)
    assert player.counters(102.9).state is State.SUSPENDED
    assert player.counters(103.1) == Counters(500, 100, 400, State.PLAYING, 0, 0.0)
    assert player.started == pytest.approx(103.0)


def test_a_pause_stops_the_clock() -> None:
    player = listener(holds=(Hold(0.2, 1.2, State.PAUSED),))
    player.arrive(500, True, 101.0)
    assert player.counters(101.7) == Counters(500, 200, 300, State.PAUSED, 0, 0.0)
    assert player.next_change() == pytest.approx(102.2)
    player.advance(102.4)
    assert player.counters(102.4).consumed == 400
    player.advance(103.0)
    assert player.over
    assert player.stalls == []


def test_a_pause_ends_a_stall_and_a_dry_player_stalls_after_it() -> None:
    player = listener(holds=(Hold(0.5, 1.0, State.PAUSED),))
    player.arrive(300, False, 101.0)
    player.advance(102.25)
    assert player.state is State.STALLED
    player.arrive(300, True, 102.5)
    player.advance(105.0)
    assert player.stalls == [
        Stall(pytest.approx(101.3), pytest.approx(0.2), -1),
        Stall(pytest.approx(102.0), pytest.approx(0.5), 1),
    ]


def test_stopping_tells_what_was_heard() -> None:
    player = listener()
    player.arrive(500, False, 101.0)
    assert player.stop(101.2) == 200
    assert player.over
    player.arrive(500, False, 101.3)
    assert player.stop(102.0) == 200
    assert player.stalls == []


def test_a_stall_during_which_the_listener_gives_up_counts() -> None:
    player = listener()
    player.arrive(100, False, 101.0)
    assert player.stop(101.5) == 100
    assert player.stalls == [Stall(pytest.approx(101.1), pytest.approx(0.4), -1)]


def test_what_is_held_and_not_played_is_averaged_over_pauses_and_stalls() -> None:
    player = listener(holds=(Hold(0.0, 1.0, State.SUSPENDED),))
    assert player.listened() == (0.0, 0.0)
    player.arrive(1_000, False, 101.0)  # a second of audio, held for a second, then played
    player.advance(103.5)  # and half a second of silence
    player.arrive(500, True, 103.5)
    player.advance(110.0)
    span, held = player.listened()
    assert span == pytest.approx(3.0)
    assert held == pytest.approx((1.0 + 0.5 + 0.125) / 3.0)


def test_who_cuts_in_has_listened_until_then() -> None:
    player = listener()
    player.arrive(1_000, True, 101.0)
    player.stop(101.5)
    assert player.listened() == (pytest.approx(0.5), pytest.approx(0.75))
    player.stop(109.0)
    assert player.listened()[0] == pytest.approx(0.5)
