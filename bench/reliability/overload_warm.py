#!/usr/bin/env python3
"""More demand than the bundled voice can meet, over real sockets, from a server that is warm.

    bench/reliability/overload_warm.py [--rates 12 22] [--seconds 60] [--seeds 0 1] [--keys 4]

For each rate and seed a server of our own speaks at a quarter of the rate for ten seconds, then so
many utterances a second are asked for (Poisson, strict listeners who start at their first sample).
Counted is what comes after the step. Ten more seconds at a quarter of the rate show how soon nobody
is refused any more. With ``--keys`` so many accounts ask for as much each, from a process each.
Prints what was let in, refused and stalled, the speech made a second, by account, and which stalls
came while a thread lacked a core for longer than usual (waits.py). Status 1 where more than
``--bound`` of those let in stalled at the last rate, less than 95 % of the speech of the best rate
was made there, or somebody was refused later than five seconds after it. Twenty-five seconds more
than ``--seconds`` for each run.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from playhead.loadgen.record import Record, Run, load
from playhead.loadgen.servers import serving
from waits import Cores, Waits

WARM = 10.0
"""Seconds at a quarter of the rate, not counted."""

AFTER = 10.0
"""Seconds at a quarter of the rate when the overload is over, not counted."""

RECOVERED = 5.0
"""Seconds after the overload from which nobody is to be refused."""

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
    recovered: float = 0.0  # seconds after the overload at which somebody was refused last
    uneven: float = 0.0  # by how much of it an account's speech was off the mean at the most

    def add(self, other: "Counts") -> None:
        """Take another run in."""
        self.recovered = max(self.recovered, other.recovered)
        self.uneven = max(self.uneven, other.uneven)
        for name in ("let_in", "refused", "stalled", "no_core", "made", "runs"):
            setattr(self, name, vars(self)[name] + vars(other)[name])

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
            f"lacked a core; {self.goodput:.1f} s of speech a second, shares {self.uneven:.1%} "
            f"off the mean; last refusal {self.recovered:.1f} s after the overload"
        )


def arrivals(rate: float, seconds: float, seed: int, key: int = 0) -> list[float]:
    """The first is at 0: a trace is shifted so."""
    rng, out, now = random.Random(f"warm {seed}" + f" {key}" * (key > 0)), [0.0], 0.0
    spans = ((0.0, WARM, rate / 4), (WARM, WARM + seconds, rate))
    for begin, end, pace in (*spans, (WARM + seconds, WARM + seconds + AFTER, rate / 4)):
        now = begin
        while (now := now + rng.expovariate(pace)) < end:
            out.append(now)
    return out


def run(rate: float, seconds: float, seed: int, folder: Path, keys: int) -> Counts:
    """One server, one seed."""
    flags = ["--lead", "learned:1.5"]
    secrets = {"": ""}
    if keys:
        secrets = {name: _key(folder, name) for name in map(str, range(keys))}
        flags += ["--keys", str(folder / "keys")]
    waits, cores = Waits(), Cores()
    with waits.watching(), serving(flags) as url:
        benches = []
        for number, (name, secret) in enumerate(secrets.items()):
            times = arrivals(rate / max(1, keys), seconds, seed, number)
            command = _bench(url, times, seconds, seed + 1_000 * number, folder / name)
            command += ["--key-from", "BENCH_KEY"] if name else []
            environment = os.environ | {"BENCH_KEY": secret}
            benches.append(subprocess.Popen(command, text=True, env=environment))
        for bench in benches:
            bench.wait()
    print(cores.told(), flush=True)
    raws = [load(next((folder / name).glob("strict-rate-*.jsonl*"))) for name in secrets]
    return counted(raws, seconds, waits)


def _key(folder: Path, name: str) -> str:
    """The secret of a new key."""
    command = [sys.executable, "-c", COMMAND, "keys", "add", "--name", name]
    command += ["--connections", "1000", "--streams", "1000"]
    command += ["--characters-per-minute", "100000000", "--keys", str(folder / "keys")]
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    return done.stdout.split()[-1]


def _bench(url: str, times: Sequence[float], seconds: float, seed: int, folder: Path) -> list[str]:
    """The command of one process that asks and listens."""
    folder.mkdir(parents=True, exist_ok=True)
    trace = folder / "trace.txt"
    trace.write_text("\n".join(f"{at:.4f}" for at in times) + "\n")
    command = [sys.executable, "-c", COMMAND, "bench", "run", "--mix", "strict", "--url", url]
    command += ["--arrivals", "trace", "--trace", str(trace), "--rate", "1"]
    command += ["--seeds", str(seed), "--warmup", f"{WARM:g}", "--window", f"{seconds + AFTER:g}"]
    return [*command, "--out", str(folder)]


def counted(raws: Sequence[Run], seconds: float, waits: Waits) -> Counts:
    """What came of the overload itself, which is all that is counted, and how soon it was over."""
    end = WARM + seconds
    records = [each for raw in raws for each in raw.records if each.intended >= WARM]
    asked = [each for each in records if each.intended < end]
    stalled = [each for each in asked if each.stalls]
    refused = [each for each in records if each.fault == "overloaded"]
    made = [sum(heard(each, end) for each in raw.records) / seconds for raw in raws]
    mean = sum(made) / len(made)
    return Counts(
        let_in=sum(bool(each.chunks) for each in asked),
        refused=sum(each.intended < end for each in refused),
        stalled=len(stalled),
        no_core=sum(tell_stalls(each, waits) for each in stalled),
        made=sum(made),
        runs=1,
        recovered=max([0.0, *(each.intended - end for each in refused)]),
        uneven=max(abs(each / mean - 1.0) for each in made),
    )


def heard(record: Record, end: float) -> float:
    """Seconds of its speech that came while there was an overload, until ``end``."""
    return sum(each.samples for each in record.chunks if WARM <= each.at < end) / max(
        1, record.sample_rate
    )


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
    parser.add_argument("--keys", type=int, default=0, help="accounts (0: no keys)")
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
                counts = run(rate, args.seconds, seed, folder, args.keys)
            print(f"{rate:g}/s, seed {seed}: {counts.told()}", flush=True)
            rows[-1].add(counts)
    for rate, row in zip(args.rates, rows, strict=True):
        print(f"{rate:g}/s: {row.told()}")
    best = max(row.goodput for row in rows)
    print(f"at {args.rates[-1]:g}/s {rows[-1].goodput / best:.1%} of the best rate's speech")
    last = rows[-1]
    kept = last.goodput >= GOODPUT * best and last.recovered <= RECOVERED
    return 0 if kept and last.share <= args.bound else 1


if __name__ == "__main__":
    sys.exit(main())
