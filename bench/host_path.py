"""What the host spends on one utterance when the device costs nothing: CPU time per thread.

    python bench/host_path.py [--rate 10] [--window 10] [--profile main|engine] [--apart] [--lanes]

A server of this process's own child serves a stand-in for the accelerator model (frames of 80 ms,
three lanes, lengths of random weights; steps and chunks sleep as long as they were measured to take
on one H200) and `playhead bench run` speaks to it over real sockets. The figure to look at is CPU
milliseconds per utterance, which hardly depends on what else the machine does; its inverse bounds
the rate of one interpreter. With --profile the functions of one thread, by their own time. With
--apart both ways, one after the other: all in one process, and the engine in a process of its own.
With --lanes a third way: the stand-in in a process of its own as well. Each process tells at
its end which garbage collections there were and how long the longest took.
"""

import argparse
import asyncio
import atexit
import contextlib
import cProfile
import gc
import json
import os
import pstats
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import uvloop

ROOT = Path(__file__).resolve().parent.parent
RATE, FRAME = 24_000, 1_920
LADDER = (1, 2, 4, 8, 16)
COMMAND = "from playhead.gateway.cli import main; raise SystemExit(main())"


class StandIn:
    """A runner that makes noise of the right length and sleeps instead of computing."""

    def __init__(self) -> None:
        from playhead.engine.types import ModelInfo

        self.info = ModelInfo("stand-in", ("nobody",), RATE, FRAME, LADDER, 2)
        self._left: dict[int, int] = {}
        self._text: dict[int, bool] = {}
        self._noise = np.random.default_rng(0).normal(0, 0.1, 64 * FRAME).astype(np.float32)

    def open(self, request: Any) -> None:
        rng = np.random.default_rng(request.utterance)
        self._left[request.utterance] = int(np.clip(rng.lognormal(4.14, 0.5), 12, 190))

    def push_text(self, utterance: int, delta: str, *, flush: bool, end: bool) -> bool:
        return True

    def step(self, utterances: Sequence[int]) -> list[Any]:
        from playhead.engine.types import StepResult

        time.sleep(0.006 + 0.00003 * len(utterances))
        out = []
        for utterance in utterances:
            frames = min(2 if len(utterances) >= 8 else 1, self._left[utterance])
            self._left[utterance] -= frames
            out.append(StepResult(utterance, frames, False, False, self._left[utterance] == 0))
        return out

    def decode(self, chunks: Sequence[Any]) -> list[Any]:
        time.sleep(0.001 + 0.00004 * sum(chunk.frames for chunk in chunks))
        return [self._noise[: chunk.frames * FRAME].copy() for chunk in chunks]

    def close(self, utterance: int) -> None:
        self._left.pop(utterance, None)


def model_apart(settings: bytes, tell: Any) -> Any:
    """The stand-in in a process of its own."""
    from playhead.engine.remote.runner_host import Hosted

    as_served("model")
    return Hosted(StandIn(), limits())


def as_served(who: str) -> None:
    """Share the interpreter as `playhead serve` does, and tell at the end what was collected."""
    from playhead.gateway.serve import share_interpreter

    share_interpreter()
    took: dict[int, list[float]] = {}
    found = began = 0.0

    def note(phase: str, info: dict[str, int]) -> None:
        nonlocal found, began
        if phase == "start":
            began = time.thread_time()
        else:
            took.setdefault(info["generation"], []).append(1e3 * (time.thread_time() - began))
            found += info["collected"]

    def tell() -> None:
        gc.callbacks.remove(note)
        told = (f"{len(ms)} of generation {g}, longest {max(ms):.1f} ms" for g, ms in took.items())
        told_all = "; ".join(told) or "none"
        print(f"{who}: collections: {told_all}; {found:.0f} objects found", file=sys.stderr)

    gc.callbacks.append(note)
    atexit.register(tell)


def limits() -> Any:
    """Of the lanes, as on one H200."""
    from playhead.engine.policy import LaneLimits
    from playhead.engine.types import Lane

    return LaneLimits(
        3, dict.fromkeys(Lane, 1), {Lane.LM: 512, Lane.URGENT: 64, Lane.BACKGROUND: 64}
    )


def opener(profile: str, out: Path, lanes: bool = False) -> Any:
    """Starts an engine of the stand-in; with ``lanes`` that has a process of its own."""
    from playhead.engine.answers import unasked
    from playhead.engine.loop import Engine, EngineConfig
    from playhead.engine.policy import PolicyConfig
    from playhead.engine.remote.runner_proxy import start

    proxy = start([sys.executable, __file__, "--model"], b"") if lanes else None

    def open_engine(deliver: Any) -> Engine:
        policy = PolicyConfig(max_live=2048, max_utilisation=1e9)
        follow = proxy.follow if proxy else unasked
        engine = Engine(proxy or StandIn(), EngineConfig(limits(), policy, follow=follow), deliver)
        if profile == "engine":
            run = engine._run
            engine._thread._target = lambda: _profiled(run, out)  # type: ignore[attr-defined]
        engine.start()
        return engine

    return open_engine


