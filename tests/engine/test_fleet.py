"""A day of a fleet, and how many nodes it needs."""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest
from playhead.engine import simulate
from playhead.engine.fleet import DAY, Day, Demand, FleetDay, Nodes, size

CROWD = Demand(10_000.0, surges=0)
CALM = Nodes(30.0, between_failures=1e12, rollouts=0)


def day(demand: Demand, nodes: Nodes, count: int, seed: int = 1) -> Day:
    return FleetDay(demand, nodes, lambda _: count, seed).run()


def test_a_day_has_a_quiet_and_a_busy_hour() -> None:
    assert CROWD.peak == 500.0
    assert CROWD.rate(CROWD.busiest) == pytest.approx(500.0)
    assert CROWD.rate(CROWD.busiest - DAY / 2) == pytest.approx(125.0)


def test_with_enough_nodes_and_no_trouble_nobody_is_refused() -> None:
    made = day(CROWD, CALM, 4)
    assert made.refused == 0.0
    assert made.worst == 0.0
    assert (made.failures, made.respoken, made.fewest) == (0, 0.0, 4)
    assert made.accelerator_hours == pytest.approx(4 * 8 * 24)
    assert made.asked == pytest.approx(DAY * 500 * (0.25 + 0.75 / 2), rel=0.01)


def test_what_exceeds_the_nodes_is_refused() -> None:
    made = day(CROWD, CALM, 1)
    assert made.refused_share > 0.2
    assert made.worst > 0.4
    assert Day().refused_share == 0.0


def test_one_seed_is_one_day() -> None:
    trouble = Nodes(30.0, between_failures=DAY / 4)
    assert day(CROWD, trouble, 4) == day(CROWD, trouble, 4)
    assert day(CROWD, trouble, 4) != day(CROWD, trouble, 4, seed=2)


def test_a_failing_node_takes_its_speech_with_it_and_comes_back() -> None:
    often = replace(CALM, between_failures=DAY / 4)
    made = day(CROWD, often, 4)
    assert made.failures > 4
    assert made.respoken > 0.0
    assert made.fewest < 4
    assert made.refused > 0.0
    assert day(CROWD, replace(often, repair=600.0), 4).refused < made.refused


def test_rollouts_and_surges_need_room() -> None:
    assert day(CROWD, replace(CALM, rollouts=1), 4).fewest == 3
    busy = day(replace(CROWD, surges=4, surge=5.0), CALM, 4)
    assert busy.refused > 0.0


def test_a_fleet_without_nodes_refuses_everybody() -> None:
    assert day(CROWD, CALM, 0).refused_share == 1.0


def test_the_size_is_the_least_that_is_enough() -> None:
    demand, nodes = replace(CROWD, listeners=40_000.0, surges=2), Nodes(30.0)
    answer = size(demand, nodes, refused=1e-4, seeds=2)
    assert answer.bare == 9
    assert answer.spare == answer.nodes - 9 > 0
    assert all(each.refused_share <= 1e-4 for each in answer.days)
    fewer = [day(demand, nodes, answer.nodes - 1, seed) for seed in range(2)]
    assert any(each.refused_share > 1e-4 for each in fewer)
    assert answer.scaled[0].accelerator_hours < answer.days[0].accelerator_hours


def test_a_large_crowd_is_sized_by_bisection() -> None:
    demand = replace(CROWD, listeners=80_000.0, surges=2, surge=0.6)
    answer = size(demand, CALM, refused=1e-3, seeds=1)
    assert answer.bare == 17
    assert answer.bare + 1 < answer.nodes < 17 * 1.6


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    simulate.add_arguments(parser)
    return parser.parse_args(["--fleet", "--days", "1", *words])


def test_the_command_prints_a_row_for_each_crowd(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate.run(parse("--listeners", "1000", "20000")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "carries 200 utterances a second within the strict objective" in lines[0]
    assert [line.split()[:3] for line in lines[2:]] == [
        ["1,000", "50", "8"],
        ["20,000", "1,000", "8"],
    ]


def test_the_command_takes_the_report_of_a_load_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heard = {"c0": 0.999, "c100": 1.0, "utterances": 300}
    row = {"rate": 5.0, "ttfa": {"p95": 0.1}, "listener": heard, "peak_in_flight": 30}
    path = tmp_path / "report.json"
    path.write_text(json.dumps({"rates": [row]}))
    words = ("--served", str(path), "--listeners", "1000", "--node", "1")
    assert simulate.run(parse(*words, "--lenient")) == 0
    out = capsys.readouterr().out
    assert "carries 5 utterances a second within the lenient objective" in out
    assert out.splitlines()[2].split()[2] == "10"
    assert simulate.run(parse(*words)) == 2
    assert f"--served {path}: its lowest rate does not meet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--listeners", "0"], "--listeners 0: expected a number from 1 to"),
        (["--every", "nan"], "--every nan: expected a number"),
        (["--refused", "2"], "--refused 2: expected a number from 0 to 1"),
        (["--node", "0"], "--node 0: expected"),
        (["--served", "/nowhere.json"], "/nowhere.json: No such file"),
        (["--served", __file__], "--served"),
    ],
)
def test_the_command_says_what_it_cannot_use(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate.run(parse(*words)) == 2
    told = capsys.readouterr().err
    assert told.startswith("playhead simulate: ")
    assert says in told
