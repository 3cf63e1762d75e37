"""Objectives and the search for the highest rate, without a server."""

import math
from typing import Any

import pytest
from loadgen_kit import chunk, record, run
from playhead.loadgen.figures import Figures, figures
from playhead.loadgen.listener import Stall
from playhead.loadgen.slo import MOST_MEASUREMENTS, Objective, search, stall_bound

STRICT, LENIENT = Objective(), Objective(strict=False)


def made(
    count: int = 200, *, ttfa: float = 0.1, stall: float = 0.0, stalled: int = 0, **values: Any
) -> Figures:
    records = [
        record(n, 0.05 * n, first_playable=0.05 * n + ttfa, samples=100, ended=0.05 * n + 1.0,
               chunks=[chunk(0.05 * n + ttfa)], **values)
        for n in range(count)
    ]  # fmt: skip
    for kept in records[:stalled]:
        kept.stalls = [Stall(kept.intended, stall, -1)]
    return figures([run(*records)])


def test_a_clean_run_meets_both() -> None:
    assert STRICT.misses(made()) == LENIENT.misses(made()) == []
    assert (STRICT.name, LENIENT.name) == ("strict", "lenient")


def test_one_stall_misses_strict_and_short_ones_meet_lenient() -> None:
    short = made(stall=0.05, stalled=50)
    assert STRICT.misses(short) == ["50 of 200 stalled"]
    assert LENIENT.misses(short) == []
    assert LENIENT.misses(made(stall=0.2, stalled=2)) == []
    assert LENIENT.misses(made(stall=0.2, stalled=3)) == ["C100 is 98.5%, below 99%"]


def test_late_first_audio_misses_both() -> None:
    late = made(ttfa=0.25)
    assert STRICT.misses(late) == LENIENT.misses(late)
    assert STRICT.misses(late) == ["p95 of TTFA is 250 ms, above 200"]
    assert Objective(ttfa_p95=0.3).misses(late) == []


def test_faults_miss_strict_at_once() -> None:
    faulty = made()
    faulty.faults = {"overloaded": 1, "lost": 1}
    assert STRICT.misses(faulty) == ["faults: 1 lost, 1 overloaded"]
    assert LENIENT.misses(faulty) == []
    faulty.faults = {"overloaded": 3}
    assert LENIENT.misses(faulty) == ["faults: 3 overloaded"]


def test_a_growing_backlog_misses() -> None:
    growing = made()
    growing.backlog_growth = 30.0
    assert STRICT.misses(growing) == ["the backlog grew by 30.0 utterances"]


def test_silence_meets_nothing() -> None:
    assert LENIENT.misses(figures([run(record())])) == ["nobody heard anything"]
    refused = figures([run(record(fault="refused_key"))])
    assert STRICT.misses(refused) == ["nobody heard anything", "faults: 1 refused_key"]


def test_confidence_grows_with_the_number_of_utterances() -> None:
    assert stall_bound(0, 0) == 1.0
    assert stall_bound(2, 0) == 1.0
    assert stall_bound(300, 0) == pytest.approx(0.01)
    assert 0.05 < stall_bound(100, 5) < 0.11
    assert stall_bound(10, 10) == 1.0


@pytest.mark.parametrize("limit", [0.07, 0.9, 1.0, 3.3, 17.0, 400.0])
def test_search_finds_the_limit_from_anywhere(limit: float) -> None:
    found = search(lambda rate: rate <= limit, start=2.0, least=0.05, most=1_000.0)
    assert found.best is not None
    assert found.worse is not None
    assert found.best <= limit < found.worse <= found.best * 1.05 * (1 + 1e-9)
    assert len({rate for rate, _ in found.measured}) == len(found.measured) < 20


def test_search_ends_at_its_bounds() -> None:
    found = search(lambda _: True, start=3.0, least=1.0, most=10.0)
    assert (found.best, found.worse) == (10.0, None)
    assert [rate for rate, _ in found.measured] == [3.0, 6.0, 10.0]
    found = search(lambda _: False, start=3.0, least=1.0, most=10.0)
    assert (found.best, found.worse) == (None, 1.0)
    assert [rate for rate, _ in found.measured] == [3.0, 1.5, 1.0]


def test_search_gives_up_when_it_measures_without_end() -> None:
    found = search(lambda rate: rate <= math.pi, start=1.0, least=1.0, most=9.0, tolerance=1e-12)
    assert len(found.measured) == MOST_MEASUREMENTS


@pytest.mark.parametrize(
    "wrong",
    [
        {"least": 0.0},
        {"start": 0.5},
        {"start": 20.0},
        {"tolerance": 0.0},
        {"tolerance": math.nan},
    ],
)
def test_search_refuses_what_holds_no_rate(wrong: dict[str, float]) -> None:
    bounds = {"start": 3.0, "least": 1.0, "most": 10.0, **wrong}
    with pytest.raises(ValueError, match=r"expected|tolerance"):
        search(lambda _: True, **bounds)
