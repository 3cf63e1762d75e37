"""Everything about one device that is still to be measured, in order of worth, within a budget.

    python bench/gpu/outstanding.py --budget 540
    python bench/gpu/outstanding.py --budget 300 lanes/base@250 codec-buckets
    python bench/gpu/outstanding.py --dry-run --budget 540

Measures the pieces named, or all, one after the other, leaving out what would not end in time, and
says at the end which are left, to be named in the next call. START/VARIANT@RATE or …@RATE:SEED,SEED
is a variant of ablations.py on a server started so; what shares a start shares a server. The other
pieces: ``gpu-tests`` (tests/gpu), ``beside-N`` (what lanes of a crowd of 256 cost each other with N
multiprocessors for the background lane, by roofline.py; 0: shared), ``limits-1.7b`` and
``limits-0.6b`` (each part of each lane beside the device's limit, by roofline.py) and
``codec-buckets`` (codec_buckets.py, own kernels). After each
piece outstanding.json (all rows so far, everything that was told of them) and outstanding.txt (the
table) are written anew to $OUT, or to --out; so whatever ends this program costs one piece.
``--dry-run`` measures nothing, takes no time, and shows what a call would do. Needs CUDA.
"""

import argparse
import contextlib
import io
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import ablations
import host_profile
import options
from source_tree import ROOT

TESTS, CODEC = "gpu-tests", "codec-buckets"
BESIDE = {f"beside-{size}": str(size) for size in (0, 24, 48, 64)}
LIMITS = {f"limits-{size}": f"random:{size}" for size in ("1.7b", "0.6b")}
ALONE = {TESTS: 200.0, CODEC: 75.0, **dict.fromkeys(BESIDE, 45.0), **dict.fromkeys(LIMITS, 50.0)}
"""Pieces that need no server, and about how many seconds they take."""
COLD, WARM = 60.0, 35.0
"""Seconds until a server is warm: where kernels are still to be compiled, and later. As measured on
one H200 it is ready after 39 to 47 s and 14 to 19 s; parts to choose from take longer."""
LOAD, WINDOW = 34.0, 31.0
"""Seconds of a load with one window, and with each further one."""
ENOUGH = 1.6
"""Times the estimate after which a piece is given up: it must not cost the others."""
STOPS = 8.0
"""Seconds that a server takes to end."""

ORDER = (
    TESTS,
    *("background-128/base@400", "background-128/base@250:0,1,2", "lanes/base@400:0,1"),
    *("lanes/base@225:0,1,2", "lanes/base@200:0,1,2"),
    *(f"lanes/{name}@200" for name in ("none-1", "estimated-1", "reported-1", "learned")),
    *(f"lanes/{name}@200" for name in ("ramp-4", "always-16", "always-4", "always-1")),
    *("codec-library/base@200", *LIMITS, *BESIDE, CODEC),
)
"""What the fewest words of the documentation rest on comes last."""


class Piece(NamedTuple):
    """Something to measure. ``start``: the server that it needs, if any."""

    name: str
    start: str = ""
    variant: str = ""
    rate: float = 0.0
    seeds: str = "0"

    @property
    def seconds(self) -> float:
        """About how long it takes on a server that is warm."""
        return ALONE.get(self.name, LOAD + WINDOW * self.seeds.count(","))


def piece(name: str) -> Piece:
    """As named. Raises ValueError, saying what there is."""
    if name in ALONE:
        return Piece(name)
    start, _, rest = name.partition("/")
    variant, _, load = rest.partition("@")
    rate, _, seeds = load.partition(":")
    if start not in ablations.STARTS:
        known = ", ".join((*ALONE, *ablations.STARTS))
        raise ValueError(f"{name}: {start} is no way to start: {known}")
    if variant not in ablations.CASES:
        known = ", ".join(ablations.CASES)
        raise ValueError(f"{name}: {variant or 'nothing'} is no variant: {known}")
    if not rate.replace(".", "", 1).isdigit():
        raise ValueError(f"{name}: name a rate, for instance {start}/{variant}@200")
    return Piece(name, start, variant, float(rate), seeds or "0")


@dataclass
class Costs:
    """What has been learnt about how long things take on this machine."""

    cold: bool = True
    """No server has been started yet."""
    factor: float = 1.0
    """Of estimates, from the pieces measured so far."""

    def of(self, wanted: Piece, serving: str) -> float:
        """Seconds that ``wanted`` takes, ``serving`` being the server that runs ("": none)."""
        seconds = wanted.seconds * self.factor
        if wanted.start != serving:
            seconds += STOPS if serving else 0.0
            seconds += (COLD if self.cold else WARM) if wanted.start else 0.0
        return seconds + (STOPS if wanted.start else 0.0)

    def learn(self, done: Piece, seconds: float) -> None:
        """``done`` took so long, without its server's start."""
        if done.start:
            self.factor = max(1.0, self.factor / 2 + seconds / done.seconds / 2)


