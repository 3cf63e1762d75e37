"""What the host spends on one utterance when the device costs nothing: CPU time per thread.

    python bench/host_path.py [--rate 10] [--window 10] [--profile main|engine]

A server of this process's own child serves a stand-in for the accelerator model (frames of 80 ms,
three lanes, lengths of random weights; steps and chunks sleep as long as they were measured to take
on one H200) and `playhead bench run` speaks to it over real sockets. The figure to look at is CPU
milliseconds per utterance, which hardly depends on what else the machine does; its inverse bounds
the rate of one interpreter. With --profile the functions of one thread, by their own time.
"""

import argparse
import asyncio
import cProfile
import json
import os
import pstats
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

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


async def serve(profile: str, out: Path) -> None:
    """A server of the stand-in, until the parent closes our input."""
    import signal

    from playhead.engine.loop import Engine, EngineConfig
    from playhead.engine.policy import LaneLimits, PolicyConfig
    from playhead.engine.types import Lane
    from playhead.gateway.serve import server_facts
    from playhead.gateway.server import GatewayServer, bind
    from playhead.gateway.settings import Settings

    settings = Settings(
        port=0, max_connections_per_address=20_000, drain_timeout=0.0, close_timeout=1.0
    )
    limits = LaneLimits(
        3, dict.fromkeys(Lane, 1), {Lane.LM: 512, Lane.URGENT: 64, Lane.BACKGROUND: 64}
    )
    runner = StandIn()

    def open_engine(deliver: Any) -> Engine:
        policy = PolicyConfig(max_live=2048, max_utilisation=1e9)
        engine = Engine(runner, EngineConfig(limits, policy), deliver)
        if profile == "engine":
            run = engine._run
            engine._thread._target = lambda: _profiled(run, out)  # type: ignore[attr-defined]
        engine.start()
        return engine

    server = GatewayServer(settings, server_facts(settings, runner.info), open_engine)
    await server.start(bind(settings.host, settings.port))
    print(f"ws://127.0.0.1:{server.port}", flush=True)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    watcher = cProfile.Profile()
    if profile == "main":
        watcher.enable()
    await stop.wait()
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rate", type=float, default=10)
    parser.add_argument("--window", type=float, default=10)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--profile", choices=("main", "engine"), default="")
    parser.add_argument("--serve", type=Path)
    parser.add_argument("--lines", type=int, default=45)
    args = parser.parse_args()
    if args.serve:
        import uvloop

        uvloop.run(serve(args.profile, args.serve))
        return
    folder = Path(tempfile.mkdtemp())
    stats = folder / "stats"
    command = [sys.executable, __file__, "--serve", str(stats), "--profile", args.profile]
    if not args.profile:
        del command[-2:]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        bench = [
            sys.executable,
            "-c",
            COMMAND,
            "bench",
            "run",
            "--url",
            url,
            "--rate",
            str(args.rate),
        ]
        bench += ["--texts", "frames", "--warmup", "1", "--window", str(args.window)]
        bench += [
            "--turns",
            "1",
            "--seeds",
            "0",
            "--out",
            str(folder),
            "--processes",
            str(args.processes),
        ]
        before = thread_seconds(server.pid)
        done = subprocess.run(bench, text=True, capture_output=True, check=False)
        after = thread_seconds(server.pid)
        server.terminate()
        server.wait(30)
    row = json.loads((folder / "report.json").read_text())["rates"][0]
    lines = [json.loads(x) for p in folder.glob("*.jsonl") for x in p.read_text().splitlines()]
    spoken = sum(line.get("kind") == "utterance" for line in lines)
    print(row["strict"], {k: round(1e3 * v, 1) for k, v in row["ttfa"].items() if v})
    if done.returncode:
        print(done.stdout[-1500:], done.stderr[-500:])
    each = {t: 1e3 * (after[t] - before.get(t, 0.0)) / spoken for t in after}
    top = sorted(each.items(), key=lambda item: -item[1])[:6]
    print(
        f"{spoken} utterances; CPU ms each: total {sum(each.values()):.2f};",
        " ".join(f"{'main' if t == str(server.pid) else t}: {v:.2f}" for t, v in top),
    )
    if args.profile:
        pstats.Stats(str(stats)).sort_stats("tottime").print_stats(args.lines)


if __name__ == "__main__":
    main()
