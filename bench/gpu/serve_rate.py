"""How many requests a second one GPU serves over real WebSockets, with random weights.

    python bench/gpu/serve_rate.py --rates 1 10 30 60

Starts `playhead serve --model qwen3-tts` on this machine and `playhead bench run` beside it in
other processes: open-loop Poisson arrivals, lognormal lengths (mean 71 frames of 80 ms, drawn by
the server), strict listeners that start at the first sample. TTFA counts from the intended arrival.
Prints a table; writes serve_rate.json and the server's log to $OUT, or to --out. Needs CUDA.
"""

import argparse
import contextlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import host_profile
import options

COMMAND = "from playhead.gateway.cli import main; raise SystemExit(main())"
NAMED = f"""import sys
sys.path.insert(0, {str(Path(__file__).resolve().parent)!r})
import host_profile
host_profile.name_threads()
"""
START_WITHIN = 240.0


@dataclass
class Server:
    """A server of our own and where it listens."""

    process: subprocess.Popen[str]
    url: str
    start_seconds: float
    gateways: int = 0

    @classmethod
    def start(
        cls, flags: list[str], env: dict[str, str], out: Path, *, sample: bool, gateways: int
    ) -> "Server":
        """Start it and wait until it is ready. With ``gateways``, so many before one engine."""
        began = time.monotonic()
        script = Path(__file__).with_name("sampled_server.py")
        if not sample:
            script = out / "serve_playhead.py"
            # Guarded: a process that multiprocessing spawns imports the main module.
            body = textwrap.indent(NAMED + COMMAND, "    ")
            script.write_text(f'if __name__ == "__main__":\n{body}\n', encoding="utf-8")
        env = env | {"SAMPLES": str(out)}
        command = [sys.executable, str(script), "serve", "--port", "0"]
        command += ["--max-connections-per-address", "20000", "--drain-timeout", "1", *flags]
        command += ["--gateways", str(gateways)] if gateways else []
        log = out / "server.log"
        with log.open("w", encoding="utf-8") as errors:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, env=env
            )
        timer = threading.Timer(START_WITHIN, process.kill)
        timer.start()
        assert process.stdout is not None
        found: list[str] = []
        for line in process.stdout:
            if ready := re.search(r"is ready: http://([\d.]+:\d+)/", line):
                found.append(f"ws://{ready[1]}")
            if len(found) == max(1, gateways):
                timer.cancel()
                return cls(process, ",".join(found), time.monotonic() - began, gateways)
        timer.cancel()
        raise SystemExit(f"the server did not start:\n{log.read_text()[-3000:]}")

    @property
    def processes(self) -> list[int]:
        """The server's processes: itself, or the engine's and the gateways'; and a model's own."""
        first = _children(self.process.pid) if self.gateways else []
        first = first or [self.process.pid]
        return first + [model for pid in first for model in _children(pid) if _is_model(model)]

    def about(self) -> dict[str, Any]:
        """What speaks, and how often it has gone the slow way so far: of ``/readyz``."""
        first = self.url.partition(",")[0].replace("ws://", "http://")
        with urllib.request.urlopen(f"{first}/readyz", timeout=10) as answer:
            load = json.load(answer)["load"]
        return {name: load[name] for name in ("model", "random_weights", "uncaptured_calls")}

    def start_samples(self) -> None:
        """What was sampled so far does not count (see sampled_server.py)."""
        for pid in {*self.processes, self.process.pid}:
            os.kill(pid, signal.SIGUSR2)

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


def _children(pid: int) -> list[int]:
    """The processes that one has started, from all its threads."""
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for listed in found for child in listed.read_text().split()]


def _is_model(pid: int) -> bool:
    """Whether it is `playhead model`; compilers of kernels are children too."""
    with contextlib.suppress(OSError):  # it has ended meanwhile
        return b"\0model\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


