"""The simulator's ground truth, with literal times."""

import random

import pytest
from playhead.engine.sim_listener import Habits, Listener, Mix, Network
from playhead.engine.types import ListenerState as State


def listener(**habits: float) -> Listener:
    return Listener(Habits(**habits), now=0.0)  # type: ignore[arg-type]


def test_plays_from_the_first_audio_when_it_has_no_threshold() -> None:
    player = listener()
    player.arrive(1.0, False, 2.0)
    player.advance(2.25)
    assert player.state is State.PLAYING
    assert player.consumed == pytest.approx(0.25)
    assert player.truth.first_audio == 2.0


def test_waits_for_its_threshold() -> None:
    player = listener(threshold=0.3)
    player.arrive(0.2, False, 1.0)
    player.advance(5.0)
    assert player.state is State.PREBUFFER
    assert player.consumed == 0.0
    player.arrive(0.2, False, 5.0)
    assert player.state is State.PLAYING


def test_the_end_of_the_utterance_starts_a_player_below_its_threshold() -> None:
    player = listener(threshold=0.5)
    player.arrive(0.2, True, 1.0)
    player.advance(1.3)
    assert player.state is State.DRAINED
    assert player.truth.stalls == []


def test_running_dry_is_a_stall_as_long_as_it_lasts() -> None:
    player = listener()
    player.arrive(0.5, False, 0.0)
    player.arrive(0.5, True, 0.8)
    player.advance(2.0)
    assert player.truth.stalls == [pytest.approx(0.3)]
    assert player.starved == pytest.approx(0.3)
    assert player.underruns == 1
    assert player.state is State.DRAINED


def test_an_end_without_audio_closes_a_stall() -> None:
    player = listener()
    player.arrive(0.5, False, 0.0)
    player.arrive(0.0, True, 1.0)
    assert player.state is State.DRAINED
    assert player.truth.worst == pytest.approx(0.5)


def test_a_fast_clock_drains_faster() -> None:
    player = listener(rate=1.05)
    player.arrive(2.0, False, 0.0)
    player.advance(1.0)
    assert player.consumed == pytest.approx(1.05)


def test_a_suspended_page_holds_its_audio() -> None:
    player = listener(blocked_until=1.0)
    player.arrive(0.5, False, 0.0)
    player.advance(0.9)
    assert player.state is State.SUSPENDED
    assert player.consumed == 0.0
    player.advance(1.2)
    assert player.state is State.PLAYING
    assert player.consumed == pytest.approx(0.2)


def test_a_pause_is_not_a_stall() -> None:
    player = listener(pause_at=0.2, pause_for=1.0)
    player.arrive(1.0, True, 0.0)
    player.advance(0.7)
    assert player.state is State.PAUSED
    player.advance(3.0)
    assert player.state is State.DRAINED
    assert player.truth.stalls == []


def test_a_pause_ends_a_stall_that_is_going_on() -> None:
    player = listener(pause_at=0.5, pause_for=1.0)
    player.arrive(0.2, False, 0.0)
    player.advance(0.6)
    assert player.state is State.PAUSED
    assert player.truth.stalls == [pytest.approx(0.3)]


def test_arrivals_during_a_pause_do_not_start_it() -> None:
    player = listener(blocked_until=1.0)
    player.arrive(0.2, False, 0.0)
    player.arrive(0.2, False, 0.5)
    assert player.state is State.SUSPENDED
    assert player.held == pytest.approx(0.4)


def test_a_resume_below_the_threshold_waits() -> None:
    player = listener(threshold=0.4, blocked_until=1.0)
    player.arrive(0.2, False, 0.0)
    player.advance(2.0)
    assert player.state is State.PREBUFFER


def test_nothing_changes_by_itself_before_audio_came() -> None:
    assert listener().next_change() == float("inf")


def test_ideal_listeners_have_no_faults() -> None:
    mix = Mix(ideal=True)
    assert mix.network(random.Random(1)) == Network()
    assert mix.habits(random.Random(1), Network()) == Habits()


def test_a_sticky_network_pauses_in_every_utterance() -> None:
    rng = random.Random(1)
    sticky = Mix()
    assert all(sticky.habits(rng, Network(shaky=True)).cut_at is not None for _ in range(20))
    assert all(sticky.habits(rng, Network(shaky=False)).cut_at is None for _ in range(20))


def test_a_fickle_network_is_drawn_per_utterance() -> None:
    rng = random.Random(1)
    cuts = [Mix(sticky=False).habits(rng, Network(shaky=True)).cut_at for _ in range(400)]
    assert 30 < sum(cut is not None for cut in cuts) < 95
