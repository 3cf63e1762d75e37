"""Drawn listeners: shares, ranges and seeds."""

import pytest
from playhead.engine.types import ListenerState
from playhead.loadgen.habits import MIXES, STRICT, Caller, Habits, Mix, Reports


def drawn(mix: Mix, count: int = 3_000) -> list[Habits]:
    return [mix.habits(1, number, mix.caller(1, number)) for number in range(count)]


def test_the_strict_mix_is_the_strict_player() -> None:
    assert set(drawn(MIXES["strict"], 50)) == {STRICT}


def test_shares_and_ranges_are_kept() -> None:
    listeners = drawn(MIXES["people"])
    delayed = [h for h in listeners if h.holds and h.holds[0].start == 0]
    assert len(delayed) / len(listeners) == pytest.approx(0.10, abs=0.02)
    assert all(1 <= h.holds[0].end <= 3 for h in delayed)
    pausing = [h for h in listeners if any(x.state is ListenerState.PAUSED for x in h.holds)]
    assert len(pausing) / len(listeners) == pytest.approx(0.10, abs=0.02)
    barging = [h.barge_in for h in listeners if h.barge_in is not None]
    assert len(barging) / len(listeners) == pytest.approx(0.15, abs=0.03)
    assert all(0.3 <= at <= 6 for at in barging)
    assert all(0.95 <= h.rate <= 1.05 for h in listeners)
    off = sum(h.reports is Reports.OFF for h in listeners)
    assert off / len(listeners) == pytest.approx(0.05, abs=0.015)


def test_the_same_number_is_the_same_listener() -> None:
    mix = MIXES["people"]
    caller = mix.caller(3, 0)
    assert caller == mix.caller(3, 0)
    assert mix.habits(3, 8, caller) == mix.habits(3, 8, caller)
    assert len({mix.caller(3, number) for number in range(20)}) > 10
    assert caller != mix.caller(4, 0)


def test_one_share_does_not_shift_the_other_draws() -> None:
    plain, pausing = Mix("a", pausing=0.5, barging=1.0), Mix("b", delayed=1.0, barging=1.0)
    assert plain.habits(0, 5, Caller()).barge_in == pausing.habits(0, 5, Caller()).barge_in


def test_a_callers_traits_are_in_its_habits() -> None:
    caller = Caller(threshold=0.4, rate=1.05, reports=Reports.LATE, network="home")
    habits = MIXES["strict"].habits(0, 0, caller)
    assert (habits.threshold, habits.rate, habits.reports) == (0.4, 1.05, Reports.LATE)


def test_networks_have_their_shares() -> None:
    names = [MIXES["shaky"].caller(2, session).network for session in range(1_000)]
    assert names.count("shaky") == pytest.approx(150, abs=40)