def choose(left: Sequence[Piece], remaining: float, serving: str, costs: Costs) -> Piece | None:
    """The first of ``left`` that ends within ``remaining`` seconds, if any does."""
    return next((one for one in left if costs.of(one, serving) <= remaining), None)


class Bench(Protocol):
    """Who measures."""

    def now(self) -> float:
        """Seconds, from anywhere on."""

    def start(self, start: str, within: float) -> None:
        """Have a server that was started so, and no other; "": none."""

    def measure(self, wanted: Piece, within: float) -> dict[str, Any]:
        """Figures, or ``failed`` and why."""


@dataclass
class Campaign:
    """Measures pieces while there is time."""

    bench: Bench
    left: list[Piece]
    until: float
    keep: Callable[[list[dict[str, Any]], list[Piece]], None]
    """Is given all rows so far, and what is left."""
    costs: Costs = field(default_factory=Costs)
    rows: list[dict[str, Any]] = field(default_factory=list)
    serving: str = ""

    def run(self) -> None:
        """Measure all that fits."""
        try:
            while (wanted := self._next()) is not None:
                self.left.remove(wanted)
                self.rows.append({"piece": wanted.name, **self._one(wanted)})
                self.keep(self.rows, self.left)
        finally:
            self._serve("", STOPS)

    def _next(self) -> Piece | None:
        remaining = self.until - self.bench.now()
        return choose(self.left, remaining, self.serving, self.costs)

    def _one(self, wanted: Piece) -> dict[str, Any]:
        """A piece that fails takes its server with it: the next one starts anew."""
        try:
            self._serve(wanted.start, self._within((COLD if self.costs.cold else WARM) * ENOUGH))
            began = self.bench.now()
            row = self.bench.measure(wanted, self._within(wanted.seconds * ENOUGH))
        except (RuntimeError, OSError, ValueError, KeyError, SystemExit) as fault:
            row = {"failed": str(fault)[-2000:]}
        if "failed" in row:
            self._serve("", STOPS)
            return row
        took = self.bench.now() - began
        self.costs.learn(wanted, took)
        return {**row, "took": took}

    def _serve(self, start: str, within: float) -> None:
        if start == self.serving:
            return
        self.serving = ""
        self.bench.start(start, within)
        self.serving = start
        self.costs.cold &= not start

    def _within(self, seconds: float) -> float:
        return max(1.0, min(seconds, self.until - self.bench.now()))


# -- on a device ----------------------------------------------------------------------------------


