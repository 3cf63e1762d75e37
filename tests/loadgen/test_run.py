"""Whole runs over loopback: sessions, processes, interruption, the command line."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from machine import PATIENCE
from playhead.gateway import cli as playhead
from playhead.loadgen import cli
from playhead.loadgen.figures import figures
from playhead.loadgen.plan import Plan
from playhead.loadgen.record import Run, load
from playhead.loadgen.typist import tokens
from playhead.loadgen.workers import execute

FAKE = Path(__file__).parent.parent / "gateway" / "fake_runner.py"


@contextmanager
def serving() -> Iterator[str]:
    """``playhead serve`` with a voice that is a known wave."""
    environ = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(FAKE.parent)}
    command = [sys.executable, str(FAKE), "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        found = re.search(r"http://([\d.]+:\d+)/", process.stdout.readline())
        assert found
        try:
            yield f"ws://{found[1]}/v1/session"
        finally:
            process.kill()


def was_late(made: Run) -> list[str]:
    """What the generator says of itself where the machine was too busy for its run."""
    return [doubt for doubt in figures([made]).invalid if "late" in doubt]


def run(url: str, folder: Path, **values: Any) -> Run:
    given = {"rate": 5.0, "warmup": 0.5, "window": 2.5, "timeout": PATIENCE, **values}
    path = folder / "run.jsonl"
    assert execute(Plan(url, **given), path, lambda tally, at: None)
    return load(path)


@pytest.mark.slow
def test_people_are_served_by_the_real_gateway(tmp_path: Path) -> None:
    with serving() as url:
        made = run(url, tmp_path, mix="people", arrivals="constant")
    assert len(made.records) == 15
    assert [record.fault for record in made.records] == [""] * 15
    assert {record.finish for record in made.records} <= {"complete", "cancelled"}
    last = max(record.intended for record in made.records)
    over = [record for record in made.records if record.ended is not None and record.ended < last]
    reused = len({record.session for record in made.records}) < 15
    # On a busy machine nobody may be done by then, or be done a moment before a late arrival.
    assert reused or not over or was_late(made)
    assert made.complete
    assert len(made.counted) == 12
    assert len(made.metrics) >= 3
    assert any("playhead_audio_sent_seconds_total" in sample.values for sample in made.metrics)


@pytest.mark.slow
def test_shaky_networks_pass_the_proxy(tmp_path: Path) -> None:
    with serving() as url:
        made = run(url, tmp_path, mix="shaky")
    assert {record.network for record in made.records} <= {"home", "shaky"}
    assert all(not record.fault for record in made.records)
    assert all((record.round_trip or 0) >= 0.03 for record in made.records)


@pytest.mark.slow
def test_texts_come_as_a_language_model_writes_them(tmp_path: Path) -> None:
    with serving() as url:
        made = run(url, tmp_path, arrivals="constant", rate=4.0, pace=40.0, speaks_after="piece")
    assert [record.fault for record in made.records] == [""] * 12
    paces = []
    for record in made.records:
        assert record.possible is not None
        assert record.text_sent is not None
        assert record.first_playable is not None
        assert record.intended == record.possible <= record.first_playable
        expected = (len(tokens(record.text)) - 1) / 40
        paces.append((record.text_sent - record.intended) / expected)
    assert min(paces) >= 0.4
    assert median(paces) <= 1.6 or was_late(made), "a busy machine delays some of them"


@pytest.mark.slow
def test_processes_share_one_run(tmp_path: Path) -> None:
    with serving() as url:
        made = run(url, tmp_path, processes=2, arrivals="constant")
    assert sorted(record.number for record in made.records) == list(range(15))
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"]
    assert len({record.session % 2 for record in made.records}) == 2


def bench(*arguments: str) -> int:
    return playhead.main(["bench", *arguments])


@pytest.mark.slow
def test_run_report_and_search_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load_flags = ["--out", str(tmp_path), "--seeds", "0", "--warmup", "0", "--window", "1"]
    with serving() as url:
        bench("run", "--url", url, "--rate", "4", "--arrivals", "constant", *load_flags)
        assert (tmp_path / "strict-rate-4-seed-0.jsonl").exists()
        assert bench("search", "--url", url, "--start", "4", "--most", "4", *load_flags) in (0, 1)
    capsys.readouterr()
    assert bench("report", str(tmp_path)) in (0, 1)
    assert "TTFA p50" in capsys.readouterr().out
    assert (tmp_path / "report.html").exists()


@pytest.mark.slow
def test_signals_are_compared_on_servers_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[list[str]] = []

    @contextmanager
    def own(flags: list[str], net: None) -> Iterator[str]:
        asked.append(flags)
        with serving() as url:
            yield url

    monkeypatch.setattr(cli, "serving", own)
    flags = ["--rate", "4", "--seeds", "0", "--warmup", "0", "--window", "1", "--out"]
    modes = ["--modes", "none", "reported", "--leads", "1", "learned"]
    assert bench("urgency", *flags, str(tmp_path), *modes, "--serve", "--voice", "alto") in (0, 1)
    asked_for = [("none", "1"), ("reported", "1"), ("reported", "learned")]
    assert asked == [
        ["--urgency", mode, "--lead", lead, "--voice", "alto"] for mode, lead in asked_for
    ]
    names = sorted(path.name for path in tmp_path.glob("*.jsonl"))
    assert names == [
        "none-1-rate-4-seed-0.jsonl",
        "reported-1-rate-4-seed-0.jsonl",
        "reported-learned-rate-4-seed-0.jsonl",
    ]
    assert "reported learned: highest clean rate" in capsys.readouterr().out
    first, second, _ = (load(tmp_path / name).records for name in names)
    order = [(record.number, record.intended, record.text) for record in first]
    assert sorted(order) == sorted((r.number, r.intended, r.text) for r in second)


def test_a_server_that_does_not_start_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench("urgency", "--out", str(tmp_path), "--serve", "--grace", "soon") == 1
    assert "did not start: playhead serve: --grace='soon'" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_an_interrupted_run_keeps_what_it_has(processes: int, tmp_path: Path) -> None:
    """Two processes: as a terminal does it, all are interrupted, the second while it starts."""
    program = Path(sys.executable).with_name("playhead")
    with serving() as url:
        command = [str(program), "bench", "run", "--url", url, "--rate", "5", "--window", "60"]
        command += ["--seeds", "0,1", "--warmup", "0", "--out", str(tmp_path)]
        command += ["--processes", str(processes)]
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if re.search(r" [1-9]\d* of \d+ started", line):
                    break
            os.killpg(process.pid, signal.SIGINT)
            out, rest = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGINT, rest
    assert "Traceback" not in rest
    assert "INVALID" in out
    assert "is partial" in out
    (path,) = tmp_path.glob("*.jsonl")
    made = load(path)
    assert not made.complete
    assert made.records
    assert (tmp_path / "report.json").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "--url", "nonsense"], "'nonsense' is no address"),
        (["run", "--seeds", "one"], "--seeds 'one': give whole numbers"),
        (["run", "--rate", "0"], "--rate 0: utterances a second must be above 0"),
        (["run", "--window", "-1"], "window is -1"),
        (["run", "--key-from", "NO_SUCH_KEY"], "--key-from NO_SUCH_KEY: this environment variable"),
        (["run", "--target", "openai", "--pace", "50"], "target openai takes a text at once"),
        (["run", "--pace", "-1"], "pace is -1.0; expected pieces of text a second"),
        (["run", "--arrivals", "trace"], "needs --trace FILE"),
        (["run", "--arrivals", "trace", "--trace", "/nowhere"], "/nowhere: No such file"),
        (["run", "--url", "ws://127.0.0.1:9"], "unreachable: cannot connect to ws://127.0.0.1:9"),
        (["report", "/nowhere.jsonl"], "/nowhere.jsonl: No such file"),
        (["urgency", "--leads", "long"], "--leads 'long': expected 'learned'"),
        (["urgency", "--modes", "none", "--leads", "learned"], "need --modes reported"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path)]
    assert bench(*arguments, *out) == 2
    told = capsys.readouterr().err
    assert told.startswith("playhead bench: ")
    assert says in told
    assert len(told.splitlines()) == 1


def test_a_trace_that_holds_no_times_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.txt"
    path.write_text("soon\n")
    assert bench("run", "--arrivals", "trace", "--trace", str(path)) == 2
    assert "line 1 of the trace is 'soon'" in capsys.readouterr().err


def test_faults_of_sessions_are_records(tmp_path: Path) -> None:
    made = run(
        "ws://127.0.0.1:9/", tmp_path, warmup=0.0, window=0.5, arrivals="constant", rate=4.0
    )  # fmt: skip
    assert [record.fault for record in made.records] == ["unreachable"] * 2
    assert [record.finish for record in made.records] == ["no_session"] * 2
