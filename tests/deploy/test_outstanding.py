"""bench/gpu/outstanding.py: what is measured within a budget, in which order, and what is kept."""

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench" / "gpu"))


import ablations  # noqa: E402
from outstanding import (  # noqa: E402
    ALONE,
    CODEC,
    COLD,
    LOAD,
    ORDER,
    STOPS,
    TESTS,
    WARM,
    WINDOW,
    Campaign,
    Costs,
    Device,
    Dry,
    Piece,
    choose,
    keeper,
    piece,
)


@dataclass
class Book(Dry):
    """Notes what it is asked for; some pieces take longer than estimated, some fail."""

    slow: float = 1.0
    failing: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list)

    def start(self, start: str, within: float) -> None:
        super().start(start, within)
        self.asked.append(f"start {start}" if start else "stop")
        if start in self.failing:
            raise SystemExit(f"{start} did not start")

    def measure(self, wanted: Piece, within: float) -> dict[str, Any]:
        self.at += min(within, self.slow * wanted.seconds)
        self.asked.append(wanted.name)
        if wanted.name in self.failing:
            return {"failed": "not done"}
        return {"rate": wanted.rate}


def campaign(
    names: tuple[str, ...], budget: float, bench: Book
) -> tuple[Campaign, list[tuple[int, int]]]:
    """And how many rows and pieces left were kept each time."""
    kept: list[tuple[int, int]] = []
    made = Campaign(
        bench,
        [piece(name) for name in names],
        budget,
        lambda rows, left: kept.append((len(rows), len(left))),
    )
    made.run()
    return made, kept


