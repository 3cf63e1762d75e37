"""Comparisons at equal barge-in waste, from figures made by hand."""

from dataclasses import replace

import pytest
from loadgen_kit import chunk, record, run
from playhead.loadgen.figures import Continuity, Figures, figures
from playhead.loadgen.frontier import Point, at_held, comparison, curves, grid

HEARD = figures(
    [
        run(
            record(
                0, 1.0, first_playable=1.1, started=1.1, ended=2.0, samples=100, chunks=[chunk(1.1)]
            )
        )
    ]
)


def made(
    signal: str, lead: str, held: float | None, stalled: int, rate: float = 1.0, of: int = 10
) -> Figures:
    """``stalled`` of ``of`` utterances had a stall of half a second."""
    worsts = [0.5] * stalled + [0.0] * (of - stalled)
    return replace(
        HEARD, signal=signal, lead=lead, held=held, rate=rate, label=f"{signal} {lead}",
        listener=Continuity.of(worsts),
    )  # fmt: skip


def test_learned_leads_are_a_curve_of_their_own_in_the_order_of_what_was_held() -> None:
    rows = [
        made("reported", "2", 1.4, 1),
        made("reported", "1", 0.8, 3),
        made("reported", "learned:1.5", 0.9, 2),
        made("none", "1", 1.0, 4, rate=2.0),
    ]
    found = curves(rows)
    assert list(found) == [1.0, 2.0]
    assert list(found[1.0]) == ["reported", "learned"]
    assert [point.lead for point in found[1.0]["reported"]] == ["1", "2"]
    assert found[1.0]["learned"] == [Point("learned:1.5", 0.9, pytest.approx(0.2), 10)]


def test_rows_that_tell_nothing_do_not_count() -> None:
    rows = [made("", "", 1.0, 0), made("none", "1", None, 0), made("none", "1", 1.0, 0, of=0)]
    assert curves(rows) == {}
    assert comparison([replace(rows[0], label="strict")]) == ""


def test_between_two_settings_stalls_are_on_the_line() -> None:
    points = [Point("1", 1.0, 0.4, 10), Point("2", 2.0, 0.2, 10), Point("3", 2.0, 0.1, 10)]
    assert at_held(points, 1.5) == pytest.approx(0.3)
    assert at_held(points, 2.0) == pytest.approx(0.2)
    assert at_held(points[1:], 2.0) == 0.2
    assert at_held(points, 0.9) is None
    assert at_held(points, 2.1) is None


def test_the_grid_is_where_two_signals_were_measured() -> None:
    one = [Point("1", 0.95, 0.4, 10), Point("2", 1.3, 0.2, 10)]
    two = [Point("1", 1.1, 0.4, 10), Point("2", 1.6, 0.2, 10)]
    assert grid({"a": one, "b": two}) == [1.1, 1.2, 1.3]
    assert grid({"a": one, "b": two[:1]}) == []
    assert grid({"a": one[:1]}) == []


def test_a_terminal_shows_stalls_at_equal_waste_and_clean_rates() -> None:
    rows = [
        made("none", "1", 1.0, 4),
        made("none", "2", 1.2, 2),
        made("reported", "1", 1.0, 2),
        made("reported", "2", 1.1, 0),
        made("reported", "2", 1.1, 0, rate=2.0),
        made("reported", "2", 1.1, 3, rate=3.0),
        made("reported", "2", 1.1, 0, rate=4.0),
    ]
    lines = comparison(rows).splitlines()
    assert lines[0] == "1/s: stalled utterances by seconds held (what a barge-in wastes)"
    assert lines[1].split() == ["held", "s", "none", "reported"]
    assert [line.split() for line in lines[2:4]] == [
        ["1.0", "40.00%", "20.00%"],
        ["1.1", "30.00%", "0.00%"],
    ]
    assert lines[4] == "2/s: no two signals held the same; give more --leads"
    assert "none 1: highest clean rate: strict none, lenient none" in lines
    assert "reported 2: highest clean rate: strict 2/s, lenient 2/s" in lines


def test_a_signal_that_does_not_reach_so_far_shows_a_dash() -> None:
    rows = [
        made("none", "1", 1.0, 4),
        made("none", "2", 1.2, 2),
        made("estimated", "1", 1.0, 3),
        made("estimated", "2", 1.2, 1),
        made("reported", "1", 0.6, 2),
        made("reported", "2", 1.1, 0),
    ]
    assert comparison(rows).splitlines()[-7].split() == ["1.2", "20.00%", "10.00%", "-"]


def test_an_invalid_rate_is_not_clean() -> None:
    row = made("none", "1", 1.0, 0)
    row.invalid = ["the generator was late"]
    assert "strict none" in comparison([row])
    assert curves([row]) == {}
