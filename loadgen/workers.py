"""A run as a whole: its processes, its file, its progress, its interruption.

Process 0 is the caller's own; the others are spawned, write files of their own, and are merged.
"""

import asyncio
import contextlib
import gc
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, TextIO

import uvloop
from playhead.engine.clock import monotonic, process_cpu
from playhead.loadgen.cores import pinned
from playhead.loadgen.plan import Plan
from playhead.loadgen.record import FORMAT, encode
from playhead.loadgen.run import AHEAD, Generator
from playhead.loadgen.tally import Tally

Progress = Callable[[Tally, float], None]
"""Called each second with the first process's tally and the seconds since the run began."""

_HEAD_START = 0.2  # for sessions and proxies to be ready
_RARELY = (50_000, 20, 100)  # records have no cycles; what has is collected all the same
_SPAWNING = 2.0  # seconds in which a process imports what it needs


def execute(plan: Plan, path: Path, progress: Progress) -> bool:
    """Run ``plan`` into ``path``. False: interrupted, or a process failed; the file says so.

    Raises ``ValueError`` for a plan that cannot run and ``OSError`` for a file that cannot be
    written.
    """
    spawning = _SPAWNING if plan.processes > 1 else 0.0
    origin = monotonic() + AHEAD + _HEAD_START + spawning
    parts = [path.with_suffix(f".part{number}") for number in range(1, plan.processes)]
    with path.open("w", encoding="utf-8") as file:
        file.write(encode({"kind": "run", "format": FORMAT, "plan": plan.as_json()}))
        children = [_spawn(plan, number, origin, part) for number, part in enumerate(parts, 1)]
        complete = _share(plan, 0, origin, file, progress)
        complete = all([_joined(child) for child in children]) and complete
        for part in parts:
            _merge(part, file)
        file.write(encode({"kind": "end", "complete": complete}))
    return complete


def _share(
    plan: Plan, process: int, origin: float, file: TextIO, progress: Progress | None
) -> bool:
    """One process's share; False when it was interrupted."""

    def sink(line: Mapping[str, Any]) -> None:
        file.write(encode(line))

    cpu = plan.cores[process % len(plan.cores)] if plan.cores else None
    generator = Generator(plan, process, origin, sink)
    began = process_cpu()
    with pinned(cpu), _without_pauses():
        try:
            uvloop.run(_with_progress(generator, origin, progress))
        except KeyboardInterrupt:
            return False
        finally:
            sink({"kind": "processor", "seconds": process_cpu() - began})
    return True


@contextlib.contextmanager
def _without_pauses() -> Iterator[None]:
    """A collection of a long run's records would show as the generator's lag."""
    gc.collect()
    gc.freeze()
    usual = gc.get_threshold()
    gc.set_threshold(*_RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


async def _with_progress(generator: Generator, origin: float, progress: Progress | None) -> None:
    shown = asyncio.create_task(_show(generator.tally, origin, progress)) if progress else None
    try:
        await generator.run()
    finally:
        if shown is not None:
            shown.cancel()


async def _show(tally: Tally, origin: float, progress: Progress) -> None:
    while True:
        progress(tally, monotonic() - origin)
        await asyncio.sleep(1.0)


def _spawn(
    plan: Plan, process: int, origin: float, part: Path
) -> multiprocessing.process.BaseProcess:
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=_child, args=(plan, process, origin, part))
    with interrupts_kept():
        child.start()
    return child


@contextlib.contextmanager
def interrupts_kept() -> Iterator[None]:
    """Ctrl-C waits meanwhile, in a process that is started too, until that unblocks it: it would be
    met in the middle of its imports."""
    resource_tracker.ensure_running()  # its start, which the first child's would bring, unblocks
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _child(plan: Plan, process: int, origin: float, part: Path) -> None:
    complete = False
    with part.open("w", encoding="utf-8") as file, contextlib.suppress(KeyboardInterrupt):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        complete = _share(plan, process, origin, file, None)
    if not complete:
        raise SystemExit(128 + signal.SIGINT)


def _joined(child: multiprocessing.process.BaseProcess) -> bool:
    child.join()
    return child.exitcode == 0


def _merge(part: Path, file: TextIO) -> None:
    """A process that never came to write leaves no part; that the run is partial is known."""
    with contextlib.suppress(FileNotFoundError):
        file.write(part.read_text(encoding="utf-8"))
        part.unlink()
