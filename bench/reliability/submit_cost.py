#!/usr/bin/env python3
"""What letting one more in costs the engine's thread, by how many are live.

    bench/reliability/submit_cost.py [--live 10 100 1500] [--rate 250]

The real scheduler under a virtual clock that moves on by one arrival each; each newcomer is
admitted, entered and cancelled again. Prints microseconds: the median of several rounds.
"""

import argparse
import random
import statistics
import sys
import time

from playhead.engine import costs
from playhead.engine.policy import PolicyConfig
from playhead.engine.scheduler import Scheduler
from playhead.engine.types import Request

ROUNDS, SUBMITS = 21, 50


def microseconds(live: int, rate: float) -> float:
    """Of one submit and its end, beside ``live`` listeners who hold 0.2 to 2 s each."""
    table, rng, now = costs.accelerator(), random.Random(1), 100.0
    limits = PolicyConfig(max_live=100_000, max_utilisation=1e9)
    scheduler = Scheduler(table.model, table.lanes, limits)
    scheduler.capacity = table.rehearsed()
    for number in range(live):
        scheduler.enter(Request(number, f"client {number}", "any", account=f"{number % 4}"), now)
    for stream in scheduler.streams():
        stream.playhead.on_sent(round(rng.uniform(0.2, 2.0) * table.model.sample_rate), now)
    taken = []
    for turn in range(ROUNDS):
        began = time.perf_counter()
        for submit in range(SUBMITS):
            number = live + turn * SUBMITS + submit
            now += 1.0 / rate
            scheduler.submit(Request(number, f"client {number}", "any", account="0"), now)
            scheduler.cancel(number, now)
            scheduler.closed()
            scheduler.events()
        taken.append((time.perf_counter() - began) / SUBMITS * 1e6)
    return statistics.median(taken)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--live", type=int, nargs="+", default=[10, 100, 500, 1500, 3000])
    parser.add_argument("--rate", type=float, default=250.0)
    args = parser.parse_args()
    for live in args.live:
        print(f"{live:>6} live: {microseconds(live, args.rate):7.0f} µs a submit", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
