"""What a load test allows to promise."""

from dataclasses import replace
from typing import Any

import pytest
from playhead.engine.served import H200, NotServed, Point, capacity, read

GOOD = Point(10.0, 0.05, 1.0, 1.0, 60, 300)


def test_the_built_in_measurement_carries_200_a_second() -> None:
    assert capacity(H200).rate == 200.0
    assert capacity(H200, strict=False).rate == 200.0


def test_the_highest_rate_without_a_bad_one_below_it() -> None:
    points = [replace(GOOD, rate=40.0), replace(GOOD, rate=30.0, c0=0.99), GOOD]
    assert capacity(points).rate == 10.0
    assert capacity(points, strict=False).rate == 40.0


@pytest.mark.parametrize(
    "bad", [{"ttfa_p95": 0.201}, {"c0": 0.999}, {"grows": True}, {"c100": 0.98, "c0": 0.5}]
)
def test_what_is_not_good_enough_is_no_capacity(bad: dict[str, Any]) -> None:
    with pytest.raises(NotServed, match="does not meet the strict objective"):
        capacity([replace(GOOD, **bad)])


def test_nothing_lenient_is_said_too() -> None:
    with pytest.raises(NotServed, match="lenient"):
        capacity([replace(GOOD, c100=0.98)], strict=False)


def row(**values: Any) -> dict[str, Any]:
    return {
        "rate": 10.0,
        "ttfa": {"p95": 0.05},
        "listener": {"c0": 1.0, "c100": 1.0, "utterances": 300},
        "peak_in_flight": 60,
        **values,
    }


def test_reports_are_read_without_their_invalid_rows() -> None:
    made = read({"rates": [row(), row(rate=20.0, invalid=["late"]), row(backlog_grows=True)]})
    assert made == [GOOD, replace(GOOD, grows=True)]


@pytest.mark.parametrize(
    ("report", "says"),
    [
        ([], "expected an object with a list 'rates'"),
        ({"rates": []}, "expected an object with a list 'rates'"),
        ({"rates": 3}, "expected an object with a list 'rates'"),
        ({"rates": [3]}, "a row of 'rates' lacks or mistakes"),
        ({"rates": [row(ttfa={})]}, "mistakes 'p95'"),
        ({"rates": [row(ttfa={"p95": None})]}, "a row of 'rates' lacks or mistakes"),
    ],
)
def test_what_is_no_report_is_said(report: Any, says: str) -> None:
    with pytest.raises(NotServed, match=says):
        read(report)