class GpuMeter:
    """Samples of nvidia-smi while it is entered."""

    def __enter__(self) -> "GpuMeter":
        fields = "utilization.gpu,power.draw,memory.used"
        self._process = subprocess.Popen(
            ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits", "-lms", "500"],
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        text, _ = self._process.communicate()
        rows = [line.split(",") for line in text.splitlines() if line.count(",") == 2]
        columns = list(zip(*[[float(cell) for cell in row] for row in rows], strict=True))
        mean = [sum(column) / len(column) for column in columns] or [0.0, 0.0, 0.0]
        self.figures = {"gpu_busy": mean[0] / 100, "watts": mean[1], "gpu_gib": mean[2] / 1024}


def measure(server: Server, wanted: str, args: argparse.Namespace, env: dict[str, str]) -> Any:
    """One rate: the figures of `playhead bench run`, and what the server used meanwhile."""
    number, _, seeds = wanted.partition(":")
    rate = float(number)
    folder = Path(tempfile.mkdtemp())
    command = [sys.executable, "-c", COMMAND, "bench", "run", "--url", server.url]
    seeded = argparse.Namespace(**{**vars(args), "seeds": seeds or args.seeds})
    command += ["--rate", number, *options.loaded(seeded), "--texts", "frames"]
    command += ["--out", str(folder), "--processes", str(args.processes if rate > 5 else 1)]
    if args.sample:
        server.start_samples()
    with GpuMeter() as gpu, host_profile.Meter(lambda: server.processes) as host:
        done = subprocess.run(command, env=env, text=True, capture_output=True, check=False)
    report = folder / "report.json"
    if not report.exists():
        return {"rate": rate, "failed": (done.stdout + done.stderr)[-2000:]}
    row = json.loads(report.read_text(encoding="utf-8"))["rates"][0]
    print("\n".join(line for line in done.stdout.splitlines()[2:] if "/tmp" not in line))
    spent = host_profile.busiest(host.samples, args.window)
    return {
        "rate": rate,
        **host_profile.figures(*spent, row["server"]),
        **gpu.figures,
        **row,
    }


def named(about: dict[str, Any]) -> str:
    """The model as tables name it: figures of random weights are no figures of speech."""
    return f"{about['model']}{' (random weights: noise)' if about['random_weights'] else ''}"


def show(row: dict[str, Any]) -> None:
    """One line of the table."""
    if "failed" in row:
        print(f"{row['rate']:6g}  FAILED {row['failed']}")
        return
    ttfa, heard = row["ttfa"], row["strict"]
    ms = [f"{1e3 * ttfa[p]:7.1f}" if ttfa[p] is not None else "      -" for p in ("p50", "p95")]
    print(
        f"{row['rate']:6g} {heard['utterances']:6d} {ms[0]} {ms[1]} {heard['stalled']:8d}"
        f" {heard['c100'] if heard['c100'] is not None else 0:7.4f} {row['peak_in_flight']:5d}"
        f" {row['cores']:6.2f} {row['gpu_busy']:5.0%} {row['watts']:5.0f}  {row['verdict']}"
        f"  {host_profile.line(row['host'])}",
        flush=True,
    )
    for name, value in sorted(row["server"].items()):
        if "lane" in name:
            print(f"        {name} {value:.4g}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--rates", nargs="+", default=["1", "10", "30", "60"], help="RATE, or RATE:SEED,SEED…"
    )
    options.add_server(parser, slots=512)
    options.add_gateways(parser)
    options.add_load(parser, warmup=4.0, window=15.0, processes=8)
    parser.add_argument("--sample", action="store_true", help="profile the server's threads")
    args = parser.parse_args()
    env = options.environment()
    flags = [*options.served(args), *args.flags.split()]
    server = Server.start(flags, env, args.out, sample=args.sample, gateways=args.gateways)
    about = server.about()
    print(f"{named(about)}: ready after {server.start_seconds:.0f} s", flush=True)
    rows: list[dict[str, Any]] = []
    try:
        measure(server, "2", options.briefly(args), env)
        print("  rate  heard TTFA p50     p95  stalled    C100  peak  cores   GPU watts  verdict")
        for rate in args.rates:
            rows.append(measure(server, rate, args, env))
            show(rows[-1])
            facts = {"machine": platform.machine(), "cores": os.cpu_count(), "settings": vars(args)}
            facts |= {**server.about(), "start_seconds": server.start_seconds}
            text = json.dumps({**facts, "rates": rows}, indent=1, default=str)
            (args.out / "serve_rate.json").write_text(text + "\n", encoding="utf-8")
        print(f"{named(about)}: {server.about()['uncaptured_calls']} calls outside of graphs")
    finally:
        server.stop()


if __name__ == "__main__":
    main()
