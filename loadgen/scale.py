"""How many listeners the generator itself keeps up with: many at a time against a trivial server
that sends known audio by the clock, in a process of its own.
"""

import asyncio
import contextlib
import multiprocessing
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import uvloop
from playhead.loadgen.figures import Figures, figures
from playhead.loadgen.plan import Plan
from playhead.loadgen.record import load
from playhead.loadgen.scripted import Script, ScriptedServer
from playhead.loadgen.selfcheck import Finding
from playhead.loadgen.workers import Progress, execute

RATE = 8_000
"""Samples a second: 16 kB a second for each listener."""
SPEECH = 20
"""Seconds of an utterance: a message each second, sent half a second ahead."""
REPORTS = 1_000  # milliseconds between reports, as a server with so many listeners asks for
ENOUGH = 0.98
"""Share of the listeners that must have listened at one time."""


@dataclass(frozen=True, slots=True)
class Scale:
    """What the generator did, the seconds for which listeners listened, all together, and the
    seconds of processor time that this took."""

    figures: Figures
    listening: float
    processor: float

    @property
    def per_core(self) -> float:
        """Listeners that one core carries."""
        return self.listening / self.processor


def measure(
    listeners: int,
    processes: int,
    window: float,
    out: Path,
    show: Progress,
    speech: int = SPEECH,
) -> Scale:
    """``listeners`` at a time for ``window`` seconds; takes ``speech`` seconds more at each end.
    The raw record is left in ``out``. Raises ``OSError``."""
    _allow_files()
    with serving(speech) as url:
        plan = Plan(
            url,
            listeners / speech,
            arrivals="constant",
            warmup=speech,
            window=window,
            sample_rate=RATE,
            turns=1_000,
            timeout=3.0 * speech,
            processes=processes,
            label=f"{listeners} listeners",
        )
        path = out / f"{plan.name}.jsonl"
        before = _processor()
        execute(plan, path, show)
        used = _processor() - before
    run = load(path)
    spans = [(record.ended or 0.0) - (record.dispatched or 0.0) for record in run.records]
    return Scale(figures([run]), sum(spans), used)


def findings(made: Scale, listeners: int, processes: int) -> list[Finding]:
    """The claims, as ``playhead bench selfcheck`` tells them."""
    found = made.figures
    faults = ", ".join(f"{count} {name}" for name, count in found.faults.items())
    late = found.dispatch_lag.p99 or 0.0
    return [
        Finding(
            f"{listeners} listeners at a time",
            found.peak_in_flight >= ENOUGH * listeners,
            f"{found.peak_in_flight}, in {processes} processes; {found.utterances} utterances",
        ),
        Finding("none of them failed", not found.faults, faults or "no faults"),
        Finding(
            "the generator kept up",
            not found.invalid,
            "; ".join(found.invalid)
            or f"99 % dispatched within {1e3 * late:.1f} ms, loop late "
            f"{found.loop_late_share:.2%} of the time",
        ),
        Finding(
            "one core carries",
            True,
            f"{made.per_core:.0f} listeners ({made.listening:.0f} s of listening took "
            f"{made.processor:.1f} s of processor time)",
        ),
    ]


@contextlib.contextmanager
def serving(speech: int) -> Iterator[str]:
    """The trivial server; yields its address."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=_serve, args=(theirs, speech), daemon=True)
    child.start()
    try:
        yield str(ours.recv())
    finally:
        child.terminate()
        child.join()


def _serve(pipe: Connection, speech: int) -> None:
    async def serve() -> None:
        chunks = tuple((max(0.05, second - 0.5), RATE) for second in range(speech))
        server = ScriptedServer(Script(chunks, report_interval=REPORTS, forget=True))
        async with server.running() as url:
            pipe.send(url)
            await asyncio.Event().wait()

    _allow_files()
    uvloop.run(serve())


def _allow_files() -> None:
    """As many open sockets as the system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _processor() -> float:
    """Processor seconds of this process and of its children that have ended."""
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
