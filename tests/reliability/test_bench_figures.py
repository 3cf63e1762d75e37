"""How the scripts of bench/reliability keep the command that their figures come from."""

import runpy
import shlex
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent.parent / "bench" / "reliability" / "figures.py"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["--only", "TWINS 17", "--times", "20"], ["--only", "TWINS 17", "--times", "20"]),
        (["--out", "a b.json", "--seed", "2"], ["--seed", "2"]),
        (["--seed", "2", "--out=a.json"], ["--seed", "2"]),
        (["--out", "a.json", "--out=b.json", "--seed=2"], ["--seed=2"]),
        (["--outer", "a$b"], ["--outer", "a$b"]),
        (["--out"], []),
    ],
)
def test_a_kept_command_can_be_pasted_into_a_shell(
    given: list[str], kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/races.py", *given])
    assert shlex.split(runpy.run_path(str(SCRIPT))["command"]()) == [
        "bench/reliability/races.py",
        *kept,
    ]
