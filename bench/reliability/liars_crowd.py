#!/usr/bin/env python3
"""What lying pays when many do it: the real scheduler in virtual time, up to half of them.

    bench/reliability/liars_crowd.py [--seats 10] [--seconds 40] [--supply 0.8 ...] [--liars 5 ...]
        [--seeds 8] [--keys each|one|none ...] [--conduct reconnects ...] [--guests 2]

Supply, liars, keys and conduct may be given several times (``--supply 0.8 --supply 1.2``).

Gain: audio made for a liar on average, over what the same seats get when all are honest. Honest:
the same for the others, on average and for the one that got least; and by how many points of the
time they stalled more. Means over seeds (who begins when) and their 95 % confidence intervals.
First sound: what those who lie, or come anew, wait for it; median and 95 % of all of them.
"newcomers" are honest ones in the same places: each speaks once, is heard out and makes room.
``--keys``: everybody has a key, all come with one key's tickets, or nobody is asked for one.
``--guests``: places more of honest newcomers, who come, hear a second of speech and make room; the
last column is what they wait for their first sound (median, 95 %, longest).
"""

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reliability")]

from conducts import CONDUCTS, PLENTY  # noqa: E402
from market import SETTLED, Keys, Market, Result  # noqa: E402

MOST = 1.02
KEYS = {"each": Keys.EACH, "one": Keys.ONE, "none": Keys.NONE}

T = TypeVar("T")

Figures = tuple[float, float, float, float]
"""Gain, kept by the honest, kept by the least of them, points of time stalled more."""


def parts(values: dict[str, T]) -> tuple[list[T], list[T]]:
    """Of the liars, and of the others who stay."""
    lied = [value for account, value in values.items() if account.startswith("liar")]
    return lied, [value for account, value in values.items() if account.startswith("n")]


def compare(truth: Result, lied: Result, seconds: float) -> Figures:
    """One seed."""
    (liars, others), (before, base) = parts(lied.service), parts(truth.service)
    starved, usual = parts(lied.starved)[1], parts(truth.starved)[1]
    more = 100.0 * (mean(starved) - mean(usual)) / (SETTLED + seconds)
    return (
        mean(liars) / mean(before),
        mean(others) / mean(base),
        min(others) / min(base),
        more,
    )


def spread(values: list[float]) -> float:
    """Half of the 95 % confidence interval of the mean."""
    return 1.96 * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def first_sounds(runs: list[Result]) -> str:
    """What those who come wait for it, in milliseconds."""
    came = (times for run in runs for times in parts(run.waited)[0])
    waits = sorted(1e3 * seconds for times in came for seconds in times)
    return f"{waits[len(waits) // 2]:.0f}, {waits[len(waits) * 95 // 100]:.0f}" if waits else ""


def guests_wait(runs: list[Result]) -> str:
    """The same of honest newcomers, but for the first of each place, and the longest."""
    places = [(a, w) for run in runs for a, w in run.waited.items() if a.startswith("guest")]
    waits = sorted(1e3 * seconds for _, times in places for seconds in times[1:])
    if not waits:
        return ""
    found = waits[len(waits) // 2], waits[len(waits) * 95 // 100], waits[-1]
    return f"   {found[0]:.0f}, {found[1]:.0f}, {found[2]:.0f} of {len(waits)}"


def row(name: str, runs: list[Figures], first: str) -> Figures:
    """Print one conduct; its means."""
    gain, kept, least, more = columns = [list(column) for column in zip(*runs, strict=True)]
    print(
        f"{name:<22} {mean(gain):>6.3f} ±{spread(gain):.3f}  {mean(kept):>6.3f} ±{spread(kept):.3f}"
        f"  {mean(least):>6.3f}  {mean(more):>+6.2f} ±{spread(more):.2f}  {first:>9}",
        flush=True,
    )
    means = [mean(column) for column in columns]
    return means[0], means[1], means[2], means[3]


def rows(args: argparse.Namespace, supply: float, liars: int, keys: Keys) -> Iterator[Figures]:
    """One table; the figures of each conduct of which something is promised."""

    def play(conduct: str, seed: int) -> Result:
        market = Market(
            CONDUCTS[conduct],
            supply=supply,
            neighbours=args.seats - liars,
            liars=liars,
            seed=seed,
            keys=keys,
            guests=args.guests,
        )
        return market.run(args.seconds)

    print(f"supply {supply:g} times the demand, {liars} of {args.seats} lie, {keys.value}")
    print(
        f"{'conduct':<22} {'gain':>13}  {'honest: kept':>14}  the least  stalled more, points"
        "  first sound, ms"
    )
    truths = [play("honest", seed) for seed in range(args.seeds)]
    for name in args.conduct or CONDUCTS:
        results = [play(name, seed) for seed in range(args.seeds)]
        runs = [compare(t, r, args.seconds) for t, r in zip(truths, results, strict=True)]
        figures = row(name, runs, first_sounds(results) + guests_wait(results))
        if supply < 1.0 or name not in PLENTY:
            yield figures


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seats", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--guests", type=int, default=0)
    parser.add_argument("--supply", type=float, action="append")
    parser.add_argument("--liars", type=int, action="append", help="of the seats: 1, 3 and 5")
    parser.add_argument("--keys", choices=KEYS, action="append", help="default: each")
    parser.add_argument("--conduct", choices=CONDUCTS, action="append", help="default: all")
    args = parser.parse_args()
    found: list[Figures] = []
    for keys in args.keys or ["each"]:
        for supply in args.supply or [0.8, 1.0, 1.2]:
            for liars in args.liars or [1, 3, 5]:
                found += rows(args, supply, liars, KEYS[keys])
    worst, least = max(figures[0] for figures in found), min(figures[1] for figures in found)
    print(f"highest gain {worst:.3f}, allowed {MOST}; the honest kept {least:.3f} at the least")
    return 0 if worst <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
