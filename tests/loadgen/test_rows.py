"""Figures that come back from JSON as they were."""

import json
from typing import Any

import pytest
from loadgen_kit import chunk, record, run
from playhead.loadgen.figures import figures
from playhead.loadgen.record import RecordError
from playhead.loadgen.report import as_json
from playhead.loadgen.rows import rows


def written(**plan: Any) -> Any:
    heard = record(
        intended=1.0, first_playable=1.2, chunks=[chunk(1.2)], samples=100, ended=2.0, possible=1.1
    )
    runs = [run(heard, record(1, 2.0, fault="timeout"), **plan)]
    return json.loads(json.dumps(as_json([figures(runs)], runs))), figures(runs)


def test_a_reports_figures_come_back_as_they_were() -> None:
    data, made = written()
    assert rows(data, "old") == [made]


def test_those_of_the_gpu_bench_are_named_by_their_file_and_weights() -> None:
    data, _ = written()
    del data["rates"][0]["first_wait"]
    (made,) = rows({**data, "settings": {"weights": "random:1.7b"}}, "serve_rate")
    assert (made.label, made.name) == ("serve_rate", "serve_rate, 1/s")
    assert made.model == "weights random:1.7b"
    assert made.first_wait is None


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "expected a report's JSON"),
        ({"rates": []}, "expected a report's JSON"),
        ({"rates": [{}]}, "a rate lacks name, label, rate"),
        ({"rates": [7]}, "has another shape"),
    ],
)
def test_what_is_no_report_is_said(data: Any, says: str) -> None:
    with pytest.raises(RecordError, match=says):
        rows(data, "given")


def test_parts_of_another_shape_are_said() -> None:
    data, _ = written()
    data["rates"][0]["ttfa"] = {"p50": 1.0}
    with pytest.raises(RecordError, match="has another shape"):
        rows(data, "given")
