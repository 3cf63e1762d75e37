#!/usr/bin/env python3
"""More demand than there is: who is let in, who stalls, how much is made, and who gets it.

    bench/reliability/overload.py [--capacity 40] [--seconds 60] [--seed 1]

The real scheduler and admission under a virtual clock; Poisson arrivals of utterances of 5.7 s on
average, shared by four keys, then by one key that asks as much as the three others together.
``capacity``: seconds of speech a second that the lanes can make at the most.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reliability")]

from overload import Crowd, Step  # noqa: E402

DEMANDS = (0.5, 1.0, 1.5, 2.0, 3.0, 0.5)
PROMISED = 0.95


def table(title: str, crowd: Crowd, capacity: float) -> bool:
    """Print what came of each step; whether what is promised from 2x on was kept."""
    kept = True
    print(title)
    print("demand  offered  refused  admitted  stalled   worst s  goodput  of promised  shares")
    for step in crowd.run():
        made = step.heard / step.seconds / capacity
        shares = sorted(step.accounts.values())
        mean = sum(shares) / len(shares)
        spread = max(shares[-1] / mean - 1, 1 - shares[0] / mean)
        print(
            f"{step.demand:>5g}x {step.offered:>8} {step.refused:>8} {step.admitted:>9} "
            f"{step.share:>8.2%} {step.worst:>9.2f} {made:>8.1%} {made / PROMISED:>12.1%} "
            f"{spread:>6.1%} off the mean; last refusal after {step.last_refusal:.1f} s",
            flush=True,
        )
        if step.demand >= 2.0:
            kept = kept and step.share <= 0.001 and made >= 0.95 * PROMISED and spread <= 0.05
    return kept


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--capacity", type=float, default=40.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    equal = dict.fromkeys(("a", "b", "c", "d"), 1.0)
    steps = [Step(demand, args.seconds) for demand in DEMANDS]
    kept = table(
        "four keys that ask alike", Crowd(args.capacity, steps, equal, args.seed), args.capacity
    )
    greedy = {"greedy": 3.0, "b": 1.0, "c": 1.0, "d": 1.0}
    crowd = Crowd(args.capacity, [Step(3.0, args.seconds)], greedy, args.seed)
    kept &= table("one of them asks for three times as much as each other", crowd, args.capacity)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
