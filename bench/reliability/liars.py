#!/usr/bin/env python3
"""What a client gains by lying, among honest ones: the real scheduler in virtual time.

    bench/reliability/liars.py [--neighbours 9] [--seconds 60] [--supply 0.8 --supply 1.0 ...]

Gain: audio made for the liar in ``--seconds``, divided by what an honest client in its place gets,
both after fifteen seconds in which everybody fills up its lead. Total: the same from the start.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reliability")]

from conducts import CONDUCTS, PLENTY  # noqa: E402
from market import Market  # noqa: E402

MOST = 1.02


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--neighbours", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--supply", type=float, action="append")
    args = parser.parse_args()
    worst = 0.0
    for supply in args.supply or [0.8, 1.0, 1.2]:
        print(f"supply {supply:g} times the demand, {args.neighbours} neighbours")
        print(f"{'conduct':<22} {'gain':>6} {'total':>6}  neighbours: seconds heard, stalled")
        truth = Market(CONDUCTS["honest"], supply=supply, neighbours=args.neighbours)
        base = truth.run(args.seconds)
        for name, conduct in CONDUCTS.items():
            market = Market(conduct, supply=supply, neighbours=args.neighbours)
            lied = market.run(args.seconds)
            gain = lied.service["liar"] / base.service["liar"]
            heard, starved = lied.others(lied.service), lied.others(lied.starved)
            print(
                f"{name:<22} {gain:>6.3f} {lied.total['liar'] / base.total['liar']:>6.3f}  "
                f"{heard[0]:.1f} to {heard[-1]:.1f}, {sum(starved) / len(starved):.2f} on average, "
                f"{starved[-1]:.2f} the worst",
                flush=True,
            )
            if supply < 1.0 or name not in PLENTY:
                worst = max(worst, gain)
    print(f"highest gain {worst:.3f}, allowed {MOST}")
    return 0 if worst <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
