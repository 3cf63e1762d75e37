"""How long threads waited for a core, while something else is measured, and whether that is why."""

import os
import threading
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

from playhead.engine.clock import monotonic

EVERY = 0.1
"""Seconds from one look to the next."""

BEFORE = 0.5
"""Seconds before a listener ran dry in which a thread without a core can be the reason."""

Row = dict[str, float]
"""Seconds for which each thread has waited for a core so far."""


class Waits:
    """Of all processes that this one started, looked at every :data:`EVERY` seconds."""

    def __init__(self) -> None:
        self._at: list[float] = []
        self._rows: list[Row] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While the block runs."""
        over = threading.Event()
        thread = threading.Thread(target=self._watch, args=(over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def longest(self, begin: float, end: float) -> float:
        """Seconds for which the thread that waited longest did, between two times of
        :func:`monotonic`."""
        first = max(0, bisect_left(self._at, begin) - 1)
        last = min(len(self._at) - 1, bisect_left(self._at, end))
        if last <= first:
            return 0.0
        old, new = self._rows[first], self._rows[last]
        return max((new[each] - old.get(each, new[each]) for each in new), default=0.0)

    def excess(self, begin: float, end: float) -> float:
        """By how much that is more than usual: threads of a busy server queue for cores all the
        time, most of all behind each other."""
        length = end - begin
        windows = [at for at in self._at if at + length <= self._at[-1]][:: int(1 / EVERY)]
        usual = [self.longest(at, at + length) for at in windows]
        return self.longest(begin, end) - median(usual or [0.0])

    def explains(self, dry: float, length: float) -> bool:
        """Whether a thread lacked a core, just before a listener ran dry at ``dry`` and until it
        heard something again, for so much longer than usual as it heard nothing."""
        return self.excess(dry - BEFORE, dry + length) >= length

    def _watch(self, over: threading.Event) -> None:
        family: list[str] = []
        looked = 0.0
        while not over.wait(EVERY):
            now = monotonic()
            if now - looked > 1.0:
                family, looked = _family(), now
            self._at.append(now)
            self._rows.append(_delays(family))


def _delays(family: list[str]) -> Row:
    found: Row = {}
    for process in family:
        for thread in Path(f"/proc/{process}/task").glob("*/schedstat"):
            with suppress(OSError):  # it ended meanwhile
                found[thread.parent.name] = int(thread.read_text().split()[1]) / 1e9
    return found


def _family() -> list[str]:
    """All processes that this one started, and those that they did."""
    parents: dict[str, str] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # After the name, which is in parentheses and may hold anything: state, parent.
            parents[stat.parent.name] = stat.read_text().rpartition(")")[2].split()[1]
    family = [str(os.getpid())]
    for member in family:  # grows meanwhile
        family += [child for child, parent in parents.items() if parent == member]
    return family[1:]


class Cores:
    """Where the cores' time went, as shares of all of it."""

    def __init__(self) -> None:
        self._before = _stat()

    def told(self) -> str:
        """Since this was made."""
        spent = [new - old for new, old in zip(_stat(), self._before, strict=True)]
        total = sum(spent) or 1
        idle, steal = spent[3] + spent[4], spent[7]
        return f"cores idle {idle / total:.1%}, taken by the host {steal / total:.1%}"


def _stat() -> list[int]:
    with suppress(OSError):
        return [int(each) for each in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return [0] * 8
