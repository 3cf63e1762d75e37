"""How many listeners the generator itself keeps up with: many at a time against trivial servers
that send known audio by the clock, in processes of their own.
"""

import resource
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from playhead.engine.clock import monotonic
from playhead.loadgen.cores import Split
from playhead.loadgen.echo import FIRST, RATE, serving
from playhead.loadgen.figures import Figures, figures
from playhead.loadgen.plan import Plan
from playhead.loadgen.record import load
from playhead.loadgen.selfcheck import Finding
from playhead.loadgen.workers import Progress, execute

ENOUGH = 0.98
"""Share of the listeners that must have listened at one time."""
_FILES = 64  # besides the sockets of listeners


class TooFewFiles(ValueError):
    """The system does not allow that many open sockets."""


@dataclass(frozen=True, slots=True)
class Load:
    """``listeners`` at a time for ``window`` seconds, each utterance ``speech`` seconds long, from
    ``processes``, against ``servers`` processes. ``split``: which processors they have, if any."""

    listeners: int
    processes: int = 1
    window: float = 20.0
    speech: int = 20
    servers: int = 1
    split: Split | None = None

    @property
    def plan(self) -> Plan:
        """Without an address."""
        return Plan(
            "",
            self.listeners / self.speech,
            arrivals="constant",
            warmup=self.speech,
            window=self.window,
            sample_rate=RATE,
            turns=1_000,
            timeout=3.0 * self.speech,
            processes=self.processes,
            label=f"{self.listeners} listeners",
            cores=self.split.ours if self.split else (),
        )


@dataclass(frozen=True, slots=True)
class Scale:
    """What the generator did; ``complete``: nobody interrupted it. ``listening``: seconds for
    which listeners listened, all together. ``processor``, ``servers``: seconds of processor time
    of the generator and of its servers. ``elapsed``: seconds of the run."""

    load: Load
    figures: Figures
    complete: bool
    listening: float
    processor: float
    servers: float
    elapsed: float

    @property
    def per_core(self) -> float:
        """Listeners that one core carries, by processor time."""
        return self.listening / self.processor

    @property
    def valid(self) -> bool:
        """Every claim holds."""
        return all(finding.good for finding in findings(self))

    def as_json(self) -> dict[str, Any]:
        """All of it, and the verdict."""
        return {
            "load": asdict(self.load),
            "complete": self.complete,
            "valid": self.valid,
            "listeners_per_core": self.per_core,
            "cores_used": self.processor / self.elapsed,
            "servers_cores_used": self.servers / self.elapsed,
            "processor_seconds": self.processor,
            "listening_seconds": self.listening,
            "elapsed_seconds": self.elapsed,
            "figures": asdict(self.figures),
        }


def measure(asked: Load, out: Path, show: Progress) -> Scale:
    """Takes ``speech`` seconds more than the window at each end. The raw record is left in
    ``out``. Raises ``OSError`` and :class:`TooFewFiles`."""
    _allow_files(asked)
    path = out / f"{asked.plan.name}.jsonl"
    cpus = asked.split.others if asked.split else ()
    with serving(asked.servers, asked.speech, cpus) as (url, *also):
        began = monotonic()
        execute(replace(asked.plan, url=url, also=tuple(also)), path, show)
        elapsed, children = monotonic() - began, _children()
    servers = _children() - children
    run = load(path)
    listening = sum((each.ended or 0.0) - (each.dispatched or 0.0) for each in run.records)
    made = figures([run])
    return Scale(asked, made, run.complete, listening, run.processor, servers, elapsed)


def findings(made: Scale) -> list[Finding]:
    """The claims, as ``playhead bench selfcheck`` tells them."""
    found, asked = made.figures, made.load
    faults = ", ".join(f"{count} {name}" for name, count in found.faults.items())
    late = found.dispatch_lag.p99 or 0.0
    return [
        Finding(
            f"{asked.listeners} listeners at a time",
            found.peak_in_flight >= ENOUGH * asked.listeners,
            f"{found.peak_in_flight}, in {asked.processes} processes{_where(asked)}; "
            f"{found.utterances} utterances",
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
            "nobody heard a gap",
            not found.listener.stalled,
            f"{found.listener.stalled} of {found.listener.utterances} stalled; first audio, sent "
            f"after {1e3 * FIRST:.0f} ms, came after {_ms(found.ttfa.p50)} ms at the median and "
            f"{_ms(found.ttfa.p99)} ms at the 99th percentile",
        ),
        Finding(
            "one core carries",
            True,
            f"{made.per_core:.0f} listeners ({made.listening:.0f} s of listening took "
            f"{made.processor:.1f} s of processor time, {made.processor / made.elapsed:.2f} cores; "
            f"the servers used {made.servers / made.elapsed:.2f})",
        ),
    ]


def _where(asked: Load) -> str:
    if asked.split is None:
        return ""
    return f" on processors {', '.join(map(str, asked.split.ours))}"


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:.1f}"


def _allow_files(asked: Load) -> None:
    """As many open sockets as the system allows; a child inherits it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    need = asked.listeners // min(asked.processes, asked.servers) + _FILES
    if most != resource.RLIM_INFINITY and most < need:
        raise TooFewFiles(
            f"{asked.listeners} listeners need {need} open files in a process, and the system "
            f"allows {most}: raise the hard limit (ulimit -Hn)"
        )


def _children() -> float:
    """Processor seconds of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
