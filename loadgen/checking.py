"""``playhead bench selfcheck``: what the generator proves of itself, told and written down."""

import argparse
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from playhead.loadgen import live, scale
from playhead.loadgen.cores import Split, cores, split
from playhead.loadgen.options import UsageError
from playhead.loadgen.selfcheck import Finding, check
from playhead.loadgen.tally import Tally

FILE = "selfcheck.json"


def add_check(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    add = parser.add_argument
    add(
        "--listeners",
        type=int,
        nargs="+",
        default=[],
        help="prove instead that it keeps up with so many at a time; several: one after the other",
    )
    add("--processes", type=int, default=1, help="generator processes (default %(default)s)")
    add("--cores", type=int, default=0, help="pin them to so many cores, the servers to others")
    add("--servers", type=int, default=1, help="server processes (default %(default)s)")
    add("--speech", type=int, default=20, help="seconds of an utterance (default %(default)s)")
    add("--window", type=float, default=20.0, help="seconds counted (default %(default)s)")
    add("--out", type=Path, default=Path("bench-out"), help="folder (default %(default)s)")


def prove(args: argparse.Namespace) -> bool:
    """Do it and tell each claim; whether all hold. Raises :class:`UsageError` and ``OSError``."""
    if not args.listeners:
        return tell(check())
    wanted = [wish(args, listeners) for listeners in args.listeners]
    args.out.mkdir(parents=True, exist_ok=True)
    made: list[scale.Scale] = []
    for asked in wanted:
        made.append(_measure(asked, args.out))
        tell(scale.findings(made[-1]))
        write(made, args.out / FILE)
        if not made[-1].complete:
            break
    return all(each.valid for each in made)


def tell(findings: Sequence[Finding]) -> bool:
    """A line each; whether all are good."""
    for finding in findings:
        print(f"{'ok' if finding.good else 'FAILED':<7} {finding.claim}: {finding.detail}")
    print(flush=True)
    return all(finding.good for finding in findings)


def wish(args: argparse.Namespace, listeners: int) -> scale.Load:
    """Raises :class:`UsageError` for what cannot be."""
    for name in ("processes", "servers", "speech", "window"):
        if not vars(args)[name] > 0:
            raise UsageError(f"--{name} {vars(args)[name]:g}: expected more than 0")
    if listeners < args.processes:
        raise UsageError(f"--listeners {listeners}: expected one for each process at least")
    if args.servers > args.processes:
        raise UsageError(
            f"--servers {args.servers}: each of the {args.processes} processes speaks to one "
            "server, so more would be idle"
        )
    return scale.Load(
        listeners, args.processes, args.window, args.speech, args.servers, _split(args.cores)
    )


def _split(count: int) -> Split | None:
    try:
        return split(cores(), count) if count else None
    except ValueError as error:
        raise UsageError(f"--cores {error}") from None


def _measure(asked: scale.Load, out: Path) -> scale.Scale:
    def show(tally: Tally, elapsed: float) -> None:
        live.show(tally, elapsed, asked.plan.length, asked.processes)

    try:
        return scale.measure(asked, out, show)
    except scale.TooFewFiles as error:
        raise UsageError(str(error)) from None


def write(made: Sequence[scale.Scale], path: Path) -> None:
    """Machine and figures, for documents and programs."""
    machine = {
        "system": platform.platform(),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "cores": [sorted(core) for core in cores()],
    }
    runs = [each.as_json() for each in made]
    path.write_text(json.dumps({"machine": machine, "runs": runs}, indent=1) + "\n", "utf-8")
