"""What a second GPU adds: one address, one `playhead serve` process per device, random weights.

    python bench/gpu/two_gpus.py --rate 30 --haproxy build/haproxy/run

Starts `playhead serve --gpus 0,1` and puts HAProxy with deploy/haproxy/haproxy.cfg before it
(without ``--haproxy`` the load generator itself deals its sessions out to both). Then `playhead
bench run`: the rate of one GPU to one process alone, and the same and twice that to the front
address. Prints a table and writes two_gpus.json to $OUT, or to --out. Needs two CUDA devices;
``--stand-in`` tries the script out on processors, with a voice that is a wave.
"""

import argparse
import contextlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import options

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))

import fleet_kit  # noqa: E402

COMMAND = "from playhead.gateway.cli import main; raise SystemExit(main())"
STAND_IN = "import sys; from fleet_kit import serve_wave; sys.exit(serve_wave(20.0, sys.argv[1:]))"
START_WITHIN = 240.0


@dataclass
class Fleet:
    """A supervisor and its servers, and what stands before them."""

    process: subprocess.Popen[str]
    nodes: list[fleet_kit.Node]
    front: str
    start_seconds: float

    def cpu_seconds(self) -> list[float]:
        """User and system time so far of each server."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [_cpu_seconds(int(pid)) for pid in children.split()]


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def fleet(args: argparse.Namespace, env: dict[str, str]) -> Iterator[Fleet]:
    """All of it, ready."""
    count = len(args.gpus.split(","))
    nodes = [
        fleet_kit.Node(f"gpu-{at}", 0.0, args.port + at, args.port + 2 * count + at)
        for at in range(count)
    ]
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        process = _serve(args, env, count)
        stack.callback(_stop, process)
        front = ",".join(f"ws://127.0.0.1:{node.port}" for node in nodes)
        if args.haproxy:
            front = stack.enter_context(_balancer(args, nodes))
        yield Fleet(process, nodes, front, time.monotonic() - began)


def _serve(args: argparse.Namespace, env: dict[str, str], count: int) -> subprocess.Popen[str]:
    code, chosen = COMMAND, ["--gpus", args.gpus, *options.served(args)]
    if args.stand_in:
        code, chosen = STAND_IN, ["--workers", str(count)]
    script = args.out / "serve_playhead.py"  # a file: the supervisor starts it again for each
    script.write_text(code + "\n", encoding="utf-8")
    command = [sys.executable, str(script), "serve", *chosen, "--port", str(args.port)]
    command += ["--node", "gpu", "--http-port", "off", "--drain-timeout", "1"]
    command += ["--max-connections-per-address", "20000", *args.flags.split()]
    with (args.out / "server.log").open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=env
        )
    timer = threading.Timer(START_WITHIN, process.terminate)
    timer.start()
    assert process.stdout is not None
    ready = 0
    for line in process.stdout:
        ready += bool(re.search(r"is ready: http://", line))
        if ready == count:
            timer.cancel()
            return process
    timer.cancel()
    log = (args.out / "server.log").read_text(encoding="utf-8")
    raise SystemExit(f"the servers did not start:\n{log[-3000:]}")


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(60)
    process.kill()


@contextlib.contextmanager
def _balancer(args: argparse.Namespace, nodes: list[fleet_kit.Node]) -> Iterator[str]:
    """HAProxy with the shipped file; yields its address once it sees every node's slack."""
    found = fleet_kit.Cluster(nodes, args.port - 1, args.port - 2)
    file = args.out / "haproxy.cfg"
    file.write_text(fleet_kit.configuration(nodes, found.port, found.statistics, "slack"))
    with (args.out / "haproxy.log").open("w", encoding="utf-8") as log:
        proxy = subprocess.Popen([args.haproxy, "-db", "-f", str(file)], stdout=log, stderr=log)
    try:
        time.sleep(1.0)
        for node in nodes:
            found.wait(node)
        yield found.url
    finally:
        proxy.kill()
        proxy.wait()


class GpuMeter:
    """Mean use of each device while it is entered, by nvidia-smi; nothing where there is none."""

    def __enter__(self) -> "GpuMeter":
        self.busy: dict[str, float] = {}
        query = ["nvidia-smi", "--query-gpu=index,utilization.gpu,power.draw"]
        self._process: subprocess.Popen[str] | None = None
        with contextlib.suppress(FileNotFoundError):
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
            cells = line.split(",")
            if len(cells) == 3:
                rows.setdefault(cells[0].strip(), []).append(float(cells[1]))
        self.busy = {index: sum(found) / len(found) / 100 for index, found in rows.items()}


