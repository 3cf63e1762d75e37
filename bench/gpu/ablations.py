"""What each part of the design is worth: one rate, one server, one thing changed at a time.

    python bench/gpu/ablations.py --rate 150 --gateways 4 --variants lanes ahead
    python bench/gpu/ablations.py --rate 120 --gateways 4 --variants signals
    python bench/gpu/ablations.py --gateways 4 --variants base@200:0,1,2 one-stream@200 base@1
    python bench/gpu/ablations.py --rate 150 --gateways 4 --variants base --start flat

Starts `playhead serve --model qwen3-tts` with random weights (60 to 100 s) and, without starting
it anew, measures each variant with the same arrivals and listeners (warm-up, window and what is
still in flight: about 35 s each). NAME@RATE or NAME@RATE:SEED,SEED is a variant at a rate or with
seeds of its own. A group names several variants:

    lanes    base, one-stream (all lanes on one stream of the device), serial (and one at a time)
    signals  none, estimated and reported playheads with leads of 1 and 1.5 s, learned leads; the
             listeners are not ideal: thresholds, clocks, pauses, 15 % on shaky networks
    ramps    chunk sizes that begin with 1, 2, 4, 8 or 16 frames, or stay at 1 or at 4
    ahead    frames that the device makes ahead of the host: none, one, two, more with the crowd

What a running server cannot change is chosen by --start, a server of its own each: lanes, flat
(lanes without priority), partitions-16, -24, -32, -48, -64 (so many multiprocessors for the
background lane alone, the LM lane on the others), partitions-auto (one of several such parts, by
load), background-96, -128 (up to so many chunks in a batch of that lane), codec-library,
codec-fp16, codec-bf16-plain, codec-fp32.
--repeat 2 measures all variants twice, in turn. Prints a table; writes ablations-START.json to
$OUT, or to --out. Needs CUDA.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import host_profile
import options
import serve_rate
import source_tree

source_tree.link()

from ablated import SIDES, STARTS, Variant  # noqa: E402

BENCH = Path(__file__).resolve().parent
PLAYHEAD = serve_rate.COMMAND
SERVER = f"""import sys
sys.path.insert(0, {str(BENCH)!r})
if not {{"--engine", "--gateways"}} & set(sys.argv):  # the processes of engine and model
    import ablated
    ablated.install()
{PLAYHEAD}"""
APPLIED_WITHIN = 10.0


@dataclass(frozen=True)
class Case:
    """A variant and who listens to it."""

    variant: Variant
    mix: str = "strict"


def _signal(urgency: str, lead: str) -> Case:
    return Case(Variant(urgency=urgency, lead=lead), "shaky")


CASES = {
    "base": Case(Variant()),
    "one-stream": Case(Variant(one_stream=True)),
    "serial": Case(Variant(one_stream=True, workers=1)),
    **{
        f"{urgency}-{lead}": _signal(urgency, lead)
        for lead in ("1", "1.5")
        for urgency in ("none", "estimated", "reported")
    },
    **{lead: _signal("reported", lead) for lead in ("learned:1.2", "learned")},
    "ramp-2": Case(Variant(ladder=(2, 4, 8, 16))),
    "ramp-4": Case(Variant(ladder=(4, 8, 16))),
    "ramp-8": Case(Variant(ladder=(8, 16))),
    "always-1": Case(Variant(ladder=(1,))),
    "always-4": Case(Variant(ladder=(4,))),
    "always-16": Case(Variant(ladder=(16,))),
    "ahead-0": Case(Variant(extra=((1 << 20, 0),))),
    "ahead-2": Case(Variant(extra=((32, 2),))),
    "ahead-grows": Case(Variant(extra=((128, 2), (32, 1)))),
    "ahead-256": Case(Variant(extra=((256, 2), (32, 1)))),
    "switch-0.1": Case(Variant(switch=1e-4)),
    "switch-0.02": Case(Variant(switch=2e-5)),
    "ahead-3": Case(Variant(extra=((256, 3), (128, 2), (32, 1)))),
}
GROUPS = {
    "lanes": ("base", "one-stream", "serial"),
    "signals": tuple(name for name, case in CASES.items() if case.mix == "shaky"),
    "ramps": ("base", "ramp-2", "ramp-4", "ramp-8", "always-16", "always-4", "always-1"),
    "ahead": ("ahead-0", "base", "ahead-2", "ahead-grows", "ahead-3"),
}
LANES = ("lm", "background", "urgent")


def chosen(
    args: argparse.Namespace, parser: argparse.ArgumentParser
) -> list[tuple[str, argparse.Namespace]]:
    """Names of cases, groups written out, each with the settings of its load."""
    out: list[tuple[str, argparse.Namespace]] = []
    for wanted in args.variants:
        name, _, load = wanted.partition("@")
        rate, _, seeds = load.partition(":")
        if name not in GROUPS and name not in CASES:
            parser.error(f"{name} is no variant: {', '.join([*GROUPS, *CASES])}")
        own = {"rate": float(rate or args.rate), "seeds": seeds or args.seeds}
        settings = argparse.Namespace(**{**vars(args), **own})
        out += [(one, settings) for one in GROUPS.get(name, (name,))]
    return out


def switch(path: Path, name: str, case: Case) -> None:
    """Tell the server, and wait until it has obeyed."""
    # The time makes every order another: the same variant may come twice.
    text = json.dumps({"name": name, "at": time.time(), **asdict(case.variant)}) + "\n"
    path.write_text(text, encoding="utf-8")
    done = [path.with_suffix(f".{side}") for side in SIDES]
    until = time.monotonic() + APPLIED_WITHIN
    while not all(side.exists() and side.read_text(encoding="utf-8") == text for side in done):
        if time.monotonic() > until:
            raise SystemExit(f"the server did not take variant {name}")
        time.sleep(0.05)


def measure(
    server: serve_rate.Server,
    case: Case,
    args: argparse.Namespace,
    env: dict[str, str],
    within: float | None = None,
) -> Any:
    """Figures of one load, which is given up after ``within`` seconds."""
    folder = Path(tempfile.mkdtemp())
    command = [
        sys.executable,
        "-c",
        "from playhead.gateway.cli import main; raise SystemExit(main())",
    ]
    command += ["bench", "run", "--url", server.url, "--rate", str(args.rate)]
    command += [*options.loaded(args), "--texts", "frames", "--mix", case.mix]
    command += ["--out", str(folder), "--processes", str(args.processes)]
    began = time.monotonic()
    with serve_rate.GpuMeter() as gpu, host_profile.Meter(lambda: server.processes) as host:
        told = bounded(command, env, within).text
    seconds = time.monotonic() - began
    report = folder / "report.json"
    if not report.exists():
        return {"failed": told[-2000:]}
    row = json.loads(report.read_text(encoding="utf-8"))["rates"][0]
    spent = host_profile.busiest(host.samples, args.window)
    used = host_profile.figures(*spent, row["server"])
    return {"seconds": seconds, **used, **gpu.figures, **row}


class Told(NamedTuple):
    """What a program said, and how it ended."""

    text: str
    status: int


def bounded(
    command: list[str], env: dict[str, str], within: float | None, folder: Path | None = None
) -> Told:
    """A program that is ended after ``within`` seconds, with all that it has started."""
    process = subprocess.Popen(
        command,
        env=env,
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
        return Told(f"{text}\nnot done within {within:.0f} s", 1)
    return Told(text, process.returncode)


HEAD = (
    "variant         rate  heard TTFA p50     p95 stalled  worst    C100  held  peak  cores"
    "   GPU  lm, background, urgent busy; batch"
)


def show(name: str, row: dict[str, Any]) -> None:
    """One line of the table."""
    if "failed" in row:
        print(f"{name:14} {row['rate']:5g} FAILED {row['failed']}", flush=True)
        return
    heard, ttfa, told = row["listener"], row["ttfa"], row["server"]
    ms = [f"{1e3 * ttfa[p]:7.1f}" if ttfa[p] is not None else "      -" for p in ("p50", "p95")]
    label = '{{lane="{}"}}'
    busy = [told.get("playhead_lane_busy_seconds_total" + label.format(lane), 0) for lane in LANES]
    done = told.get("playhead_lane_batch_sum" + label.format("lm"), 0)
    steps = told.get("playhead_lane_batch_count" + label.format("lm"), 0) or 1
    worst, held, c100 = heard["worst"] or 0.0, row["held"] or 0.0, heard["c100"] or 0.0
    print(
        f"{name:14} {row['rate']:5g} {heard['utterances']:6d} {ms[0]} {ms[1]} {heard['stalled']:7d}"
        f" {1e3 * worst:6.0f} {c100:7.4f} {held:5.2f} {row['peak_in_flight']:5d}"
        f" {row['cores']:6.2f}"
        f" {row['gpu_busy']:5.0%}  {' '.join(f'{share:4.0%}' for share in busy)}"
        f" {done / steps:5.0f}  {row['verdict']}{'' if not row['faults'] else row['faults']}",
        flush=True,
    )


@dataclass
class Running:
    """A server that takes variants, and the file that tells it which."""

    server: serve_rate.Server
    order: Path
    env: dict[str, str]

    def measure(
        self, name: str, load: argparse.Namespace, within: float | None = None
    ) -> dict[str, Any]:
        """Figures of a variant under ``load``."""
        switch(self.order, name, CASES[name])
        row = measure(self.server, CASES[name], load, self.env, within)
        return {"variant": name, "rate": load.rate, **row}

    def facts(self) -> dict[str, Any]:
        """Of the server."""
        return {**self.server.about(), "machine_cores": os.cpu_count()}


@contextlib.contextmanager
def running(args: argparse.Namespace, start: str, within: float = 400.0) -> Iterator[Running]:
    """A server started as ``start``, warm. ``within`` seconds it must be ready."""
    order = Path(tempfile.mkdtemp()) / "variant.json"
    env = options.environment() | {"ABLATION": str(order), "ABLATION_START": start}
    serve_rate.COMMAND, serve_rate.START_WITHIN = SERVER, within
    flags = [*options.served(args), *args.flags.split()]
    server = serve_rate.Server.start(flags, env, args.out, sample=False, gateways=args.gateways)
    took = f"ready after {server.start_seconds:.0f} s"
    print(f"{serve_rate.named(server.about())}, started as {start}: {took}", flush=True)
    try:
        measure(server, CASES["base"], options.briefly(args, rate=5.0), env)
        yield Running(server, order, env)
    finally:
        server.stop()


def arguments() -> tuple[argparse.Namespace, list[tuple[str, argparse.Namespace]]]:
    """What is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, default=120.0, help="near the knee")
    parser.add_argument("--variants", nargs="+", default=["lanes"])
    parser.add_argument("--start", choices=STARTS, default="lanes")
    parser.add_argument("--repeat", type=int, default=1)
    options.add_server(parser, slots=1500)
    options.add_gateways(parser)
    options.add_load(parser, warmup=5.0, window=15.0, processes=8)
    args = parser.parse_args()
    return args, chosen(args, parser) * args.repeat


def main() -> None:
    """Measure and print."""
    args, names = arguments()
    rows: list[dict[str, Any]] = []
    with running(args, args.start) as server:
        print(HEAD)
        for name, load in names:
            row = server.measure(name, load)
            rows.append({"start": args.start, **row})
            show(name, rows[-1])
            facts = {**server.facts(), "settings": vars(args)}
            text = json.dumps({**facts, "rows": rows}, indent=1, default=str)
            out = args.out / f"ablations-{args.start}.json"
            out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
