#!/usr/bin/env python3
"""More demand than an accelerator that works in batches can meet: who is let in, who stalls.

    bench/reliability/overload_batched.py [--part 8] [--seconds 20] [--rate 27]

The real scheduler and admission under a virtual clock, with step and chunk costs as measured on one
H200 (engine/costs.py), or a machine that is full with ``--part`` times fewer streams. Poisson
arrivals of utterances of 5.7 s, strict players. First the highest rate that is carried without
admission (no stall, p95 of TTFA at most 200 ms), unless ``--rate`` names it; then multiples of it,
from a machine that serves half of its rate, and how soon nobody is refused after it.
"""

import argparse
import random
import sys
from collections.abc import Iterator
from dataclasses import replace

from playhead.engine import costs
from playhead.engine.policy import PolicyConfig
from playhead.engine.sim_listener import Mix
from playhead.engine.sim_outcome import Outcome
from playhead.engine.simulator import Scenario, Simulator

DEMANDS = (0.75, 0.9, 1.0, 1.25, 1.5, 2.0)

WARM = 6.0
"""Seconds of half load before what is counted."""

STEP = 1.05
"""From one tried rate to the next."""

RECOVERED = 5.0
"""Seconds after an overload from which nobody may be refused at half load."""


def poisson(rate: float, begin: float, end: float, seed: int) -> Iterator[float]:
    """Arrivals from ``begin`` to ``end``."""
    rng, now = random.Random(f"{seed} {begin}"), begin
    while (now := now + rng.expovariate(rate)) < end:
        yield now


def play(
    table: costs.CostTable,
    levels: list[tuple[float, float]],
    window: float,
    most: float,
    seed: int,
) -> Outcome:
    """Levels of (rate, seconds) one after the other; the last ``window`` seconds are counted."""
    arrivals: list[float] = []
    at = 0.0
    for rate, seconds in levels:
        arrivals += poisson(rate, at, at + seconds, seed)
        at += seconds
    policy = PolicyConfig(max_live=100_000, max_utilisation=most)
    base = Scenario(table, policy, Mix(ideal=True), warmup=at - window, window=window)
    known = {"arrivals": tuple(arrivals), "rehearsed": True, "report_every": 1.0, "seed": seed}
    return Simulator(replace(base, **known)).run()  # type: ignore[arg-type]


def p95(outcome: Outcome) -> float:
    """Of TTFA, seconds."""
    return sorted(outcome.ttfa)[int(0.95 * len(outcome.ttfa))]


def carried(table: costs.CostTable, rate: float, seconds: float, seed: int) -> float:
    """The highest rate from ``rate`` on that is carried without admission."""
    found = 0.0
    while True:
        out = play(table, [(rate / 2, WARM), (rate, seconds)], seconds, float("inf"), seed)
        print(f"  without admission {rate:.1f}/s: {out.stalled} stalled, p95 {p95(out):.3f} s")
        if (out.stalled or p95(out) > 0.2) and not found:
            raise SystemExit("the lowest rate that was tried is not carried")
        if out.stalled or p95(out) > 0.2:
            return found
        found, rate = rate, rate * STEP


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--demands", type=float, nargs="+", default=DEMANDS)
    parser.add_argument("--rate", type=float, help="utterances a second that are carried")
    parser.add_argument("--start", type=float, default=190.0, help="of a whole machine, to search")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    table = costs.smaller(costs.h200(), args.part)
    begin = args.start / args.part
    rate = args.rate or carried(table, begin, args.seconds, args.seed)
    one = play(table, [(rate / 2, WARM), (rate, args.seconds)], args.seconds, 1e9, args.seed)
    capacity = one.made / args.seconds
    print(f"{table.name}: carries {rate:.1f}/s, {capacity:.0f} s of speech a second")
    print("demand  offered  refused  stalled of admitted  worst s  TTFA p50, p95 ms  goodput")
    kept = True
    for demand in args.demands:
        levels = [(rate / 2, WARM), (demand * rate, args.seconds)]
        out = play(table, levels, args.seconds, 0.95, args.seed)
        admitted = out.utterances - out.refused
        middle = sorted(out.ttfa)[len(out.ttfa) // 2]
        good = out.made / args.seconds / capacity
        print(
            f"{demand:>5g}x {out.utterances:>8} {out.refused:>8} {out.stalled:>8} of {admitted:<6}"
            f" {out.worst_stall:>10.3f} {1e3 * middle:>9.0f}, {1e3 * p95(out):<7.0f} {good:>8.1%}",
            flush=True,
        )
        kept = kept and out.stalled <= 0.001 * admitted and (demand < 1.25 or good >= 0.95)
    after = [(2 * rate, args.seconds), (rate / 2, RECOVERED + 10.0)]
    out = play(table, after, 10.0, 0.95, args.seed)
    print(f"half load, from {RECOVERED:g} s after the overload on: {out.refused} refused of")
    print(f"{out.utterances}, {out.stalled} stalled")
    return 0 if kept and not out.refused else 1


if __name__ == "__main__":
    sys.exit(main())
