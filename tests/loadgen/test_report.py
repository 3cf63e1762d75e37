"""Files in, files out."""

import gzip
import json
from pathlib import Path

import pytest
from loadgen_kit import chunk, record
from playhead.loadgen.record import FORMAT, RecordError, encode
from playhead.loadgen.report import as_json, collect, kept, pool, write


def put(folder: Path, rate: float, seed: int, mix: str = "strict") -> Path:
    plan = {"mix": mix, "rate": rate, "seed": seed, "warmup": 0.0, "window": 10.0}
    kept = record(0, 1.0, first_playable=1.1, ended=2.0, samples=100, chunks=[chunk(1.1)])
    path = folder / f"{mix}-{rate}-{seed}.jsonl"
    lines = [
        {"kind": "run", "format": FORMAT, "plan": plan},
        kept.as_line(),
        {"kind": "end", "complete": True},
    ]
    path.write_text("".join(map(encode, lines)))
    return path


def test_seeds_of_a_rate_and_mix_are_pooled_in_order(tmp_path: Path) -> None:
    put(tmp_path, 10.0, 0)
    put(tmp_path, 2.0, 0)
    put(tmp_path, 2.0, 1)
    put(tmp_path, 2.0, 0, "people")
    rows = pool(collect([tmp_path]))
    assert [(made.label, made.rate, made.seeds) for made in rows] == [
        ("people", 2.0, [0]),
        ("strict", 2.0, [0, 1]),
        ("strict", 10.0, [0]),
    ]


def test_a_record_that_lies_there_twice_counts_once(tmp_path: Path) -> None:
    plain = put(tmp_path, 2.0, 0)
    packed = put(tmp_path, 2.0, 1)
    for path in (plain, packed):
        path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    packed.unlink()
    (made,) = pool(collect([tmp_path]))
    assert (made.seeds, made.utterances) == ([0, 1], 2)


def test_both_files_are_written(tmp_path: Path) -> None:
    runs = collect([put(tmp_path, 1.0, 0)])
    machine, human = write(pool(runs), runs, tmp_path)
    told = json.loads(machine.read_text())
    assert told == json.loads(json.dumps(as_json(pool(runs), runs)))
    (row,) = told["rates"]
    assert (row["verdict"], row["utterances"], row["backlog_grows"]) == ("strict", 1, False)
    assert row["ttfa"]["p95"] == pytest.approx(0.1)
    assert row["misses"] == {"strict": [], "lenient": []}
    assert human.read_text().startswith("<!doctype html>")


def test_a_folder_without_records_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"no \.jsonl file in .*"):
        collect([tmp_path])


def test_figures_of_an_old_report_stand_beside_raw_records(tmp_path: Path) -> None:
    raw = put(tmp_path, 1.0, 0)
    rows = pool(collect([raw]))
    machine, _ = write(rows, [], tmp_path)
    assert kept([raw, machine]) == rows
    assert collect([machine]) == []
    machine.write_text("{")
    with pytest.raises(RecordError, match=r"report\.json: Expecting"):
        kept([machine])
