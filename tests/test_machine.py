"""The measure of a busy machine sees one, and sees none where nobody waits."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import machine
import pytest
from machine import eventually, kept_waiting, undisturbed

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
    undisturbed(waited_for_nothing, below=0.1)


def test_what_was_disturbed_is_measured_again(capsys: pytest.CaptureFixture[str]) -> None:
    found = iter([3.0, 2.0, 1.0, 0.0])
    assert undisturbed(lambda: next(found), below=2.0) == 1.0
    assert capsys.readouterr().out == "3 tries for less than 2 s: 3, 2, 1\n"


def test_what_is_long_each_time_is_a_fault() -> None:
    with pytest.raises(AssertionError, match="never less than 2 s: 3, 3, 3, 3, 3"):
        undisturbed(lambda: 3.0, below=2.0)


def test_tries_have_an_end_though_each_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "PATIENCE", 0.0)
    with pytest.raises(AssertionError, match=r"never less than 2 s: 3$"):
        undisturbed(lambda: 3.0, below=2.0)


def test_what_is_wrong_is_not_measured_again() -> None:
    tries = iter(["a sample is missing"])

    def measured() -> float:
        raise AssertionError(next(tries))

    with pytest.raises(AssertionError, match="a sample is missing"):
        undisturbed(measured, below=2.0)


def test_states_are_waited_for() -> None:
    async def changed() -> list[int]:
        seen: list[int] = []
        asyncio.get_running_loop().call_soon(seen.append, 1)
        await eventually(lambda: seen)
        return seen

    assert asyncio.run(changed()) == [1]
    with pytest.raises(TimeoutError):
        asyncio.run(eventually(lambda: False, 0.01))
