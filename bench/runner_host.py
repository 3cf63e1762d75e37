"""What the host does around one dispatch of the Qwen3-TTS lanes when the device costs nothing.

    python bench/runner_host.py [--streams 64 256 512 1024] [--before TREE] [--profile step|decode]

The runner of the CUDA lanes as it serves, on a tiny model, with a stand-in for the device
(``tests/engine/models/cuda_double.py``): replaying a graph does nothing, an event has always
happened, and copies go from memory to memory. A dispatch runs as a lane's worker runs it, the look
at the samples included. Printed per dispatch: microseconds of CPU time; milliseconds beside a
thread that never gives up the interpreter by itself, as the engine's does when it plans (every
call that gives up the lock may have to queue for it); and calls into torch or the device. With
--before the same on another source tree, in a process of its own, and the ratio. Needs torch, no
accelerator.
"""

import argparse
import contextlib
import cProfile
import json
import os
import pstats
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench" / "gpu"), str(ROOT / "tests" / "engine" / "models")]
import source_tree  # noqa: E402 - found by the line above

source_tree.link()

import cuda_double  # noqa: E402 - needs the link
import talker_lab  # noqa: E402
import torch  # noqa: E402
from playhead.engine.lanes import CpuLanes  # noqa: E402
from playhead.engine.models.qwen3_tts.cuda_lm import LmBuckets  # noqa: E402
from playhead.engine.models.qwen3_tts.cuda_runner import Buckets, CudaRunner  # noqa: E402
from playhead.engine.models.qwen3_tts.prompt import Voices  # noqa: E402

# Limits: from here, as older trees have them elsewhere.
from playhead.engine.models.qwen3_tts.runner import Limits, Options, Parts  # noqa: E402
from playhead.engine.models.qwen3_tts.text import HashTokenizer  # noqa: E402
from playhead.engine.plan import Dispatch  # noqa: E402
from playhead.engine.types import ChunkWork, Lane, Request  # noqa: E402
from talker_kit import model_config  # noqa: E402

POSITIONS, FRAME, RATE = 640, 1_920, 24_000
AT_ONCE = 8
"""New streams per dispatch while a crowd gathers."""
CHUNKS = 64
SIZES = {"1": (1,), "4": (4,), "mixed": (1, 2, 3, 4, 4, 8, 8, 16)}
"""Frames of the chunks of one dispatch, in turn."""
SWITCH = 0.0005
"""Seconds between two threads' turns, as a server sets it."""
STEPS, DECODES, CROWDED = 80, 20, 9
FRAMES = 512
"""Made before the first chunk is decoded."""
ENDLESS = Limits(10**9, 0, 10**9, 1e9)
FIXED, NATURAL, TYPED = "fixed", "natural", "typed"
"""Lengths given (random weights); the model ends by itself; and its text comes as it is written:
every fourth stream has new text at each step."""


class Noise:
    """In place of the codec."""

    def __init__(self, slots: int) -> None:
        config = SimpleNamespace(frame_samples=FRAME)
        self.decoder = SimpleNamespace(config=config, device=torch.device("cpu"))
        self.arena = SimpleNamespace(spare=slots)

    def decode(self, codes: Any, slots: Any) -> Any:
        generator = torch.Generator().manual_seed(1)
        return torch.randn(len(codes), codes.shape[2] * FRAME, generator=generator) * 0.1

    def reset(self, slots: Any) -> None:
        pass

    def prime(self, codes: Any, slots: Any) -> None:
        pass


def make(streams: int, kind: str, folder: Path) -> CudaRunner:
    """The lanes, captured for batches of up to ``streams``."""
    config = model_config("custom_voice", "1b7", folder)
    loop = talker_lab.build(config, 11, slots=streams, positions=POSITIONS)
    parts = Parts(
        config,
        loop,
        Noise(streams),
        RATE,
        HashTokenizer(499),
        Voices(config, {}),  # type: ignore[arg-type]
    )
    buckets = Buckets(
        LmBuckets((AT_ONCE, streams), (1,), ((AT_ONCE, 64),)), urgent=(1,), background=(CHUNKS,)
    )
    frames = (lambda _: 10**9) if kind == FIXED else None
    return CudaRunner(parts, Options(limits=ENDLESS, frames=frames), buckets)


class Crowd:
    """Streams in the middle of their speech."""

    def __init__(self, streams: int, kind: str, folder: Path) -> None:
        self.kind, self.numbers = kind, tuple(range(1, streams + 1))
        self.runner = make(streams, kind, folder)
        self.lanes = CpuLanes(self.runner, self.runner.limits, lambda _: None, time.monotonic)
        for number in self.numbers:
            self.runner.open(Request(number, "bench", "ryan", seed=number))
            self.more(number, end=kind != TYPED)
        for at in range(0, streams, AT_ONCE):
            self.lm(self.numbers[at : at + AT_ONCE])
        self.turn = 0
        self.taken = dict.fromkeys(self.numbers, 0)

    def more(self, number: int, *, end: bool = False) -> None:
        self.runner.push_text(number, "Some more words here and there ", flush=True, end=end)

    def write(self) -> None:
        """What listeners' sources do between two steps."""
        if self.kind == TYPED:
            self.turn += 1
            for number in self.numbers[self.turn % 4 :: 4]:
                self.more(number)

    def lm(self, numbers: tuple[int, ...]) -> Any:
        done = self.lanes._run(Dispatch(Lane.LM, steps=numbers))
        assert done.fault is None, done.fault
        return done.steps

    def step(self) -> None:
        self.lm(self.numbers)

    def chunks(self, sizes: Sequence[int]) -> Callable[[], None]:
        """One dispatch of chunks, prepared."""
        work = []
        for index, number in enumerate(self.numbers[:CHUNKS]):
            first, frames = self.taken[number], sizes[index % len(sizes)]
            self.taken[number] += frames
            work.append(ChunkWork(number, 0, first, frames, Lane.BACKGROUND, None, 0.0, 0.0))
        dispatch = Dispatch(Lane.BACKGROUND, chunks=tuple(work))

        def decode() -> None:
            done = self.lanes._run(dispatch)
            assert done.chunks is not None, done.fault
            assert not any(isinstance(pcm, BaseException) for pcm in done.chunks), done.chunks[0]

        return decode


