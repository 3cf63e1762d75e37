"""What is no test but a measurement or a picture finds its modules as it is called."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CALLED = re.compile(r"PYTHONPATH=(\S+) (?:\$\(PY\)|python) (tests/web/\w+\.py)")
CALLS = [
    call
    for name in ("Makefile", "docs/demo.md")
    for call in CALLED.findall((ROOT / name).read_text(encoding="utf-8"))
]


def test_they_are_called() -> None:
    scripts = {script.rpartition("/")[2] for _, script in CALLS}
    assert scripts == {
        "firefox.py", "first_visit.py", "page_frames.py", "page_soak.py", "pictures.py",
    }  # fmt: skip


@pytest.mark.parametrize(("path", "script"), CALLS, ids=[script for _, script in CALLS])
def test_it_finds_its_modules(path: str, script: str) -> None:
    load = f"import sys; sys.path[0] = 'tests/web'; __import__({Path(script).stem!r})"
    command = [sys.executable, "-c", load]
    outside = os.environ.get("PYTHONPATH", "")
    kept = [part for part in outside.split(os.pathsep) if part and "tests" not in part]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*path.split(":"), *kept])}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
