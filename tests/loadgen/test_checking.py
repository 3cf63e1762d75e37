"""``playhead bench selfcheck`` as it is asked for and told."""

import json
import resource
from dataclasses import replace
from pathlib import Path

import pytest
from playhead.gateway.cli import main
from playhead.loadgen import checking, scale
from playhead.loadgen.cores import Split
from playhead.loadgen.figures import figures
from playhead.loadgen.record import Run
from playhead.loadgen.selfcheck import Finding

PLAN = {"rate": 1, "seed": 0, "window": 1, "warmup": 0, "mix": "m"}


def bench(*words: str) -> int:
    return main(["bench", "selfcheck", *words])


@pytest.mark.parametrize(("good", "status"), [(True, 0), (False, 1)])
def test_claims_are_told(
    good: bool, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checking, "check", lambda: [Finding("claim", good, "detail")])
    assert bench() == status
    assert capsys.readouterr().out.split() == ["ok" if good else "FAILED", "claim:", "detail"]


def test_several_numbers_of_listeners_end_with_a_partial_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[scale.Load] = []

    def told(load: scale.Load, *rest: object) -> scale.Scale:
        asked.append(load)
        run = Run(PLAN)
        return scale.Scale(load, figures([run]), len(asked) < 2, 30.0, 2.0, 1.0, 4.0)

    monkeypatch.setattr(scale, "measure", told)
    monkeypatch.setattr(checking, "cores", lambda: [frozenset({0}), frozenset({1})])
    words = ("--listeners", "7", "8", "9", "--processes", "3", "--servers", "2", "--cores", "1")
    assert bench(*words, "--window", "2", "--speech", "5", "--out", str(tmp_path)) == 1
    split = Split((0,), (1,))
    assert asked == [scale.Load(count, 3, 2.0, 5, 2, split) for count in (7, 8)]
    assert "FAILED  7 listeners at a time: 0, in 3 processes on processors 0;" in (
        capsys.readouterr().out
    )
    kept = json.loads((tmp_path / "selfcheck.json").read_text())
    assert kept["machine"]["cores"] == [[0], [1]]
    first, second = kept["runs"]
    assert (first["load"]["listeners"], first["complete"], first["valid"]) == (7, True, False)
    assert (first["listeners_per_core"], first["cores_used"]) == (15.0, 0.5)
    assert not second["complete"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--listeners", "0"], "--listeners 0: expected one for each process at least"),
        (["--listeners", "9", "--speech", "0"], "--speech 0: expected more than 0"),
        (["--listeners", "9", "--window", "-1"], "--window -1: expected more than 0"),
        (["--listeners", "9", "--servers", "2"], "--servers 2: each of the 1 processes speaks to"),
        (["--listeners", "9", "--cores", "900"], "--cores 900 of "),
        (["--listeners", "2000"], "2000 listeners need 2064 open files in a process, and the"),
    ],
)
def test_what_cannot_be_done_is_said(
    words: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda what: (1024, 1024))
    monkeypatch.setattr(resource, "setrlimit", lambda what, limits: None)
    assert bench(*words, "--out", str(tmp_path)) == 2
    told = capsys.readouterr().err
    assert says in told
    assert len(told.splitlines()) == 1


@pytest.mark.slow
def test_the_generator_measures_what_it_carries(tmp_path: Path) -> None:
    asked = scale.Load(4, 2, 1.0, 2, servers=2)
    made = scale.measure(asked, tmp_path, lambda tally, at: None)
    claims = {finding.claim: finding for finding in scale.findings(made)}
    if made.figures.invalid:  # a machine too busy for four listeners: it must say so
        assert not all(finding.good for finding in claims.values())
        return
    assert made.figures.peak_in_flight >= 4
    assert made.figures.faults == {}
    assert made.listening == pytest.approx(6 * 2, rel=0.5)
    assert made.complete
    assert 0 < made.processor < made.elapsed
    assert made.servers > 0
    assert claims["4 listeners at a time"].good
    assert claims["none of them failed"].detail == "no faults"
    assert "listeners (" in claims["one core carries"].detail
    late = replace(made.figures, invalid=["it was late"], faults={"timeout": 1}, peak_in_flight=3)
    found = scale.findings(replace(made, figures=late))
    assert [finding.good for finding in found[:3]] == [False, False, False]