class Device:
    """The device of this machine."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._stack = contextlib.ExitStack()
        self._server: ablations.Running | None = None

    def now(self) -> float:
        """See :class:`Bench`."""
        return time.monotonic()

    def start(self, start: str, within: float) -> None:
        """See :class:`Bench`. What servers log is kept one after the other in servers.log."""
        self._server = None
        self._stack.close()
        if not start:
            return
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        self._stack.callback(_keep_log, folder / "server.log", self._args.out, start)
        args = argparse.Namespace(**{**vars(self._args), "out": folder})
        self._server = self._stack.enter_context(ablations.running(args, start, within))

    def measure(self, wanted: Piece, within: float) -> dict[str, Any]:
        """See :class:`Bench`."""
        if wanted.name == TESTS:
            command = ["-m", "pytest", "--tb=short", "--durations=8", "tests/gpu"]
            return self._program(command, within)
        if wanted.name == CODEC:
            command = ["bench/gpu/codec_buckets.py", "--variants", "own"]
            return self._program(command, within, "codec_buckets.json")
        if wanted.name in BESIDE:
            command = ["bench/gpu/roofline.py", "--parts", "together", "--crowds", "256"]
            command += ["--partition", BESIDE[wanted.name]]
            return self._program(command, within, "roofline.json")
        if wanted.name in LIMITS:
            command = ["bench/gpu/roofline.py", "--parts", "alone", "--weights"]
            command += [LIMITS[wanted.name], "--batches", "1", "64", "512", "1024"]
            return self._program(command, within, "roofline.json")
        assert self._server is not None
        load = {**vars(self._args), "rate": wanted.rate, "seeds": wanted.seeds}
        row = self._server.measure(wanted.variant, argparse.Namespace(**load), within)
        return {**row, **self._server.facts()}

    def _program(self, command: list[str], within: float, report: str = "") -> dict[str, Any]:
        """What a program of the repository says, and what it has written into ``report``."""
        env = options.environment() | {"OUT": str(self._args.out)}
        written = self._args.out / report
        if report:
            written.unlink(missing_ok=True)
        told = ablations.bounded([sys.executable, *command], env, within, ROOT)
        found = {"report": json.loads(written.read_text())} if report and written.exists() else {}
        end = told.text[-4000:]
        return {**found, "told" if told.status == 0 else "failed": end or "no word"}


def _keep_log(log: Path, out: Path, start: str) -> None:
    with (
        contextlib.suppress(OSError),
        (out / "servers.log").open("a", encoding="utf-8") as all_logs,
    ):
        all_logs.write(f"--- {start}\n{log.read_text(encoding='utf-8')[-500_000:]}\n")


@dataclass
class Dry:
    """No device: everything takes as long as estimated, in no time."""

    at: float = 0.0
    cold: bool = True

    def now(self) -> float:
        """See :class:`Bench`."""
        return self.at

    def start(self, start: str, within: float) -> None:
        """See :class:`Bench`."""
        self.at += (COLD if self.cold else WARM) if start else STOPS
        self.cold &= not start

    def measure(self, wanted: Piece, within: float) -> dict[str, Any]:
        """See :class:`Bench`."""
        self.at += wanted.seconds
        return {"dry": True, "rate": wanted.rate}


# -- what is kept ---------------------------------------------------------------------------------


def line(row: dict[str, Any]) -> str:
    """Of the table."""
    name = f"{row['piece']:28}"
    if "failed" in row:
        return f"{name} FAILED {row['failed'].strip().splitlines()[-1][:160] or '?'}"
    if "listener" not in row:
        return f"{name} {row.get('told', 'dry').strip().splitlines()[-1][:160]}"
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        ablations.show(row["variant"], row)
    series = row["server"]
    part = series.get("playhead_background_multiprocessors")
    switches = series.get("playhead_background_switches_total")
    more = f"  part {part:g}, {switches:.2f} switches/s" if part or switches else ""
    host = f"\n{'':15} {host_profile.line(row['host'])}" if "host" in row else ""
    return f"{row['piece'].partition('/')[0]:15} {told.getvalue().rstrip()}{more}{host}"


def keeper(out: Path, facts: dict[str, Any]) -> Callable[[list[dict[str, Any]], list[Piece]], None]:
    """Writes everything anew, whole or not at all, and prints the newest line."""

    def keep(rows: list[dict[str, Any]], left: list[Piece]) -> None:
        names = [one.name for one in left]
        raw = json.dumps({**facts, "left": names, "rows": rows}, indent=1, default=str)
        table = [f"{'':15} {ablations.HEAD}", *map(line, rows), f"left: {' '.join(names) or '-'}"]
        for name, text in (("outstanding.json", raw), ("outstanding.txt", "\n".join(table))):
            fresh = out / f"{name}.new"
            fresh.write_text(text + "\n", encoding="utf-8")
            fresh.replace(out / name)
        print(table[-2], flush=True)

    return keep


def arguments() -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pieces", nargs="*", metavar="PIECE", help=" ".join(ORDER))
    parser.add_argument("--budget", type=float, required=True, help="seconds for everything")
    parser.add_argument("--dry-run", action="store_true")
    options.add_server(parser, slots=2048)
    parser.set_defaults(context="384")
    options.add_gateways(parser)
    options.add_load(parser, warmup=4.0, window=10.0, processes=8)
    parser.set_defaults(gateways=4)
    args = parser.parse_args()
    try:
        args.pieces = [piece(name) for name in args.pieces or ORDER]
    except ValueError as error:
        parser.error(str(error))
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    return args


def main() -> None:
    """Measure, print, and say what is left."""
    args = arguments()
    facts: dict[str, Any] = {"machine": platform.machine(), "machine_cores": os.cpu_count()}
    facts["settings"] = {name: value for name, value in vars(args).items() if name != "pieces"}
    bench: Bench = Dry() if args.dry_run else Device(args)
    campaign = Campaign(bench, args.pieces, bench.now() + args.budget, keeper(args.out, facts))
    began = bench.now()
    campaign.run()
    print(f"{bench.now() - began:.0f} s; left: {' '.join(p.name for p in campaign.left) or '-'}")


if __name__ == "__main__":
    main()
