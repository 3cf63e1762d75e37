"""What a second GPU adds behind one front address, with random weights.

    python bench/gpu/two_gpus.py --haproxy build/haproxy/run

Starts `playhead serve --gpus 0,1 --gateways 4` and before it two addresses, HAProxy with
deploy/haproxy/haproxy.cfg: one leads to the gateways of the first GPU, the other to all. Through
the first the rates of ``--rates`` are tried until one stalls listeners, through the second twice
the rate that held, then a little less while that stalls, or twice the next while it holds. Prints
a row per rate and the ratio; writes two_gpus.json to $OUT, or to --out. Ends within ``--budget``
seconds. Needs two CUDA devices; ``--stand-in`` tries it out without: as many engines and gateways,
and a voice that is a wave.
"""

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import options
from fleet import COMMAND, ROOT, Fleet, fleet, front

STARTS_WITHIN = 240.0
AROUND = 25.0
"""Seconds that a measurement takes beside its window: processes, last utterances, report."""
LESS = (0.8, 0.6, 0.4)
SHARES = (1.95, 1.9, 1.8, 1.6)
CLEAN = ("strict", "lenient")
INVALID = "INVALID"
TTFA = ("p50", "p95")


class GpuMeter:
    """Mean use of each device while it is entered, by nvidia-smi; nothing where there is none."""

    def __enter__(self) -> "GpuMeter":
        self.busy: dict[str, float] = {}
        query = ["nvidia-smi", "--query-gpu=index,utilization.gpu"]
        self._process: subprocess.Popen[str] | None = None
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                [*query, "--format=csv,noheader,nounits", "-lms", "500"],
                stdout=subprocess.PIPE,
                text=True,
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is None:
            return
        self._process.terminate()
        text, _ = self._process.communicate()
        rows: dict[str, list[float]] = {}
        for line in text.splitlines():
            index, _, share = line.partition(",")
            with contextlib.suppress(ValueError):  # a line that was cut off
                rows.setdefault(index.strip(), []).append(float(share))
        self.busy = {index: sum(found) / len(found) / 100 for index, found in rows.items()}


class OutOfTimeError(Exception):
    """``--budget`` does not suffice for another measurement."""


@dataclass
class Bench:
    """Measures while there is time, and keeps the rows."""

    args: argparse.Namespace
    env: dict[str, str]
    servers: Fleet
    until: float
    rows: list[dict[str, Any]]

    def holds(self, what: str, url: str, rate: float) -> bool:
        """Whether a rate holds. When the generator was late it is tried once more."""
        verdict = self.measure(what, url, rate)
        if verdict == INVALID and INVALID not in self.args.verdicts:
            verdict = self.measure(what, url, rate)
        return verdict in self.args.verdicts

    def measure(self, what: str, url: str, rate: float) -> str:
        """The verdict of a rate; empty when the run failed. Raises :class:`OutOfTimeError`."""
        needed = self.args.warmup + self.args.window + AROUND
        if time.monotonic() + needed > self.until:
            raise OutOfTimeError(f"no time is left for {what} at {rate:g}/s")
        row = self._run(what, url, rate, self.args)
        self.rows.append(row)
        show(row)
        self._write()
        return str(row["report"]["verdict"]) if "report" in row else ""

    def warm(self, url: str) -> None:
        """The first utterances after a start are slower."""
        row = self._run("warm", url, self.args.warm_rate, options.briefly(self.args))
        if "failed" in row:
            raise SystemExit(f"nothing is spoken at {url}: {row['failed']}")

    def _run(self, what: str, url: str, rate: float, args: argparse.Namespace) -> dict[str, Any]:
        folder = Path(tempfile.mkdtemp())
        command = [sys.executable, "-c", COMMAND, "bench", "run", "--url", url]
        command += ["--rate", f"{rate:g}", *options.loaded(args), "--texts", "frames"]
        command += ["--out", str(folder), "--processes", str(args.processes)]
        spoken, cpu = self.servers.spoken(), self.servers.cpu_seconds()
        began = time.monotonic()
        with GpuMeter() as meter:
            told = _bounded(command, self.env, self.until - began)
        seconds = time.monotonic() - began
        found = {"what": what, "rate": rate, "seconds": seconds}
        report = folder / "report.json"
        if not report.exists():
            return {**found, "failed": told[-2000:]}
        after = self.servers.cpu_seconds()
        pairs = zip(spoken, self.servers.spoken(), strict=True)
        return {
            **found,
            "spoken": [round(now - before) for before, now in pairs],
            "cores": {kind: (after[kind] - cpu[kind]) / seconds for kind in cpu},
            "busy": meter.busy,
            "report": json.loads(report.read_text(encoding="utf-8"))["rates"][0],
        }

    def _write(self) -> None:
        facts = {
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "settings": vars(self.args),
        }
        facts |= {"start_seconds": self.servers.start_seconds, "rows": self.rows}
        text = json.dumps(facts, indent=1, default=str)
        (self.args.out / "two_gpus.json").write_text(text + "\n", encoding="utf-8")


