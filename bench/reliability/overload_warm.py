#!/usr/bin/env python3
"""More demand than the bundled voice can meet, over real sockets, from a server that is warm.

    bench/reliability/overload_warm.py [--rate 22] [--seconds 60] [--seeds 0 1] [--bound 0.001]

A server of our own speaks at a quarter of ``--rate`` for ten seconds, then ``--rate`` utterances a
second are asked for (Poisson, strict listeners who start at their first sample). Counted is what
comes after the step. Prints what was let in, refused and stalled; status 1 where more than
``--bound`` of those let in stalled. Half a minute more than ``--seconds`` for each seed.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

WARM = 10.0
"""Seconds at a quarter of the rate, not counted."""

COMMAND = "from playhead.gateway.cli import main; raise SystemExit(main())"


def arrivals(rate: float, seconds: float, seed: int) -> list[float]:
    """The first is at 0: a trace is shifted so."""
    rng, out, now = random.Random(f"warm {seed}"), [0.0], 0.0
    while (now := now + rng.expovariate(rate / 4)) < WARM:
        out.append(now)
    now = WARM
    while (now := now + rng.expovariate(rate)) < WARM + seconds:
        out.append(now)
    return out


def run(rate: float, seconds: float, seed: int, folder: Path) -> tuple[int, int, int]:
    """Utterances that were let in, those refused, and those of the first that stalled."""
    trace = folder / "trace.txt"
    trace.write_text("\n".join(f"{at:.4f}" for at in arrivals(rate, seconds, seed)) + "\n")
    command = [sys.executable, "-c", COMMAND, "bench", "run", "--mix", "strict"]
    command += ["--arrivals", "trace", "--trace", str(trace), "--rate", f"{rate:g}"]
    command += ["--seeds", str(seed), "--warmup", f"{WARM:g}", "--window", f"{seconds:g}"]
    command += ["--out", str(folder), "--serve", "--lead", "learned:1.5"]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    report = folder / "report.json"
    if not report.exists():
        raise SystemExit(done.stdout + done.stderr)
    print(done.stdout, flush=True)
    row = json.loads(report.read_text(encoding="utf-8"))["rates"][0]
    refused = row["faults"].get("overloaded", 0)
    return row["strict"]["utterances"], refused, row["strict"]["stalled"]


def tell(who: str, counts: Sequence[int]) -> None:
    """One line."""
    let_in, refused, stalled = counts
    share = stalled / max(1, let_in)
    print(f"{who}: {let_in} let in, {refused} refused, {stalled} stalled ({share:.2%})", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=22.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--bound", type=float, default=0.001)
    args = parser.parse_args()
    total = [0, 0, 0]
    for seed in args.seeds:
        with tempfile.TemporaryDirectory() as folder:
            counts = run(args.rate, args.seconds, seed, Path(folder))
        total = [sum(pair) for pair in zip(total, counts, strict=True)]
        tell(f"seed {seed}", counts)
    tell(f"{args.rate:g}/s", total)
    share = total[2] / max(1, total[0])
    return 0 if share <= args.bound else 1


if __name__ == "__main__":
    sys.exit(main())
