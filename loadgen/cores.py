"""Which processors the generator's processes run on, so that a measurement has cores of its own.

Two logical processors of one core share it, so a core counts once: one of its processors is used
and its others stay idle where there are enough.
"""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


@dataclass(frozen=True, slots=True)
class Split:
    """``ours``: a processor for each of the generator's processes. ``others``: for all else."""

    ours: tuple[int, ...]
    others: tuple[int, ...]


def split(siblings: Sequence[frozenset[int]], count: int) -> Split:
    """Take ``count`` processors, of whole cores where enough are left for others to have as many.
    ``siblings``: the processors of each core. Raises ``ValueError``."""
    whole = sorted(siblings, key=min)
    every = sorted(cpu for core in whole for cpu in core)
    if not 1 <= count < len(every):
        raise ValueError(
            f"{count} of {len(every)} processors that can be chosen; expected 1 to "
            f"{max(1, len(every) - 1)}: at least one is left to the servers"
        )
    if len(whole) >= 2 * count:
        ours = tuple(min(core) for core in whole[:count])
        return Split(ours, tuple(cpu for cpu in every if not _beside(cpu, whole[:count])))
    return Split(tuple(every[:count]), tuple(every[count:]))


def _beside(cpu: int, cores: Sequence[frozenset[int]]) -> bool:
    return any(cpu in core for core in cores)


def parse_cpus(text: str) -> frozenset[int]:
    """The system's notation, such as ``0-1,8``. Raises ``ValueError``."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def cores() -> list[frozenset[int]]:
    """The processors that this process may use, those of one core together. Empty where the
    system does not tell (other than Linux)."""
    if sys.platform != "linux":
        return []
    allowed = os.sched_getaffinity(0)
    return sorted({_siblings(cpu) & allowed for cpu in allowed}, key=min)


def _siblings(cpu: int) -> frozenset[int]:
    """A machine that does not tell has a core for each."""
    try:
        told = parse_cpus(Path(_TOPOLOGY.format(cpu)).read_text(encoding="ascii"))
    except (OSError, ValueError):
        told = frozenset()
    return told | {cpu}


@contextlib.contextmanager
def pinned(cpu: int | None) -> Iterator[None]:
    """This thread runs on ``cpu`` alone meanwhile; ``None`` changes nothing."""
    if cpu is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
