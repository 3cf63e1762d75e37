"""The measure of a busy machine sees one, and sees none where nobody waits."""

import os
import subprocess
import sys
import time
from pathlib import Path

import machine
import pytest
from machine import kept_waiting, undisturbed

BUSY = "import os, time\nos.sched_setaffinity(0, {%d})\nend = time.monotonic() + 1.0\n" + (
    "while time.monotonic() < end: pass"
)


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="Linux counts it")
def test_who_shares_a_core_is_kept_waiting() -> None:
    core = min(os.sched_getaffinity(0))
    with kept_waiting() as kept:
        both = [subprocess.Popen([sys.executable, "-c", BUSY % core]) for _ in range(2)]
        time.sleep(0.8)  # both still run
    for process in both:
        process.wait()
    assert kept.seconds > 0.1


def waited_for_nothing() -> float:
    with kept_waiting() as kept:
        pass
    return kept.seconds


def test_a_block_that_does_nothing_waits_for_nothing() -> None:
    assert undisturbed(waited_for_nothing, lambda seconds: seconds < 0.1) < 0.1


def test_what_was_disturbed_is_measured_again() -> None:
    found = iter([3, 2, 1, 0])
    assert undisturbed(lambda: next(found), lambda number: number < 2) == 1


def test_what_is_bad_each_time_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "PATIENCE", 0.01)
    assert undisturbed(lambda: 3, lambda number: number < 2) == 3
