"""scripts/run-tests on a project of its own: each test runs once, and what fails is told."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "run-tests"

SETTINGS = '[tool.pytest.ini_options]\naddopts = "-q --strict-markers"\nmarkers = ["slow: x"]\n'
TESTS = """
import pytest
from pathlib import Path

def ran(name):
    with Path("ran.txt").open("a") as file:
        file.write(name + "\\n")

def test_quick_{0}():
    ran("quick {0}")

@pytest.mark.slow
def test_slow_{0}():
    ran("slow {0}")
"""
EVERY = [
    f"{mark} {where}" for mark in ("quick", "slow") for where in ("model", "one", "two", "web")
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Tests of both kinds in two files, and in the folders of the browser and of models."""
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    for name in ("one", "two", "web/web", "engine/models/model"):
        where = tmp_path / "tests" / f"{Path(name).parent}" / f"test_{Path(name).name}.py"
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(TESTS.format(Path(name).name))
    return tmp_path


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(project / "scripts" / "run-tests"), *arguments]
    # Plugins take most of the time that a pytest without tests needs to start.
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False
    )


def ran(project: Path) -> list[str]:
    return sorted((project / "ran.txt").read_text().splitlines())


def stand_in(project: Path, name: str, code: str) -> None:
    (project / "scripts" / name).write_text(code)


def test_every_test_runs_once(project: Path) -> None:
    done = run(project)
    assert done.returncode == 0, done.stdout
    assert ran(project) == EVERY
    assert re.fullmatch(r"8 passed in \d+\.\d\ds \(0:00:\d\d\)", done.stdout.splitlines()[-1])


def test_what_the_gate_ran_is_not_run_again_and_what_fails_is_told(project: Path) -> None:
    """Types fail; the gate takes the quick tests of one file; one test fails."""
    stand_in(project, "types", "print('a type is wrong'); raise SystemExit(1)")
    gate = """
import subprocess, sys
if sys.argv[1:] == ["--list"]:
    print("tests/test_one.py")
else:
    command = [sys.executable, "-m", "pytest", "-m", "not slow", "tests/test_one.py"]
    print("coverage-gate: 1 of 1", end="", flush=subprocess.run(command).returncode == 0)
"""
    stand_in(project, "coverage-gate", gate)
    stand_in(project, "without-torch", "")
    (project / "tests" / "test_bad.py").write_text("def test_bad():\n    assert not 'true'\n")
    done = run(project, "--all")
    assert ran(project) == EVERY
    told = done.stdout.rpartition("== all\n")[2]
    assert done.returncode == 1
    assert "FAILED tests/test_bad.py::test_bad" in told
    assert "types        (bad) a type is wrong" in told
    assert "\n1 failed, 8 passed in " in told


def test_arguments_choose_tests_and_choosing_none_is_a_failure(project: Path) -> None:
    done = run(project, "-k", "slow_two")
    assert done.returncode == 0, done.stdout
    assert ran(project) == ["slow two"]
    nothing = run(project, "-k", "nonsense")
    assert nothing.returncode == 1
    assert "no tests ran" in nothing.stdout.splitlines()[-1]


def test_what_hangs_is_shown_when_the_run_is_ended(project: Path) -> None:
    stand_in(project, "types", "import time; print('waits', flush=True); time.sleep(120)")
    stand_in(project, "coverage-gate", "")
    command = [sys.executable, str(project / "scripts" / "run-tests"), "--all"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) as running:
        log = project / "build" / "tests" / "types.log"
        until = time.monotonic() + 60
        while not (log.exists() and log.read_text()) and time.monotonic() < until:
            time.sleep(0.02)
        running.terminate()
        told, _ = running.communicate(timeout=60)
    assert running.returncode == 1
    assert re.search(r"^== types, after \d+ s\nwaits\n==", told, flags=re.MULTILINE)
    assert "types        (bad) waits" in told
    assert "pure modules (bad) not begun" in told


def test_the_time_for_everything_ends_it(project: Path) -> None:
    stand_in(project, "types", "import time; time.sleep(120)")
    stand_in(project, "coverage-gate", "")
    done = run(project, "--all", "--seconds", "0.3")
    assert done.returncode == 1
    over = r"^== \w+ was ended: the time for everything is over$"
    assert re.search(over, done.stdout, flags=re.MULTILINE)
    assert "no torch     (bad) not begun" in done.stdout


@pytest.mark.parametrize(
    ("guard", "good"), [("import pytest; pytest.importorskip('torch')", True), ("", False)]
)
def test_tests_that_need_torch_unguarded_are_found(project: Path, guard: str, good: bool) -> None:
    shutil.copy(SCRIPT.with_name("without-torch"), project / "scripts")
    test = f"{guard}\nimport torch.nn\n\ndef test_it():\n    pass\n"
    (project / "tests" / "test_needy.py").write_text(test)
    done = subprocess.run(
        [sys.executable, str(project / "scripts" / "without-torch")],
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == good, done.stdout
    told = done.stdout.splitlines()
    if good:
        assert told == ["without-torch: 8 tests can be imported where torch is not installed"]
    else:
        assert "E   ModuleNotFoundError: No module named 'torch'" in told
        assert told[-1].endswith('write: pytest.importorskip("torch")')
