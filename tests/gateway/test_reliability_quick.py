"""The quick forms of docs/reliability.md, sections 1, 3 and 4: the scripts run, and nothing is far
off. Their bounds are loose, since the machines of tests are busy."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from machine import undisturbed

FOLDER = Path(__file__).resolve().parent.parent.parent / "bench" / "reliability"


def figures(script: str, *arguments: str, out: Path) -> dict[str, Any]:
    """What a script of bench/reliability finds."""
    command = [sys.executable, str(FOLDER / script), *arguments, "--out", str(out)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    return dict(json.loads(out.read_text()))


@pytest.mark.slow
def test_idle_sessions(tmp_path: Path) -> None:
    flags = ("--sessions", "200", "--rounds", "1", "--watch", "1")
    found = figures("idle.py", *flags, out=tmp_path / "idle.json")
    assert found["rss_per_session_kib"] < 60  # the first few hundred pay for the process's growth
    assert found["descriptors_left"] == 0
    assert found["idle_cpu_of_a_core"] < 0.5


@pytest.mark.slow
def test_malformed_input(tmp_path: Path) -> None:
    flags = ("--messages", "2000", "--frames", "400")
    found = figures("malformed.py", *flags, out=tmp_path / "malformed.json")
    assert found["over_sockets"]["alive"]
    assert found["over_sockets"]["sessions_left"] == 0
    assert found["over_sockets"]["growth_kib"] < 5 * 1024


@pytest.mark.slow
def test_floods(tmp_path: Path) -> None:
    flags = ("--seconds", "0.2", "--stalled", "8", "--only", "empty pings")

    def took() -> float:
        """Until the abuser was gone, or thirty of a neighbour's round trips."""
        table = figures("floods.py", *flags, out=tmp_path / "floods.json")["table"]
        found, stalled = table["empty pings"], table["8 stalled readers"]
        assert found["abuser_gone_after_s"] is not None
        assert found["memory_kib"] < 4 * 512
        assert stalled["memory_kib_each"] < 2 * 512, "the first few pay for the rest"
        slowest = max(found["p50_ms"], stalled["p50_ms"])
        return max(found["abuser_gone_after_s"], 30 * slowest / 1000)

    undisturbed(took, below=3.0)
