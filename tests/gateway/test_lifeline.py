"""Processes that end with those that need them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from machine import PATIENCE
from playhead.gateway.lifeline import VARIABLE, Lifeline, follow

CHILD = """
import os, time
from playhead.gateway import lifeline
lifeline.follow(os.environ)
print("follows", flush=True)
time.sleep(30)
"""


def test_a_child_ends_when_the_last_holder_is_gone() -> None:
    with Lifeline() as line:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD],
            stdout=subprocess.PIPE,
            env={**os.environ, **line.environ},
            pass_fds=(line.watched,),
        )
        other = subprocess.Popen(["sleep", "30"], pass_fds=(line.held,))
        assert child.stdout is not None
        assert child.stdout.readline() == b"follows\n"
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.2)  # somebody holds it still
        other.kill()
        assert child.wait(PATIENCE) == -signal.SIGTERM
    finally:
        for process in (child, other):
            process.kill()
            process.wait()
        child.stdout.close()


def test_who_is_told_of_none_stands_alone() -> None:
    assert follow({}) is None
    assert follow({VARIABLE: "none"}) is None


def test_a_descriptor_that_is_no_pipe_of_ours_ends_nobody(tmp_path: Path) -> None:
    watcher = follow({VARIABLE: "999999"})
    assert watcher is not None
    watcher.join(PATIENCE)
    assert not watcher.is_alive()
