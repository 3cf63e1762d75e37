"""`playhead simulate`: the worth of the playhead signal, as a table."""

import argparse
import sys
from dataclasses import replace

from playhead.engine import costs, simulate_fleet
from playhead.engine.lead import LeadLimits, parse_lead
from playhead.engine.policy import PolicyConfig
from playhead.engine.sim_listener import Mix
from playhead.engine.sim_outcome import Outcome
from playhead.engine.simulator import Scenario, Simulator
from playhead.engine.types import Lane, Urgency

HEADER = (
    f"{'urgency':<10} {'lead':>9} {'held s':>7} {'stalled':>8} {'>100 ms':>8} {'worst s':>8} "
    f"{'TTFA p50':>9} {'p95 ms':>7} {'urgent':>7} {'LM':>5} {'back':>5} {'urg':>5}  digest"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    simulate_fleet.add_arguments(parser)
    parser.add_argument("--machine", choices=("cpu", "accelerator"), default="cpu")
    parser.add_argument("--cores", type=int, default=2, help="cores of --machine cpu")
    parser.add_argument("--sms", type=int, default=48, help="SMs of the background lane")
    parser.add_argument("--rate", type=float, help="utterances a second (cpu 4, accelerator 140)")
    parser.add_argument("--seconds", type=float, default=60.0, help="window that is counted")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ideal", action="store_true", help="listeners without faults")
    parser.add_argument("--liars", type=float, default=0.0, help="share of listeners that lie")
    parser.add_argument("--fickle", action="store_true", help="networks change per utterance")
    parser.add_argument("--urgency", choices=[u.value for u in Urgency], action="append")
    parser.add_argument(
        "--lead", action="append", help="seconds, or 'learned[:SECONDS]'; may be repeated"
    )


def run(args: argparse.Namespace) -> int:
    """Simulate each combination and print its row. Returns an exit status."""
    if args.fleet:
        return simulate_fleet.run(args)
    table = costs.cpu(args.cores) if args.machine == "cpu" else costs.accelerator(args.sms)
    rate = args.rate or (4.0 if args.machine == "cpu" else 140.0)
    mix = Mix(ideal=args.ideal, liars=args.liars, sticky=not args.fickle)
    base = Scenario(table, PolicyConfig(), mix, rate, window=args.seconds, seed=args.seed)
    listeners = "ideal" if args.ideal else "not ideal"
    print(f"{table.name}; {rate:g} utterances a second, {args.seconds:g} s; listeners {listeners}")
    print(HEADER)
    for urgency in args.urgency or [u.value for u in Urgency]:
        for lead in args.lead or ["1.0", "2.0", "learned"]:
            if lead.startswith("learned") and urgency != Urgency.REPORTED:
                continue
            try:
                policy = PolicyConfig(Urgency(urgency), _lead(lead), max_live=100_000)
            except ValueError as fault:
                print(f"playhead simulate: {fault}", file=sys.stderr)
                return 2
            outcome = Simulator(replace(base, policy=policy)).run()
            print(row(urgency, lead, outcome), flush=True)
    return 0


def _lead(text: str) -> LeadLimits:
    try:
        return parse_lead(text)
    except ValueError as fault:
        raise ValueError(f"--lead {text!r}: expected {fault}") from None


def row(urgency: str, lead: str, outcome: Outcome) -> str:
    """One line of the table."""
    ttfa = sorted(outcome.ttfa) or [0.0]
    total = sum(outcome.chunks.values()) or 1
    urgent = outcome.chunks.get(Lane.URGENT, 0) / total
    busy = outcome.busy
    return (
        f"{urgency:<10} {lead:>9} {outcome.waste:>7.2f} {outcome.share(outcome.stalled):>8.2%} "
        f"{outcome.share(outcome.stalled_100):>8.2%} {outcome.worst_stall:>8.2f} "
        f"{ttfa[len(ttfa) // 2] * 1e3:>9.1f} {ttfa[int(len(ttfa) * 0.95)] * 1e3:>7.1f} "
        f"{urgent:>7.1%} {busy[Lane.LM]:>5.0%} {busy[Lane.BACKGROUND]:>5.0%} "
        f"{busy[Lane.URGENT]:>5.0%}  {outcome.digest}"
    )
