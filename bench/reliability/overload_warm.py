#!/usr/bin/env python3
"""More demand than the bundled voice can meet, over real sockets, from a server that is warm.

    bench/reliability/overload_warm.py [--rates 12 22] [--seconds 60] [--seeds 0 1] [--out DIR]

For each rate and seed a server of our own speaks at a quarter of the rate for ten seconds, then so
many utterances a second are asked for (Poisson, strict listeners who start at their first sample).
Counted is what comes after the step. Prints what was let in, refused and stalled, the speech made a
second, and which stalls came while a thread lacked a core for longer than usual (waits.py). Status
1 where more than ``--bound`` of those let in stalled at the last rate, or less than 95 % of the
speech of the best rate was made there. Fifteen seconds more than ``--seconds`` for each run.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from playhead.loadgen.record import Record, Run, load
from waits import Cores, Waits

WARM = 10.0
"""Seconds at a quarter of the rate, not counted."""

GOODPUT = 0.95
"""Share of the best rate's speech that is to be made beyond it."""

COMMAND = "from playhead.gateway.cli import main; raise SystemExit(main())"


@dataclass
class Counts:
    """What came of one rate. ``made``: seconds of speech that came in the window, for each
    second of it, all runs together."""

    let_in: int = 0
    refused: int = 0
    stalled: int = 0
    no_core: int = 0  # of the stalled, those whose every stall came while a thread lacked a core
    made: float = 0.0
    runs: int = 0

    def add(self, other: "Counts") -> None:
        """Take another run in."""
        for name, value in vars(other).items():
            setattr(self, name, vars(self)[name] + value)

    @property
    def goodput(self) -> float:
        """Seconds of speech a second."""
        return self.made / max(1, self.runs)

    @property
    def share(self) -> float:
        """Of those let in that stalled."""
        return self.stalled / max(1, self.let_in)

    def told(self) -> str:
        """One line."""
        asked = self.let_in + self.refused
        return (
            f"{self.let_in} let in, {self.refused} refused ({self.refused / max(1, asked):.1%}), "
            f"{self.stalled} stalled ({self.share:.2%}), {self.no_core} of them while a thread "
            f"lacked a core; {self.goodput:.1f} s of speech a second"
        )


def arrivals(rate: float, seconds: float, seed: int) -> list[float]:
    """The first is at 0: a trace is shifted so."""
    rng, out, now = random.Random(f"warm {seed}"), [0.0], 0.0
    while (now := now + rng.expovariate(rate / 4)) < WARM:
        out.append(now)
    now = WARM
    while (now := now + rng.expovariate(rate)) < WARM + seconds:
        out.append(now)
    return out


def run(rate: float, seconds: float, seed: int, folder: Path) -> Counts:
    """One server, one seed."""
    trace = folder / "trace.txt"
    trace.write_text("\n".join(f"{at:.4f}" for at in arrivals(rate, seconds, seed)) + "\n")
    command = [sys.executable, "-c", COMMAND, "bench", "run", "--mix", "strict"]
    command += ["--arrivals", "trace", "--trace", str(trace), "--rate", f"{rate:g}"]
    command += ["--seeds", str(seed), "--warmup", f"{WARM:g}", "--window", f"{seconds:g}"]
    command += ["--out", str(folder), "--serve", "--lead", "learned:1.5"]
    waits, cores = Waits(), Cores()
    with waits.watching():
        done = subprocess.run(command, text=True, capture_output=True, check=False)
    report = folder / "report.json"
    if not report.exists():
        raise SystemExit(done.stdout + done.stderr)
    print(done.stdout + cores.told(), flush=True)
    row = json.loads(report.read_text(encoding="utf-8"))["rates"][0]
    raw = load(next(folder.glob(f"strict-rate-{rate:g}-seed-{seed}.jsonl*")))
    refused = row["faults"].get("overloaded", 0)
    stalled = [each for each in raw.counted if each.stalls]
    excused = sum(tell_stalls(each, waits) for each in stalled)
    return Counts(
        row["strict"]["utterances"], refused, row["strict"]["stalled"], excused, made(raw), 1
    )


def made(raw: Run) -> float:
    """Seconds of speech that came in the window, for each second of it."""
    begin, end = raw.window
    heard = sum(
        chunk.samples / each.sample_rate
        for each in raw.records
        for chunk in each.chunks
        if begin <= chunk.at < end
    )
    return heard / (end - begin)


def tell_stalls(record: Record, waits: Waits) -> bool:
    """Print where and why it ran dry; whether a thread lacked a core each time."""
    offset, began = record.offset or 0.0, record.first_playable or 0.0
    excused = True
    for stall in record.stalls:
        dry = stall.start + offset
        no_core = waits.explains(dry, stall.length)
        excused = excused and no_core
        excess = waits.excess(dry - 0.5, dry + stall.length)
        print(
            f"  at {stall.start:.3f} s utterance {record.number} was dry for "
            f"{1e3 * stall.length:.1f} ms, {stall.start - began:.2f} s after its first sound; "
            f"a thread waited for a core {1e3 * excess:+.0f} ms more than usual"
        )
    return excused


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rates", "--rate", type=float, nargs="+", default=[12.0, 22.0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--bound", type=float, default=0.001)
    parser.add_argument("--out", type=Path, help="folder for the raw records (none: thrown away)")
    args = parser.parse_args()
    rows: list[Counts] = []
    for rate in args.rates:
        rows.append(Counts())
        for seed in args.seeds:
            with tempfile.TemporaryDirectory() as made_up:
                folder = args.out / f"{rate:g}-{seed}" if args.out else Path(made_up)
                folder.mkdir(parents=True, exist_ok=True)
                counts = run(rate, args.seconds, seed, folder)
            print(f"{rate:g}/s, seed {seed}: {counts.told()}", flush=True)
            rows[-1].add(counts)
    for rate, row in zip(args.rates, rows, strict=True):
        print(f"{rate:g}/s: {row.told()}")
    best = max(row.goodput for row in rows)
    print(f"at {args.rates[-1]:g}/s {rows[-1].goodput / best:.1%} of the best rate's speech")
    return 0 if rows[-1].share <= args.bound and rows[-1].goodput >= GOODPUT * best else 1


if __name__ == "__main__":
    sys.exit(main())