def _bounded(command: list[str], env: dict[str, str], seconds: float) -> str:
    try:
        done = subprocess.run(
            command,
            env=env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=max(1.0, seconds),
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return f"not done within {late.timeout:.0f} s"
    return done.stdout


HEAD = (
    f"{'':<9} {'rate':>6} {'heard':>6} {'p50':>8} {'p95':>8} {'stalled':>8} {'audio/s':>8}"
    f"  {'verdict':<8} {'spoken':>11}  cores, GPUs busy"
)


def show(row: dict[str, Any]) -> None:
    """One line of the table; TTFA in milliseconds, the audio made a second in seconds."""
    begin = f"{row['what']:<9} {row['rate']:6g}"
    if "failed" in row:
        print(f"{begin}  FAILED {row['failed']}", flush=True)
        return
    report = row["report"]
    ttfa, heard = report["ttfa"], report["strict"]
    ms = " ".join(f"{1e3 * ttfa[p]:8.1f}" if ttfa[p] is not None else "       -" for p in TTFA)
    cores = " ".join(f"{kind} {share:.2f}" for kind, share in row["cores"].items())
    busy = " ".join(f"{share:.0%}" for share in row["busy"].values()) or "-"
    print(
        f"{begin} {heard['utterances']:6d} {ms} {heard['stalled']:8d} {report['audio_rate']:8.1f}"
        f"  {report['verdict']:<8} {'+'.join(map(str, row['spoken'])):>11}  {cores}, {busy}"
        f"{' ' if report['invalid'] else ''}{'; '.join(report['invalid'])}",
        flush=True,
    )


def climb(rates: list[float], holds: Callable[[float], bool]) -> tuple[float, list[float]]:
    """The highest rate that held before one did not, and those from there on."""
    best = 0.0
    for at, rate in enumerate(rates):
        if not holds(rate):
            return best, rates[at:]
        best = rate
    return best, []


def one_device(rates: list[float], holds: Callable[[float], bool]) -> tuple[float, list[float]]:
    """The highest rate that held, less than the first where need be, and those that may not."""
    best, above = climb(rates, holds)
    if not best:
        best = next((share * rates[0] for share in LESS if holds(share * rates[0])), 0.0)
    return best, above


def two_devices(best: float, above: list[float], holds: Callable[[float], bool]) -> float:
    """The highest rate that two hold: twice the best of one and more, else the first share of it
    that they do."""
    if holds(2 * best):
        return climb([2 * rate for rate in above], holds)[0] or 2 * best
    return next((share * best for share in SHARES if holds(share * best)), 0.0)


def compare(bench: Bench, one: str, both: str) -> None:
    """Both addresses, and the ratio of what held."""
    best, above = one_device(bench.args.rates, lambda rate: bench.holds("one GPU", one, rate))
    if not best:
        print("one GPU held none of the rates: nothing to compare with", flush=True)
    start = best or LESS[-1] * bench.args.rates[0]
    found = two_devices(start, above, lambda rate: bench.holds("two GPUs", both, rate))
    if best and found:
        print(f"one GPU {best:g}/s, two GPUs {found:g}/s: {found / best:.2f} times", flush=True)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rates", type=float, nargs="+", default=[120.0, 150.0, 165.0])
    parser.add_argument("--gpus", default="0,1")
    parser.add_argument("--gateways", type=int, default=4, help="of each GPU; 1: no process apart")
    parser.add_argument("--haproxy", help="its program, where it is not installed")
    options.add_server(parser, slots=1536)
    options.add_load(parser, warmup=4.0, window=12.0, processes=12)
    parser.add_argument("--warm-rate", type=float, default=8.0)
    parser.add_argument("--budget", type=float, default=540.0, help="seconds for everything")
    parser.add_argument(
        "--verdicts", nargs="+", choices=(*CLEAN, INVALID), default=CLEAN, help="that hold"
    )
    parser.add_argument("--port", type=int, default=18_100)
    parser.add_argument("--stand-in", action="store_true", help="no GPUs, and a wave")
    args = parser.parse_args()
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    return args


def main() -> None:
    """Measure and print."""
    args = arguments()
    until = time.monotonic() + args.budget
    env = options.environment(ROOT / "tests")
    with contextlib.ExitStack() as stack:
        within = min(STARTS_WITHIN, args.budget)
        servers = stack.enter_context(fleet(args, env, within))
        one, name = stack.enter_context(front(args, servers.gpus[0], 1))
        both, _ = stack.enter_context(front(args, servers.nodes, 2))
        print(f"ready after {servers.start_seconds:.0f} s behind {name}", flush=True)
        bench = Bench(args, env, servers, until, [])
        bench.warm(both)
        print(HEAD, flush=True)
        try:
            compare(bench, one, both)
        except OutOfTimeError as end:
            print(end, flush=True)


if __name__ == "__main__":
    main()
