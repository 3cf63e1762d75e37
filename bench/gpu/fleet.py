"""`playhead serve --gpus …` on this machine and one address before its gateways, for
two_gpus.py.
"""

import argparse
import contextlib
import os
import re
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import options

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))

import fleet_kit  # noqa: E402

COMMAND = "from playhead.gateway.cli import main; raise SystemExit(main())"
STAND_IN = """
import sys
from live import WaveRunner
from playhead.gateway import engine_process, serve

serve.load_voice = engine_process.load_voice = lambda: WaveRunner(20.0)
"""
DEVICES = """
class NVMLError(Exception): pass
class _Memory: used, total = 0, 1 << 37
class _Use: gpu = 0
def nvmlInit(): pass
def nvmlSystemGetDriverVersion(): return "0"
def nvmlDeviceGetCount(): return 8
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlDeviceGetMemoryInfo(handle): return _Memory
def nvmlDeviceGetUtilizationRates(handle): return _Use
def nvmlDeviceGetUUID(handle): return f"GPU-{handle}"
def nvmlDeviceGetName(handle): return "stand-in"
"""
OWN_FRONT = Path(__file__).with_name("front.py")


@dataclass
class Fleet:
    """A supervisor and its servers."""

    process: subprocess.Popen[str]
    gpus: list[list[fleet_kit.Node]]  # the gateways of each device
    start_seconds: float

    @property
    def nodes(self) -> list[fleet_kit.Node]:
        return [node for gateways in self.gpus for node in gateways]

    def spoken(self) -> list[float]:
        """Utterances so far, by device."""
        return [
            sum(node.metric("playhead_utterances_total") for node in gateways)
            for gateways in self.gpus
        ]

    def cpu_seconds(self) -> dict[str, float]:
        """User and system time so far of engines and gateways."""
        found = {"engines": 0.0, "gateways": 0.0}
        for pid, fields in _stats():
            if int(fields[1]) == self.process.pid:
                words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                kind = "engines" if "engine" in words else "gateways"
                ticks = int(fields[11]) + int(fields[12])
                found[kind] += ticks / os.sysconf("SC_CLK_TCK")
        return found


def _stats() -> Iterator[tuple[int, list[str]]]:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield int(folder.name), (folder / "stat").read_text().rsplit(")", 1)[1].split()


@contextlib.contextmanager
def fleet(args: argparse.Namespace, env: dict[str, str], within: float) -> Iterator[Fleet]:
    """All of it, ready."""
    devices = args.gpus.split(",")
    count = len(devices) * args.gateways
    nodes = [
        fleet_kit.Node(f"gpu-{at}", 0.0, args.port + at, args.port + 2 * count + at)
        for at in range(count)
    ]
    began = time.monotonic()
    process = _serve(args, env, count, within)
    try:
        gpus = [nodes[at : at + args.gateways] for at in range(0, count, args.gateways)]
        yield Fleet(process, gpus, time.monotonic() - began)
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
        process.kill()


def _serve(
    args: argparse.Namespace, env: dict[str, str], count: int, within: float
) -> subprocess.Popen[str]:
    code, chosen = COMMAND, [*options.served(args), *args.flags.split()]
    if args.stand_in:
        code, chosen = STAND_IN + COMMAND, args.flags.split()
        (args.out / "pynvml.py").write_text(DEVICES, encoding="utf-8")
    script = args.out / "serve_playhead.py"  # a file: the supervisor starts it again for each
    script.write_text(code + "\n", encoding="utf-8")
    command = [sys.executable, str(script), "serve", "--gpus", args.gpus, *chosen]
    command += ["--gateways", str(args.gateways)] if args.gateways > 1 else []
    command += ["--port", str(args.port), "--node", "gpu", "--http-port", "off"]
    command += ["--drain-timeout", "1", "--max-connections-per-address", "20000"]
    with (args.out / "server.log").open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=env,
        )
    _until_ready(process, count, within, args.out / "server.log")
    return process


def _until_ready(process: subprocess.Popen[str], count: int, within: float, log: Path) -> None:
    timer = threading.Timer(within, process.terminate)
    timer.start()
    assert process.stdout is not None
    ready = 0
    for line in process.stdout:
        ready += len(re.findall(r"is ready: http://", line))
        if ready == count:
            timer.cancel()
            return
    timer.cancel()
    told = log.read_text(encoding="utf-8")
    raise SystemExit(f"{ready} of {count} servers came within {within:.0f} s:\n{told[-3000:]}")


@contextlib.contextmanager
def front(
    args: argparse.Namespace, nodes: Sequence[fleet_kit.Node], at: int
) -> Iterator[tuple[str, str]]:
    """An address before ``nodes``, below ``args.port``, and what stands there: HAProxy with the
    shipped file where it can be had, else front.py."""
    port = args.port - 2 * at
    with contextlib.ExitStack() as stack:
        name = "HAProxy"
        program = args.haproxy or shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
        try:
            stack.enter_context(_haproxy(program or "haproxy", args.out, list(nodes), port))
        except (OSError, AssertionError) as error:
            print(f"HAProxy does not serve ({error}): bench/gpu/front.py stands in", flush=True)
            name = "front.py"
            stack.enter_context(_own_front(nodes, port))
        yield f"ws://127.0.0.1:{port}", name


@contextlib.contextmanager
def _haproxy(program: str, out: Path, nodes: list[fleet_kit.Node], port: int) -> Iterator[None]:
    found = fleet_kit.Cluster(nodes, port, port - 1)
    file = out / f"haproxy-{port}.cfg"
    most = min(20_000, (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 200) // 2)
    file.write_text(fleet_kit.configuration(nodes, port, found.statistics, "slack", most))
    with (out / f"haproxy-{port}.log").open("w", encoding="utf-8") as log:
        proxy = subprocess.Popen([program, "-db", "-f", str(file)], stdout=log, stderr=log)
    try:
        fleet_kit.until_answering(found.statistics)
        for node in nodes:
            found.wait(node)
        yield
    finally:
        proxy.kill()
        proxy.wait()


@contextlib.contextmanager
def _own_front(nodes: Sequence[fleet_kit.Node], port: int) -> Iterator[None]:
    targets = ",".join(str(node.port) for node in nodes)
    process = subprocess.Popen([sys.executable, str(OWN_FRONT), str(port), targets])
    try:
        time.sleep(2.0)
        yield
    finally:
        process.kill()
        process.wait()
