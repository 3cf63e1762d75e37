"""What the host spends while a server is measured: processor time of each thread of its processes.

``name_threads`` is called in each process of the server, so that the system knows the threads by
the names that the program gave them; ``Meter`` runs beside a load and reads /proc once a second.
Linux.
"""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

EVERY = 1.0
PROC = Path("/proc")
CODEC_LANES = ("background", "urgent")
BUSIEST = 10


def name_threads() -> threading.Event:
    """Have the threads of this process named for the system, those to come as well, until the event
    that is returned is set."""
    enough = threading.Event()
    threading.Thread(target=_keep_naming, args=(enough,), name="bench-names", daemon=True).start()
    return enough


def _keep_naming(enough: threading.Event) -> None:
    named: set[int] = set()
    while True:
        for thread in threading.enumerate():
            own = thread.native_id
            if own is not None and own not in named:
                named.add(own)
                _name(own, thread.name.removeprefix("playhead-"))
        if enough.wait(EVERY):
            return


def _name(thread: int, name: str) -> None:
    try:
        (PROC / f"self/task/{thread}/comm").write_text(name[:15], encoding="utf-8")
    except OSError:
        return  # it has ended


def role(command: bytes) -> str:
    """Of a process of `playhead serve`, by its arguments (/proc/PID/cmdline)."""
    words = set(command.split(b"\0"))
    if b"model" in words:
        return "model"
    if b"--gateways" in words:
        return "parent"
    return "gateway" if b"--engine" in words else "engine"


def thread_seconds(processes: list[int]) -> dict[str, float]:
    """Processor time so far, in seconds, by ROLE/THREAD; threads of one name count as one."""
    spent: dict[str, float] = defaultdict(float)
    for process in processes:
        try:
            of = role((PROC / f"{process}/cmdline").read_bytes())
        except OSError:
            continue
        for stat in (PROC / f"{process}/task").glob("*/stat"):
            try:
                name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            ticks = sum(map(int, rest.split()[11:13]))
            spent[f"{of}/{name}"] += ticks / os.sysconf("SC_CLK_TCK")
    return dict(spent)


def busiest(
    samples: list[tuple[float, Mapping[str, float]]], window: float
) -> tuple[float, dict[str, float]]:
    """Of (time, processor time by thread): cores by thread over the ``window`` seconds, or a little
    more, in which most was spent, and how many seconds these were. Nothing of fewer than two."""
    best: tuple[float, dict[str, float]] = (0.0, {})
    for first, (began, before) in enumerate(samples):
        later = (sample for sample in samples[first + 1 :] if sample[0] - began >= window)
        ended, after = next(later, samples[-1] if first == 0 else (began, before))
        seconds = ended - began
        if seconds <= 0.0:
            continue
        cores = {name: (after[name] - before.get(name, 0.0)) / seconds for name in after}
        if sum(cores.values()) > sum(best[1].values()):
            best = seconds, cores
    return best


def figures(seconds: float, cores: Mapping[str, float], series: Mapping[str, float]) -> Any:
    """``cores``: all of them; ``host``: the threads that spent most, and what the engine's thread,
    and all together, spend on a chunk. ``series``: the server's counters a second, over the window
    of the report, which is as long as that of ``cores`` but need not be the busiest: so the time
    for a chunk is at most a little too long."""
    lanes = [series.get(f'playhead_lane_items_total{{lane="{lane}"}}', 0.0) for lane in CODEC_LANES]
    chunks = sum(lanes)
    most = sorted(cores, key=lambda name: -cores[name])[:BUSIEST]
    host: dict[str, Any] = {
        "seconds": round(seconds, 2),
        "cores": {name: round(cores[name], 3) for name in most},
        "chunks_per_second": round(chunks, 1),
    }
    if chunks:
        own = cores.get("engine/engine", 0.0)
        host["engine_us_per_chunk"] = round(1e6 * own / chunks, 1)
        host["all_us_per_chunk"] = round(1e6 * sum(cores.values()) / chunks, 1)
    return {"cores": sum(cores.values()), "host": host}


def line(host: Mapping[str, Any]) -> str:
    """Of a table: the busiest threads, in cores, and the engine's time for a chunk."""
    told = [f"{name} {cores:.2f}" for name, cores in list(host["cores"].items())[:6]]
    if "engine_us_per_chunk" in host:
        told.append(f"{host['engine_us_per_chunk']:.0f} us of the engine's thread a chunk")
    return ", ".join(told)


class Meter:
    """Reads meanwhile: ``with Meter(lambda: pids) as meter: …``, then ``meter.samples``."""

    def __init__(self, processes: Callable[[], list[int]]) -> None:
        self._processes = processes
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="host-meter", daemon=True)
        self.samples: list[tuple[float, Mapping[str, float]]] = []

    def __enter__(self) -> "Meter":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        processes = self._processes()
        while True:
            self.samples.append((time.monotonic(), thread_seconds(processes)))
            if self._stop.wait(EVERY):
                return