class Counted(torch.overrides.TorchFunctionMode):
    """Counts calls into torch."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls[func.__name__] += 1
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def busy_neighbour() -> Iterator[None]:
    """A thread that computes in Python all the time."""
    stop = threading.Event()

    def compute() -> None:
        while not stop.is_set():
            for _ in range(1000):
                pass

    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    thread = threading.Thread(target=compute, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(before)


def timed(work: Callable[[], None]) -> tuple[float, float]:
    """CPU seconds of this thread, and seconds."""
    cpu, wall = time.thread_time(), time.perf_counter()
    work()
    return time.thread_time() - cpu, time.perf_counter() - wall


def measure(next_work: Callable[[], Callable[[], None]], rounds: int) -> dict[str, float]:
    """Dispatches of one kind: alone, beside a busy thread, and counted."""
    next_work()()
    alone = [timed(next_work())[0] for _ in range(rounds)]
    with busy_neighbour():
        beside = [timed(next_work())[1] for _ in range(CROWDED)]
    cuda_double.CALLS.clear()
    work = next_work()
    with Counted() as counted:
        work()
    calls = sum(counted.calls.values()) + sum(cuda_double.CALLS.values())
    return {
        "us": 1e6 * statistics.median(alone),
        "beside_ms": 1e3 * statistics.median(beside),
        "calls": calls,
    }


def rows(streams: Sequence[int], kinds: Sequence[str]) -> dict[str, dict[str, float]]:
    """Everything of this tree."""
    out: dict[str, dict[str, float]] = {}
    for kind in kinds:
        for count in streams:
            with tempfile.TemporaryDirectory() as folder:
                crowd = Crowd(count, kind, Path(folder))

            def step(crowd: Crowd = crowd) -> Callable[[], None]:
                crowd.write()
                return crowd.step

            out[f"step {kind} {count}"] = measure(step, STEPS)
    for kind in (FIXED, NATURAL):
        for name, sizes in SIZES.items():
            with tempfile.TemporaryDirectory() as folder:
                crowd = Crowd(CHUNKS, kind, Path(folder))
            for _ in range(FRAMES // 2):
                crowd.step()

            def decode(crowd: Crowd = crowd, sizes: Sequence[int] = sizes) -> Callable[[], None]:
                return crowd.chunks(sizes)

            out[f"decode {kind} {CHUNKS} x {name}"] = measure(decode, DECODES)
    return out


def other(tree: Path, args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """The same of another source tree."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "playhead"
        package.mkdir()
        for name in ("codecs", "engine", "gateway", "loadgen", "web"):
            (package / name).symlink_to(tree / name)
        (package / "client").symlink_to(tree / "gateway" / "client")
        command = [sys.executable, __file__, "--json", "--streams", *map(str, args.streams)]
        command += ["--kinds", *args.kinds]
        env = os.environ | {"PYTHONPATH": folder}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def show(now: dict[str, dict[str, float]], before: dict[str, dict[str, float]]) -> None:
    """A line per measurement."""
    print(f"{'':28}{'us':>9}{'us each':>9}{'beside, ms':>12}{'calls':>7}")
    for name, row in now.items():
        numbers = [int(word) for word in name.split() if word.isdigit()]
        each = row["us"] / numbers[0]
        line = f"{name:28}{row['us']:9.0f}{each:9.2f}{row['beside_ms']:12.2f}{row['calls']:7.0f}"
        if old := before.get(name):
            line += f"   before {old['us']:8.0f}{old['beside_ms']:9.2f}{old['calls']:6.0f}"
            line += (
                f"   ratio {old['us'] / row['us']:5.1f} {old['beside_ms'] / row['beside_ms']:5.1f}"
            )
        print(line, flush=True)


def profile(part: str, streams: int, kind: str) -> None:
    """Functions by their own time."""
    with tempfile.TemporaryDirectory() as folder:
        crowd = Crowd(streams, kind, Path(folder))
    for _ in range(60):
        crowd.write()
        crowd.step()
    works = [crowd.chunks(SIZES["4"]) for _ in range(20)] if part == "decode" else [crowd.step] * 40
    watcher = cProfile.Profile()
    for work in works:
        crowd.write()
        watcher.runcall(work)
    pstats.Stats(watcher).sort_stats("tottime").print_stats(30)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--streams", type=int, nargs="+", default=[64, 256, 512, 1024])
    parser.add_argument("--kinds", nargs="+", default=[FIXED, NATURAL, TYPED])
    parser.add_argument("--before", type=Path, help="a source tree to compare with")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--profile", choices=("step", "decode"))
    parser.add_argument("--out", type=Path, help="a file for the figures")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with cuda_double.installed():
        if args.profile:
            profile(args.profile, args.streams[-1], args.kinds[0])
            return
        now = rows(args.streams, args.kinds)
    if args.json:
        print(json.dumps(now))
        return
    before = other(args.before, args) if args.before else {}
    show(now, before)
    if args.out:
        args.out.write_text(json.dumps({"now": now, "before": before}, indent=1) + "\n")


if __name__ == "__main__":
    main()