async def stopped() -> None:
    """Until the parent ends us."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()


async def serve_engine(path: str, lanes: bool) -> None:
    """An engine of the stand-in at a Unix socket."""
    from playhead.engine.remote.server import EngineServer

    server = EngineServer(opener("", Path(), lanes))
    await server.start(path)
    as_served("engine")
    print(path, flush=True)
    await stopped()
    server.stop()


async def serve(profile: str, out: Path, path: str) -> None:
    """A server of the stand-in, or before the engine at ``path``."""
    from playhead.gateway import engines
    from playhead.gateway.serve import server_facts
    from playhead.gateway.server import GatewayServer, bind
    from playhead.gateway.settings import Settings

    settings = Settings(
        port=0, max_connections_per_address=20_000, drain_timeout=0.0, close_timeout=1.0
    )
    info, numbers, open_engine = StandIn().info, None, opener(profile, out)
    if path:
        source = engines.elsewhere(path)
        info, numbers, open_engine = source.info, source.numbers, source.open
    server = GatewayServer(settings, server_facts(settings, info, numbers), open_engine)
    await server.start(bind(settings.host, settings.port))
    as_served("gateway" if path else "all")
    print(f"ws://127.0.0.1:{server.port}", flush=True)
    watcher = cProfile.Profile()
    if profile == "main":
        watcher.enable()
    await stopped()
    if profile == "main":
        watcher.disable()
        watcher.dump_stats(out)
    server.hurry()
    await server.drain()


def _profiled(run: Any, out: Path) -> None:
    watcher = cProfile.Profile()
    try:
        watcher.runcall(run)
    finally:
        watcher.dump_stats(out)


def thread_seconds(pid: int) -> dict[str, float]:
    """CPU time of each thread so far, by its name in the kernel or its number."""
    out: dict[str, float] = {}
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        fields = stat.read_text().rsplit(")", 1)[1].split()
        out[stat.parent.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return out


def bench(url: str, folder: Path, args: argparse.Namespace) -> str:
    """Load from another process; what it printed if it failed."""
    command = [sys.executable, "-c", COMMAND, "bench", "run", "--url", url]
    command += ["--rate", str(args.rate), "--texts", "frames", "--warmup", "1"]
    command += ["--window", str(args.window), "--turns", "1", "--seeds", "0"]
    command += ["--out", str(folder), "--processes", str(args.processes)]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    return done.stdout[-1500:] + done.stderr[-500:] if done.returncode else ""


def measure(args: argparse.Namespace, *, apart: bool, lanes: bool = False) -> Path:
    """Run once and print; returns where a profile is."""
    folder = Path(tempfile.mkdtemp())
    stats, path = folder / "stats", str(folder / "engine")
    with contextlib.ExitStack() as running:
        processes: list[Child] = []
        models: list[Child] = []
        own = [sys.executable, __file__]
        if apart:
            flags = ["--engine", path] + (["--lanes"] if lanes else [])
            processes.append(running.enter_context(child([*own, *flags])))
            models = [Child(pid, "model") for pid in children(processes[0].pid)]
        command = [*own, "--serve", str(stats), "--before", path if apart else ""]
        command += ["--profile", args.profile] if args.profile else []
        server = running.enter_context(child(command))
        processes += [server, *models]
        before = [thread_seconds(process.pid) for process in processes]
        failed = bench(server.said, folder, args)
        after = [thread_seconds(process.pid) for process in processes]
    row = json.loads((folder / "report.json").read_text())["rates"][0]
    lines = [json.loads(x) for p in folder.glob("*.jsonl") for x in p.read_text().splitlines()]
    spoken = sum(line.get("kind") == "utterance" for line in lines)
    print(row["strict"], {k: round(1e3 * v, 1) for k, v in row["ttfa"].items() if v}, failed)
    for process, start, end in zip(processes, before, after, strict=True):
        each = {t: 1e3 * (end[t] - start.get(t, 0.0)) / spoken for t in end}
        top = sorted(each.items(), key=lambda item: -item[1])[:5]
        threads = " ".join(f"{'main' if t == str(process.pid) else t}: {v:.2f}" for t, v in top)
        who = "engine" if process is not server else "gateway" if apart else "all"
        who = "model" if process in models else who
        print(f"{who}: CPU ms per utterance of {spoken}: {sum(each.values()):.2f}; {threads}")
    return stats


def children(pid: int) -> list[int]:
    """The processes that one has started from its main thread."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Child(NamedTuple):
    """A process of ours and its first line."""

    pid: int
    said: str


@contextlib.contextmanager
def child(command: Sequence[str]) -> Iterator[Child]:
    """Runs as long as the context."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Child(process.pid, process.stdout.readline().strip())
        finally:
            process.terminate()
            process.wait(30)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rate", type=float, default=10)
    parser.add_argument("--window", type=float, default=10)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--profile", choices=("main", "engine"), default="")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--before", default="", help=argparse.SUPPRESS)
    parser.add_argument("--lanes", action="store_true")
    parser.add_argument("--engine", default="", help=argparse.SUPPRESS)
    parser.add_argument("--model", default="", help=argparse.SUPPRESS)
    parser.add_argument("--lines", type=int, default=45)
    args = parser.parse_args()
    if args.engine:
        uvloop.run(serve_engine(args.engine, args.lanes))
    elif args.model:
        from playhead.engine.remote.runner_host import host

        raise SystemExit(host([int(number) for number in args.model.split(",")], model_apart))
    elif args.serve:
        uvloop.run(serve(args.profile, args.serve, args.before))
    else:
        stats = measure(args, apart=False)
        if args.profile:
            pstats.Stats(str(stats)).sort_stats("tottime").print_stats(args.lines)
        if args.apart:
            measure(args, apart=True)
        if args.lanes:
            measure(args, apart=True, lanes=True)


if __name__ == "__main__":
    main()
