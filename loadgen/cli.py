"""``playhead bench``: run a load, report from its records, search for the highest clean rate."""

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from playhead.loadgen import live
from playhead.loadgen.charts import charts
from playhead.loadgen.checking import add_check, prove
from playhead.loadgen.figures import Figures, figures, label_of
from playhead.loadgen.frontier import comparison
from playhead.loadgen.habits import Caller
from playhead.loadgen.namespace import NoNamespaces
from playhead.loadgen.options import (
    UsageError,
    add_load,
    add_rates,
    add_serve,
    add_settings,
    plans,
    settings,
)
from playhead.loadgen.paired import verdicts
from playhead.loadgen.plan import Plan
from playhead.loadgen.png import NoPlots, write_png
from playhead.loadgen.record import RecordError, Run, load
from playhead.loadgen.report import collect, kept, pool, write
from playhead.loadgen.servers import ServerFailed, placed, serving
from playhead.loadgen.session import SessionError
from playhead.loadgen.slo import Objective, Search, search
from playhead.loadgen.table import table, verdict
from playhead.loadgen.tally import Tally
from playhead.loadgen.targets import OPENERS, endpoint
from playhead.loadgen.workers import execute

EXIT_MISSED = 1
"""Also: a run is invalid, or not one utterance of all was without a fault."""
EXIT_USAGE = 2
OWN_SERVER = "last: start a server of our own with the flags that follow, instead of --url"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``run``, ``report``, ``search``, ``urgency`` and ``selfcheck``."""
    commands = parser.add_subparsers(dest="bench", required=True, metavar="what")
    run_parser = commands.add_parser("run", help="run one or several rates and report")
    add_load(run_parser)
    add_rates(run_parser)
    add_serve(run_parser, OWN_SERVER)
    report_parser = commands.add_parser("report", help="judge raw records again")
    report_parser.add_argument(
        "paths", type=Path, nargs="+", help=".jsonl files or their folders; .json of old reports"
    )
    report_parser.add_argument("--out", type=Path, help="folder of the report (none: only print)")
    report_parser.add_argument("--png", type=Path, help="folder for its plots as PNG files")
    search_parser = commands.add_parser("search", help="find the highest rate that is good enough")
    add_load(search_parser)
    search_parser.add_argument("--lenient", action="store_true", help="C100 of 99 %% suffices")
    search_parser.add_argument("--start", type=float, default=1.0, help="rate to begin with")
    search_parser.add_argument("--least", type=float, default=0.05)
    search_parser.add_argument("--most", type=float, default=1000.0)
    urgency_parser = commands.add_parser(
        "urgency", help="start a server per urgency signal and ask the same of each"
    )
    add_load(urgency_parser)
    add_rates(urgency_parser)
    add_settings(urgency_parser)
    add_serve(urgency_parser, "last: more flags of playhead serve")
    check_parser = commands.add_parser(
        "selfcheck", help="prove the generator on a server with planted faults"
    )
    add_check(check_parser)
    search_parser.add_argument("--tolerance", type=float, default=0.05, help="of the found rate")
    add_serve(search_parser, OWN_SERVER)


def run(args: argparse.Namespace) -> int:
    """Do what was asked; the exit status. Errors are told in one line."""
    chosen = _COMMANDS[args.bench]
    try:
        return chosen(args)
    except (UsageError, RecordError, NoNamespaces, NoPlots) as error:
        print(f"playhead bench: {error}", file=sys.stderr)
        return EXIT_USAGE
    except ServerFailed as error:
        print(f"playhead bench: {error}", file=sys.stderr)
        return EXIT_MISSED
    except SessionError as error:
        print(f"playhead bench: {error.fault}: {error.message}", file=sys.stderr)
        return EXIT_USAGE
    except OSError as error:
        print(f"playhead bench: {error.filename}: {error.strerror}", file=sys.stderr)
        return EXIT_USAGE


def _run(args: argparse.Namespace) -> int:
    with _server(args):
        asked = [plan for rate in args.rate for plan in plans(args, rate)]
        args.out.mkdir(parents=True, exist_ok=True)
        _check_target(asked[0])
        runs = _measure_all(asked, _raw(args))
    return _close(runs, args.out)


@contextlib.contextmanager
def _server(args: argparse.Namespace) -> Iterator[None]:
    """The server to be measured: one that runs already, or, with ``--serve``, one of our own."""
    if args.serve is None:
        if args.network == "namespace":
            raise UsageError("--network namespace needs a server inside: add --serve as last flag")
        yield
        return
    with placed(args.network, 0) as net, serving(args.serve, net) as args.url:
        yield


def _urgency(args: argparse.Namespace) -> int:
    """Identical arrivals, texts and listeners for each setting; ``--url`` is of no use here."""
    asked = [plan for rate in args.rate for plan in plans(args, rate)]
    args.out.mkdir(parents=True, exist_ok=True)
    runs: list[Run] = []
    for mode, lead in settings(args):
        flags = ["--urgency", mode, "--lead", lead, *(args.serve or [])]
        # The same weather for each: networks are drawn in the order of connections.
        with placed(args.network, 0) as net, serving(flags, net) as url:
            own = [
                replace(plan, url=endpoint(url), label=f"{mode} {lead}", signal=mode, lead=lead)
                for plan in asked
            ]
            runs += _measure_all(own, _raw(args))
        if not runs[-1].complete:
            break
    return _close(runs, args.out)


def _raw(args: argparse.Namespace) -> Path:
    folder: Path = args.raw or args.out
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _measure_all(plans: list[Plan], out: Path) -> list[Run]:
    """One run after the other, until one is interrupted."""
    runs: list[Run] = []
    for plan in plans:
        runs.append(_measure(plan, out))
        if not runs[-1].complete:
            break
    return runs


def _close(runs: list[Run], out: Path) -> int:
    status = _tell(runs, out)
    return status if runs[-1].complete else 128 + signal.SIGINT


def _report(args: argparse.Namespace) -> int:
    runs, old = collect(args.paths), kept(args.paths)
    if args.png is not None:
        args.png.mkdir(parents=True, exist_ok=True)
        for path in write_png(charts([*pool(runs), *old]), args.png):
            print(path)
    return _tell(runs, args.out, old)


def _search(args: argparse.Namespace) -> int:
    with _server(args):
        return _search_on(args)


def _search_on(args: argparse.Namespace) -> int:
    objective = Objective(strict=not args.lenient)
    args.out.mkdir(parents=True, exist_ok=True)
    _check_target(plans(args, args.start)[0])
    runs: list[Run] = []

    def measure(rate: float) -> bool:
        passed = True
        for plan in plans(args, rate):
            runs.append(_measure(plan, _raw(args)))
            made = figures(runs[-1:])
            if made.invalid:
                raise UsageError(f"{made.name} is invalid: {'; '.join(made.invalid)}")
            passed = not objective.misses(made)
            if not passed:
                break  # one seed that misses decides, and the next rate is worth more
        print(f"{rate:g}/s: {'passed' if passed else 'missed'}", flush=True)
        return passed

    try:
        found = search(
            measure,
            start=args.start,
            least=args.least,
            most=args.most,
            tolerance=args.tolerance,
        )
    except UsageError as error:
        print(f"playhead bench: {error}", file=sys.stderr)
        return _tell(runs, args.out) or EXIT_MISSED
    except ValueError as error:
        raise UsageError(str(error)) from None
    _tell(runs, args.out)
    print(_conclusion(found, objective))
    return 0 if found.best is not None else EXIT_MISSED


def _selfcheck(args: argparse.Namespace) -> int:
    return 0 if prove(args) else EXIT_MISSED


def _conclusion(found: Search, objective: Objective) -> str:
    if found.best is None:
        return f"no rate down to {found.worse:g}/s meets the {objective.name} objective"
    above = "" if found.worse is None else f"; {found.worse:g}/s does not"
    return f"{found.best:g}/s meets the {objective.name} objective{above}"


def _measure(plan: Plan, out: Path) -> Run:
    path = out / f"{plan.name}.jsonl"
    print(f"{plan.name}:", file=sys.stderr)

    def show(tally: Tally, elapsed: float) -> None:
        live.show(tally, elapsed, plan.length, plan.processes)

    try:
        execute(plan, path, show)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return load(path)


def _tell(runs: list[Run], out: Path | None, old: Sequence[Figures] = ()) -> int:
    rows = [*pool(runs), *old]
    print(table(rows))
    if compared := comparison(rows):
        print(compared)
    broken = {(made.label, made.rate) for made in rows if made.invalid}
    sound = [run for run in runs if (label_of(run), float(run.plan["rate"])) not in broken]
    for pair in verdicts(sound):
        print(pair.told())
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for path in write(rows, runs, out):
            print(path)
    good = any(made.utterances > sum(made.faults.values()) for made in rows)
    return 0 if good and all(verdict(made) != "INVALID" for made in rows) else EXIT_MISSED


def _check_target(plan: Plan) -> None:
    """A server that cannot be talked to is told at once. Raises ``SessionError``."""

    async def talk() -> None:
        session = await OPENERS[plan.target](plan.url, plan, Caller(), 0)
        await session.close()

    asyncio.run(talk())


_COMMANDS = {
    "run": _run,
    "report": _report,
    "search": _search,
    "urgency": _urgency,
    "selfcheck": _selfcheck,
}
