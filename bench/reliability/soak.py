#!/usr/bin/env python3
"""24 virtual hours of clients that come, speak, lie, drop out and come back, a fault every second.

    bench/reliability/soak.py [--hours 24] [--rate 0.25] [--seed 1]

Hub, sessions and engine are the ones that serve; time is virtual. Whatever must always be true is
checked every second, and once an hour all go home and nothing may be left of them. The same seed
gives the same run. Exit status 1 at the first broken promise, with the seed and the second.
"""

import argparse
import asyncio
import logging
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reliability")]

from soak import Town  # noqa: E402
from virtual import run_virtually  # noqa: E402

HOUR = 3600.0


def resident() -> float:
    """MiB that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


async def soak(hours: float, rate: float, seed: int) -> None:
    began, town = time.monotonic(), Town(seed, rate)
    start = asyncio.get_running_loop().time()
    try:
        for hour in range(1, round(hours) + 1):
            digest = await town.run(HOUR)
            print(
                f"hour {hour}: {town.counts['guests']} sessions, {town.submitted} utterances, "
                f"{sum(town.runner.struck.values())} faults, {town.counts['resumed']} resumed, "
                f"{resident():.0f} MiB, digest {digest}, {time.monotonic() - began:.0f} s",
                flush=True,
            )
    except AssertionError as broken:
        second = asyncio.get_running_loop().time() - start
        print(f"broken after {second:.3f} s with --seed {seed} --rate {rate:g}: {broken}")
        raise
    print("ends:", {k: v for k, v in town.counts.items() if k in ("Done", "Failed", "Cancelled")})
    print("engine:", {reason.value: n for reason, n in town.finished.items()})
    print("faults:", dict(sorted(town.runner.struck.items())))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--rate", type=float, default=0.25, help="sessions a second")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    try:
        run_virtually(soak(args.hours, args.rate, args.seed))
    except AssertionError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
