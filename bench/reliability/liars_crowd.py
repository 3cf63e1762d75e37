#!/usr/bin/env python3
"""What lying pays when many do it: the real scheduler in virtual time, up to half of them.

    bench/reliability/liars_crowd.py [--seats 10] [--seconds 40] [--supply 0.8 --supply 1.2 ...]

Gain: audio made for a liar on average, over what the same seats get when all are honest. Honest:
the same for the others, on average and for the one that got least; and how much more they stalled.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reliability")]

from market import CONDUCTS, PLENTY, Market, Result  # noqa: E402

MOST = 1.02


def play(conduct: str, liars: int, args: argparse.Namespace, supply: float) -> Result:
    """One run of ``liars`` among the seats."""
    neighbours = args.seats - liars
    market = Market(CONDUCTS[conduct], supply=supply, neighbours=neighbours, liars=liars)
    return market.run(args.seconds)


def parts(values: dict[str, float]) -> tuple[list[float], list[float]]:
    """Of the liars, and of the others."""
    lied = [value for account, value in values.items() if account.startswith("liar")]
    return lied, [value for account, value in values.items() if not account.startswith("liar")]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def row(name: str, truth: Result, lied: Result, seconds: float) -> tuple[float, float]:
    """Print one conduct; the liars' gain and what the honest kept."""
    (liars, others), (before, base) = parts(lied.service), parts(truth.service)
    gain, kept = mean(liars) / mean(before), mean(others) / mean(base)
    starved, usual = parts(lied.starved)[1], parts(truth.starved)[1]
    more = (mean(starved) - mean(usual)) / seconds
    print(
        f"{name:<22} {gain:>6.3f} {kept:>7.3f} {min(others) / min(base):>7.3f} {more:>+8.2%}",
        flush=True,
    )
    return gain, kept


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seats", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--supply", type=float, action="append")
    parser.add_argument("--liars", type=int, action="append", help="of the seats: 1, 3 and 5")
    args = parser.parse_args()
    worst, least = 0.0, 1.0
    for supply in args.supply or [0.8, 1.0, 1.2]:
        for liars in args.liars or [1, 3, 5]:
            print(f"supply {supply:g} times the demand, {liars} of {args.seats} lie")
            print(f"{'conduct':<22} {'gain':>6}  honest: kept, the least, stalled more")
            truth = play("honest", liars, args, supply)
            for name in CONDUCTS:
                lied = play(name, liars, args, supply)
                gain, kept = row(name, truth, lied, args.seconds)
                if supply < 1.0 or name not in PLENTY:
                    worst, least = max(worst, gain), min(least, kept)
    print(f"highest gain {worst:.3f}, allowed {MOST}; the honest kept {least:.3f} at the least")
    return 0 if worst <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
