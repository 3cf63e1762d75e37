"""Settings compared utterance by utterance, with literal stalls."""

import pytest
from loadgen_kit import record, run
from playhead.loadgen.listener import Stall
from playhead.loadgen.paired import mcnemar, verdicts
from playhead.loadgen.record import Run


def arm(signal: str, lead: str, *stalled: int, count: int = 40, **plan: object) -> Run:
    """``count`` utterances, four of a session, of which those numbered ``stalled`` did."""
    records = [
        record(
            number, first_playable=0.1, session=number // 4, listened=2.0, unplayed=0.5,
            stalls=[Stall(1.0, 0.2, 1)] if number in stalled else [],
        )
        for number in range(count)
    ]  # fmt: skip
    return run(*records, signal=signal, lead=lead, label=f"{signal} {lead}", **plan)


@pytest.mark.parametrize(
    ("one", "other", "chance"), [(0, 0, 1.0), (5, 5, 1.0), (10, 0, 2 / 1024), (0, 3, 0.25)]
)
def test_an_uneven_split_is_unlikely_by_chance(one: int, other: int, chance: float) -> None:
    assert mcnemar(one, other) == pytest.approx(chance)


def test_who_knows_is_compared_with_who_guesses_and_learned_with_fixed() -> None:
    runs = [
        arm("estimated", "1", *range(10)),
        arm("reported", "1", 0, 20),
        arm("reported", "learned"),
        run(record(0), signal="none", lead="1", label="nobody heard"),
        run(record(0, first_playable=0.1)),
    ]
    first, second, third = verdicts(runs)
    assert (first.base.label, first.better.label) == ("estimated 1", "reported 1")
    assert (first.pairs, first.only_base, first.only_better) == (40, 9, 1)
    assert first.chance == pytest.approx(22 / 1024)
    assert first.low < 10.5 / 2.5 < first.high
    assert (second.only_base, second.only_better) == (10, 0)
    assert second.low > 1.0, "ten against none is a difference"
    assert third.base.label == "reported 1"
    assert "2 of 40 stalled (held 0.50 s) against 10 of 40 (held 0.50 s)" in first.told()
    assert "of 40 pairs 9 stalled there alone, 1 here alone: p = 0.021" in first.told()


def test_utterances_without_a_twin_and_times_not_known_are_passed_over() -> None:
    other = arm("reported", "1", 1)
    for each in other.records:
        each.listened = None
    (made,) = verdicts([arm("none", "1", *range(20), count=20), other])
    assert made.pairs == 20
    assert made.better.held == 0.0
    assert made.high >= 10
    assert f"{made.high:.0f} times fewer" in made.told()


def test_rates_are_not_mixed() -> None:
    assert verdicts([arm("none", "1", rate=1.0), arm("reported", "1", rate=2.0)]) == []
