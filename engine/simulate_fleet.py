"""``playhead simulate --fleet``: how many accelerators a crowd of listeners needs, as a table."""

import argparse
import json
import math
import sys
from pathlib import Path

from playhead.engine.fleet import Answer, Day, Demand, Nodes, size
from playhead.engine.served import H200, NotServed, Point, capacity, read

_HEADER = (
    f"{'listeners':>11} {'utt/s':>9} {'bare':>7} {'needed':>7} {'spare':>6} {'per acc.':>9} "
    f"{'refused':>9} {'worst 10 s':>10} {'failures':>8} {'acc.-h/day':>11} {'scaled':>10} "
    f"{'refused':>9}"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the fleet; times are seconds."""
    add = parser.add_argument
    defaults, nodes = Demand(0.0), Nodes(0.0)
    add("--fleet", action="store_true", help="how many accelerators a crowd of listeners needs")
    add("--listeners", type=float, nargs="+", default=[1e5, 1e6, 1e7], help="in the busiest hour")
    add("--served", type=Path, help="report.json of a load test (default: measured on one H200)")
    add("--lenient", action="store_true", help="C100 of 99 %% suffices")
    add("--refused", type=float, default=1e-4, help="share that may be refused on any day")
    add("--every", type=float, default=defaults.every, help="from one utterance to the next")
    add("--quiet", type=float, default=defaults.quiet, help="demand of the quietest hour, share")
    add("--surge", type=float, default=defaults.surge, help="what a surge adds, share")
    add("--node", type=int, default=nodes.accelerators, help="accelerators of a node")
    add("--between-failures", type=float, default=nodes.between_failures, help="of a node")
    add("--repair", type=float, default=nodes.repair, help="until a failed node serves again")
    add("--days", type=int, default=3, help="simulated for each answer")


def run(args: argparse.Namespace) -> int:
    """Print a row for each crowd. Returns an exit status."""
    try:
        point = _measured(args)
        rows = [_crowd(args, listeners, point) for listeners in args.listeners]
    except (NotServed, ValueError) as fault:
        print(f"playhead simulate: {fault}", file=sys.stderr)
        return 2
    except OSError as fault:
        print(f"playhead simulate: {fault.filename}: {fault.strerror}", file=sys.stderr)
        return 2
    objective = "lenient" if args.lenient else "strict"
    print(
        f"one accelerator carries {point.rate:g} utterances a second within the {objective} "
        f"objective ({point.utterances} utterances measured), {point.in_flight:g} at a time; "
        f"{args.node} of them are a node"
    )
    print(_HEADER)
    for line in rows:
        print(line)
    return 0


def _measured(args: argparse.Namespace) -> Point:
    if args.served is None:
        return capacity(H200, strict=not args.lenient)
    text = args.served.read_text(encoding="utf-8")
    try:
        return capacity(read(json.loads(text)), strict=not args.lenient)
    except (NotServed, ValueError) as fault:
        raise NotServed(f"--served {args.served}: {fault}") from None


def _crowd(args: argparse.Namespace, listeners: float, point: Point) -> str:
    for name in ("refused", "quiet", "surge"):
        _within(name, vars(args)[name], 0.0, 1.0 if name != "surge" else 100.0)
    for name in ("every", "between_failures", "repair"):
        _within(name, vars(args)[name], 1e-3, 1e12)
    for name in ("node", "days"):
        _within(name, vars(args)[name], 1, 1_000)
    _within("listeners", listeners, 1, 1e10)
    demand = Demand(listeners, every=args.every, quiet=args.quiet, surge=args.surge)
    nodes = Nodes(
        point.rate,
        accelerators=args.node,
        between_failures=args.between_failures,
        repair=args.repair,
    )
    return row(demand, nodes, size(demand, nodes, refused=args.refused, seeds=args.days))


def _within(name: str, value: float, low: float, high: float) -> None:
    if not (math.isfinite(value) and low <= value <= high):
        flag = name.replace("_", "-")
        raise ValueError(f"--{flag} {value:g}: expected a number from {low:g} to {high:g}")


def row(demand: Demand, nodes: Nodes, answer: Answer) -> str:
    """One line of the table; counts are accelerators."""
    each = nodes.accelerators
    worst, scaled = _worst(answer.days), _worst(answer.scaled)
    return (
        f"{demand.listeners:>11,.0f} {demand.peak:>9,.0f} {answer.bare * each:>7,} "
        f"{answer.nodes * each:>7,} {answer.spare * each:>6,} "
        f"{demand.listeners / (answer.nodes * each):>9,.0f} {worst.refused_share:>9.4%} "
        f"{max(day.worst for day in answer.days):>10.2%} {worst.failures:>8} "
        f"{worst.accelerator_hours:>11,.0f} {scaled.accelerator_hours:>10,.0f} "
        f"{scaled.refused_share:>9.4%}"
    )


def _worst(days: tuple[Day, ...]) -> Day:
    return max(days, key=lambda day: day.refused_share)
