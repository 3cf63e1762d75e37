"""Signals are heard while a loop runs, and kill nobody afterwards."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
import uvloop
from machine import PATIENCE
from playhead.gateway import signals


@pytest.fixture(autouse=True)
def kept() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in signals.STOPPING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("number", signals.STOPPING)
def test_a_signal_is_heard_while_the_loop_runs_and_nothing_afterwards(
    run: Callable[[Coroutine[Any, Any, int]], int], number: int
) -> None:
    async def main() -> int:
        heard = asyncio.get_running_loop().create_future()
        signals.hear(heard.set_result)
        os.kill(os.getpid(), number)
        return await asyncio.wait_for(heard, PATIENCE)

    assert run(main()) == number
    os.kill(os.getpid(), number)  # would end this process, or raise KeyboardInterrupt


def test_what_is_ignored_stays_ignored_while_the_interpreter_ends() -> None:
    code = """
import os, signal
from playhead.gateway import signals
class Held:
    def __del__(self, kill=os.kill, pid=os.getpid(), write=os.write):
        kill(pid, 15)
        kill(pid, 2)
        write(1, b"went well")
held = Held()
signals.ignore()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"went well"), done.stderr
