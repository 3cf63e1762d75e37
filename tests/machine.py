"""How long this machine kept processes waiting for a core: what no server can answer for."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 60.0
"""Seconds after which a test calls hung what it waits for. What works needs far less, on a busy
machine too; what must be quick is judged by another measure."""
AT_ONCE = 20.0
"""Seconds within which comes, on a busy machine too, what does not wait for a limit of the server's
own that is longer: 30 s and more (grace, drain)."""

MOST_TRIES = 5
"""Measurements that a busy machine may have spoilt."""


def undisturbed(measured: Callable[[], float], below: float) -> float:
    """The first of several measurements, in seconds, that is less than ``below``. Fails with all of
    them where none is.

    For a duration and nothing else: a busy machine can make it longer, which a single measurement
    cannot tell from a fault, and a fault is there every time. Everything else that ``measured``
    finds out it asserts itself, and what it raises is not tried again: a value that is wrong now
    and then is a race.
    """
    end = time.monotonic() + PATIENCE / 2
    tries: list[float] = []
    while len(tries) < MOST_TRIES and (not tries or time.monotonic() < end):
        tries.append(measured())
        if tries[-1] < below:
            break
    told = ", ".join(f"{seconds:.4g}" for seconds in tries)
    print(f"{len(tries)} tries for less than {below:g} s: {told}")
    assert tries[-1] < below, f"never less than {below:g} s: {told}"
    return tries[-1]


def until(true: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait for what another thread or process brings about. Fails after ``seconds``."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.002)


async def eventually(true: Callable[[], object], seconds: float = PATIENCE) -> None:
    """The same inside an event loop, which goes on meanwhile."""
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.002)


@dataclass
class Kept:
    """``seconds`` in which threads could have run and had no core; set when the block ends."""

    seconds: float = 0.0

    @property
    def in_turn(self) -> float:
        """By how many seconds that may have delayed a sound or an answer: it passes through three
        threads one after the other (a lane's, the engine's, an event loop's), each kept so."""
        return 3 * self.seconds


@contextlib.contextmanager
def kept_waiting() -> Iterator[Kept]:
    """Of this process and those that it started, while the block runs: the longest that one thread
    waited for a core, taken over all threads (/proc/PID/task/TID/schedstat; 0 where there is none).

    A listener runs dry when the thread that makes its sound gets no core, on a busy machine as
    much as behind a bad neighbour. Only the latter is a fault; this is how much the former was.
    """
    kept = Kept()
    before = _delays()
    try:
        yield kept
    finally:
        after = _delays()
        kept.seconds = max((after[thread] - before.get(thread, 0.0) for thread in after), default=0)


def _delays() -> dict[str, float]:
    """Seconds for each thread of this process and of its children's children."""
    found: dict[str, float] = {}
    for process in _family():
        for thread in Path(f"/proc/{process}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):  # it ended meanwhile
                found[thread.parent.name] = int(thread.read_text().split()[1]) / 1e9
    return found


def _family() -> list[str]:
    parents: dict[str, str] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # After the name, which is in parentheses and may hold anything: state, parent.
            parents[stat.parent.name] = stat.read_text().rpartition(")")[2].split()[1]
    family = [str(os.getpid())]
    for member in family:  # grows meanwhile
        family += [child for child, parent in parents.items() if parent == member]
    return family