def test_pieces_are_read() -> None:
    assert piece(TESTS) == Piece(TESTS)
    one = piece("partitions-auto/base@200")
    assert (one.start, one.variant, one.rate, one.seeds) == ("partitions-auto", "base", 200.0, "0")
    three = piece("lanes/base@225:0,1,2")
    assert three.seeds == "0,1,2"
    assert three.seconds == LOAD + 2 * WINDOW
    assert {piece(name).name for name in ORDER} == set(ORDER)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nothing", "nothing is no way to start: gpu-tests, codec-buckets, beside-0"),
        ("partitions-40/base@200", "partitions-40 is no way to start"),
        ("lanes/bass@200", "bass is no variant: base, one-stream"),
        ("lanes/base", "name a rate, for instance lanes/base@200"),
        ("lanes/base@fast", "name a rate"),
    ],
)
def test_pieces_that_there_are_not_are_refused(name: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        piece(name)


def test_what_a_piece_costs_goes_by_the_server_that_runs() -> None:
    costs, one = Costs(), piece("lanes/base@200")
    assert costs.of(one, "") == COLD + LOAD + STOPS
    costs.cold = False
    assert costs.of(one, "") == WARM + LOAD + STOPS
    assert costs.of(one, "lanes") == LOAD + STOPS
    assert costs.of(one, "flat") == STOPS + WARM + LOAD + STOPS
    assert costs.of(piece(CODEC), "lanes") == piece(CODEC).seconds + STOPS
    costs.learn(one, 2 * LOAD)
    assert costs.of(one, "lanes") == pytest.approx(1.5 * LOAD + STOPS)
    for _ in range(20):
        costs.learn(one, LOAD / 2)
    assert costs.factor == 1.0  # never below what was estimated


def test_what_does_not_fit_is_left_for_what_does() -> None:
    left = [piece("lanes/base@225:0,1,2"), piece("lanes/base@250")]
    costs = Costs(cold=False)
    assert choose(left, 3 * LOAD + STOPS, "lanes", costs) is left[0]
    assert choose(left, LOAD + STOPS, "lanes", costs) is left[1]
    assert choose(left, LOAD, "lanes", costs) is None


def test_all_of_it_in_order_with_a_server_for_each_start() -> None:
    bench = Book()
    made, kept = campaign(ORDER, 10_000.0, bench)
    assert not made.left
    assert [row["piece"] for row in made.rows] == list(ORDER)
    starts = [what for what in bench.asked if what.startswith("start")]
    assert starts == ["start background-128", "start lanes", "start codec-library"]
    alone = [name for name in ORDER if name in ALONE]
    assert bench.asked[0] == alone[0]  # and nothing runs beside what is alone
    assert bench.asked[-len(alone) :] == ["stop", *alone[1:]]
    assert kept == [(done, len(ORDER) - done) for done in range(1, len(ORDER) + 1)]


@pytest.mark.parametrize("budget", [30.0, 130.0, 300.0, 540.0])
def test_a_budget_is_kept_and_the_rest_is_named(budget: float) -> None:
    bench = Book()
    made, _ = campaign(ORDER, budget, bench)
    assert bench.at <= budget
    done = [row["piece"] for row in made.rows]
    assert sorted([*done, *(one.name for one in made.left)]) == sorted(ORDER)
    assert bool(done) == (budget > 100)
    servers = [what for what in bench.asked if what.startswith(("start", "stop"))]
    assert not servers or servers[-1] == "stop"  # none outlives the campaign


@pytest.mark.parametrize("slow", [1.3, 3.0])
def test_a_budget_is_kept_on_a_slow_machine_too(slow: float) -> None:
    """Whatever takes too long is given up, and what follows is expected to take longer."""
    bench = Book(slow=slow)
    campaign(ORDER, 540.0, bench)
    assert bench.at <= 540.0 + STOPS


def test_calls_with_what_is_left_do_all_of_it() -> None:
    left, calls = ORDER, 0
    while left:
        made, _ = campaign(left, 540.0, Book())
        left, calls = tuple(one.name for one in made.left), calls + 1
    assert calls == 3


def test_a_server_that_does_not_start_costs_its_own_pieces_alone() -> None:
    names = ("partitions-48/base@200", "partitions-32/base@200")
    bench = Book(failing=("partitions-48",))
    made, _ = campaign(names, 1000.0, bench)
    assert [row.get("failed") for row in made.rows] == ["partitions-48 did not start", None]


def test_after_a_piece_that_failed_the_server_is_another() -> None:
    names = ("lanes/base@250", "lanes/base@1")
    bench = Book(failing=("lanes/base@250",))
    campaign(names, 1000.0, bench)
    assert bench.asked == ["start lanes", names[0], "stop", "start lanes", names[1], "stop"]


@pytest.mark.parametrize(
    ("program", "within", "says", "status"),
    [
        ("echo begun; sleep 600 & wait", 0.5, "not done within", 1),
        ("echo begun; exit 3", 100.0, "begun", 3),
        ("echo begun >&2", 100.0, "begun", 0),
    ],
    ids=["late", "failed", "done"],
)
def test_a_program_is_ended_with_all_that_it_started(
    program: str, within: float, says: str, status: int
) -> None:
    told = ablations.bounded(["sh", "-c", program], {}, within)
    assert says in told.text
    assert told.status == status


def test_what_a_program_has_written_goes_with_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what another one wrote before does not."""
    device = Device(argparse.Namespace(out=tmp_path))
    said: list[ablations.Told] = [ablations.Told("fine", 0), ablations.Told("", 1)]
    commands: list[list[str]] = []

    def bounded(command: list[str], env: dict[str, str], *_: object) -> ablations.Told:
        commands.append(command)
        told = said.pop(0)
        if told.status == 0:
            (Path(env["OUT"]) / "roofline.json").write_text('{"together": []}')
        return told

    monkeypatch.setattr(ablations, "bounded", bounded)
    first = device.measure(piece("beside-48"), 10.0)
    assert first == {"report": {"together": []}, "told": "fine"}
    assert commands[0][-2:] == ["--partition", "48"]
    assert device.measure(piece("beside-24"), 10.0) == {"failed": "no word"}
    said.append(ablations.Told("fine", 0))
    assert device.measure(piece("limits-0.6b"), 10.0)["told"] == "fine"
    assert commands[2][1:6] == [
        *("bench/gpu/roofline.py", "--parts", "alone"),
        *("--weights", "random:0.6b"),
    ]


def test_everything_so_far_is_kept_whole(tmp_path: Path) -> None:
    keep = keeper(tmp_path, {"cores": 16})
    served = {
        "piece": "lanes/base@200",
        "variant": "base",
        "rate": 200.0,
        "ttfa": {"p50": 0.055, "p95": 0.077},
        "listener": {"utterances": 2540, "stalled": 0, "worst": None, "c100": 1.0},
        "held": 1.2,
        "peak_in_flight": 1254,
        "cores": 2.3,
        "gpu_busy": 0.7,
        "verdict": "strict",
        "faults": {},
        "server": {
            "playhead_background_multiprocessors": 48.0,
            "playhead_background_switches_total": 0.25,
        },
    }
    rows = [
        {"piece": TESTS, "told": "warnings\n174 passed in 60 s\n"},
        served,
        {"piece": "lanes/base@250", "failed": "Traceback\nOSError: gone"},
    ]
    keep(rows, [piece(CODEC)])
    found = json.loads((tmp_path / "outstanding.json").read_text())
    assert (found["cores"], found["left"], found["rows"]) == (16, [CODEC], rows)
    table = (tmp_path / "outstanding.txt").read_text().splitlines()
    assert table[1].endswith("174 passed in 60 s")
    assert "55.0    77.0       0" in table[2]
    assert table[2].endswith("strict  part 48, 0.25 switches/s")
    assert table[3].endswith("FAILED OSError: gone")
    assert table[4] == f"left: {CODEC}"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "outstanding.json",
        "outstanding.txt",
    ]


def test_a_dry_run_shows_what_a_call_would_do(tmp_path: Path) -> None:
    command = [sys.executable, "bench/gpu/outstanding.py", "--dry-run", "--out", str(tmp_path)]
    wanted = ["lanes/base@200", "lanes/base@225:0,1,2", "lanes/base@1"]
    done = subprocess.run(
        [*command, "--budget", "160", *wanted], cwd=ROOT, text=True, capture_output=True, check=True
    )
    assert [text.split()[0] for text in done.stdout.splitlines()[:2]] == [wanted[0], wanted[2]]
    assert done.stdout.splitlines()[-1].endswith(f"left: {wanted[1]}")
    refused = subprocess.run(
        [*command, "--budget", "9", "lanes/bass@1"], cwd=ROOT, text=True, capture_output=True
    )
    assert refused.returncode == 2
    assert "bass is no variant" in refused.stderr