def measure(
    servers: Fleet, what: str, url: str, rate: float, args: argparse.Namespace, env: dict[str, str]
) -> dict[str, Any]:
    """One row: the figures of `playhead bench run`, and who did the work."""
    folder = Path(tempfile.mkdtemp())
    command = [sys.executable, "-c", COMMAND, "bench", "run", "--url", url]
    command += ["--rate", f"{rate:g}", *options.loaded(args), "--texts", args.texts]
    command += ["--out", str(folder), "--processes", str(args.processes)]
    before = [node.metric("playhead_utterances_total") for node in servers.nodes]
    cpu, began = servers.cpu_seconds(), time.monotonic()
    with GpuMeter() as meter:
        done = subprocess.run(command, env=env, text=True, capture_output=True, check=False)
    seconds = time.monotonic() - began
    report = folder / "report.json"
    if not report.exists():
        return {"what": what, "rate": rate, "failed": (done.stdout + done.stderr)[-2000:]}
    row = json.loads(report.read_text(encoding="utf-8"))["rates"][0]
    after = [node.metric("playhead_utterances_total") for node in servers.nodes]
    return {
        "what": what,
        "rate": rate,
        "spoken": [round(b - a) for a, b in zip(before, after, strict=True)],
        "cores": [(b - a) / seconds for a, b in zip(cpu, servers.cpu_seconds(), strict=True)],
        "busy": meter.busy,
        "report": row,
    }


def show(row: dict[str, Any]) -> None:
    """One line of the table."""
    if "failed" in row:
        print(f"{row['what']:<22} {row['rate']:5g}  FAILED {row['failed']}", flush=True)
        return
    ttfa, heard = row["report"]["ttfa"], row["report"]["strict"]
    ms = [f"{1e3 * ttfa[p]:8.1f}" if ttfa[p] is not None else "       -" for p in ("p50", "p95")]
    cores = "+".join(f"{share:.2f}" for share in row["cores"])
    busy = " ".join(f"{share:.0%}" for share in row["busy"].values()) or "-"
    spoken = "+".join(map(str, row["spoken"]))
    print(
        f"{row['what']:<22} {row['rate']:5g} {heard['utterances']:6d} {ms[0]} {ms[1]}"
        f" {heard['stalled']:8d}  {row['report']['verdict']:<8} {spoken:>11} {cores:>11}  {busy}",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rate", type=float, default=30.0, help="of one GPU, utterances a second")
    parser.add_argument("--gpus", default="0,1")
    parser.add_argument("--haproxy", help="its program; without, sessions are dealt out")
    options.add_server(parser, slots=512)
    options.add_load(parser, warmup=4.0, window=20.0, processes=12)
    parser.add_argument("--texts", default="frames")
    parser.add_argument("--port", type=int, default=18_100)
    parser.add_argument("--stand-in", action="store_true", help="processors and a wave")
    args = parser.parse_args()
    env = options.environment(ROOT / "tests")
    rows: list[dict[str, Any]] = []
    with fleet(args, env) as servers:
        print(f"ready after {servers.start_seconds:.0f} s, front {servers.front}", flush=True)
        one = f"ws://127.0.0.1:{servers.nodes[0].port}"
        print(
            f"{'':22}  rate  heard TTFA p50      p95  stalled  verdict       spoken       cores"
            "  GPUs busy"
        )
        measure(servers, "warm", servers.front, 2.0, options.briefly(args), env)
        for what, url, rate in (
            ("one GPU", one, args.rate),
            ("two GPUs, same rate", servers.front, args.rate),
            ("two GPUs, twice", servers.front, 2 * args.rate),
        ):
            rows.append(measure(servers, what, url, rate, args, env))
            show(rows[-1])
            _write(args, servers, rows)


def _write(args: argparse.Namespace, servers: Fleet, rows: list[dict[str, Any]]) -> None:
    facts = {"machine": platform.machine(), "cores": os.cpu_count(), "settings": vars(args)}
    facts |= {"start_seconds": servers.start_seconds, "front": servers.front}
    text = json.dumps({**facts, "rows": rows}, indent=1, default=str)
    (args.out / "two_gpus.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
