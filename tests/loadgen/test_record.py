"""Raw records: written, read, refused."""

import gzip
import json
from pathlib import Path

import pytest
from loadgen_kit import chunk, record
from playhead.loadgen.listener import Stall
from playhead.loadgen.record import FORMAT, Lag, MetricsSample, RecordError, decode, encode, load

HEAD = encode({"kind": "run", "format": FORMAT, "plan": {"rate": 2.0}})


def test_an_utterance_survives_its_file(tmp_path: Path) -> None:
    full = record(
        chunks=[chunk(0.5), chunk(0.6, 100, slack=None)],
        stalls=[Stall(0.7, 0.1, 1)],
        finish="complete",
    )
    lines = [
        HEAD,
        encode(full.as_line()),
        encode({"kind": "lag", "at": 1.0, "lag": 0.02}),
        encode({"kind": "metrics", "at": 2.0, "values": {"playhead_stalls_total": 1.0}}),
        encode({"kind": "later", "than": "this version"}),
        encode({"kind": "processor", "seconds": 1.5}),
        encode({"kind": "processor", "seconds": 0.5}),
        encode({"kind": "end", "complete": True}),
    ]
    (tmp_path / "one.jsonl").write_text("".join(lines))
    run = load(tmp_path / "one.jsonl")
    assert run.name == "one"
    assert run.plan == {"rate": 2.0}
    assert run.processor == 2.0, "of both processes"
    assert run.records == [full]
    assert run.lags == [Lag(1.0, 0.02)]
    assert run.metrics == [MetricsSample(2.0, {"playhead_stalls_total": 1.0})]
    assert run.complete


def test_first_sound_is_waited_for_from_when_it_is_possible() -> None:
    assert record(0, 2.0).asked == 2.0
    assert record(0, 2.0, possible=2.5).asked == 2.5


def test_fields_of_later_versions_are_left_out() -> None:
    line = encode({**record().as_line(), "novelty": 1})
    run = decode([HEAD, line], "x")
    assert run.records == [record()]
    assert not run.complete


def test_counted_are_those_of_the_window_in_their_order() -> None:
    run = decode([HEAD], "x")
    run.records = [record(3, 5.0), record(1, 2.0, counted=False), record(2, 4.0)]
    assert [each.number for each in run.counted] == [2, 3]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "x is empty"),
        (["not json\n"], "x, line 1"),
        (["[1]\n"], "no raw record of a run"),
        ([encode({"kind": "utterance"})], "kind 'run' first"),
        ([encode({"kind": "run", "format": 99, "plan": {}})], "format 99 is not known"),
        ([HEAD, '{"kind": "utterance"}\n'], "x, line 2"),
        ([HEAD, encode(record().as_line())[:40]], "x, line 2"),
        ([HEAD, "7\n"], "x, line 2"),
        ([HEAD, json.dumps({"kind": "lag"})], "x, line 2"),
    ],
)
def test_what_is_no_record_is_named(lines: list[str], says: str) -> None:
    with pytest.raises(RecordError, match=says):
        decode(lines, "x")


def test_the_servers_model_is_told_and_a_compressed_file_is_read(tmp_path: Path) -> None:
    head = encode({"kind": "run", "format": FORMAT, "plan": {}})
    load_told = {"model": "voice", "random_weights": True}
    lines = [head, encode({"kind": "server", "load": load_told})]
    path = tmp_path / "made.jsonl.gz"
    path.write_bytes(gzip.compress("".join(lines).encode()))
    made = load(path)
    assert (made.name, made.model) == ("made", "voice (random weights)")
    made.server = {"model": "voice", "random_weights": False}
    assert made.model == "voice"
    assert decode([head], "old").model == ""
