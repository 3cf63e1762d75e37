"""`playhead serve` with a sampler beside it: what each thread is doing, a hundred times a second.

    SAMPLES=FOLDER python bench/gpu/sampled_server.py serve --model qwen3-tts …

At the end threads-serve-PID.json (threads-engine-PID.json of an engine's own process) in that
folder holds, per thread, for the time since the last SIGUSR2, the share of samples in each
function: the innermost one of this project, and in brackets what it waits in, if that is foreign.
Reading the frames needs the interpreter lock, so a thread that computes outside it is seen where
it left.
"""

import json
import os
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from types import FrameType

import host_profile
import source_tree

source_tree.link()

from playhead.gateway.cli import main  # noqa: E402

EVERY = 0.01


def place(frame: FrameType) -> str:
    """The innermost project function, and the foreign one it is in."""
    foreign, at = "", frame
    while at is not None and "playhead" not in at.f_code.co_filename:
        foreign = foreign or at.f_code.co_qualname
        above = at.f_back
        if above is None:
            return foreign
        at = above
    own = f"{Path(at.f_code.co_filename).stem}.{at.f_code.co_qualname}:{at.f_lineno}"
    return f"{own} ({foreign})" if foreign else own


def sample(counts: dict[str, Counter[str]], stop: threading.Event) -> None:
    """Count until told to stop."""
    own = threading.get_ident()
    while not stop.wait(EVERY):
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            if ident != own:
                counts[names.get(ident, "?")][place(frame)] += 1


def write(counts: dict[str, Counter[str]], path: Path) -> None:
    """Shares of each thread's samples, the largest dozen."""
    out = {}
    for name, counter in counts.items():
        total = sum(counter.values())
        out[name] = {at: round(n / total, 4) for at, n in counter.most_common(14)}
    path.write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    found: dict[str, Counter[str]] = defaultdict(Counter)
    ended = threading.Event()
    host_profile.name_threads()
    signal.signal(signal.SIGUSR2, lambda *_: found.clear())
    threading.Thread(target=sample, args=(found, ended), name="sampler", daemon=True).start()
    began = time.monotonic()
    status = main(sys.argv[1:])
    ended.set()
    write(found, Path(os.environ["SAMPLES"]) / f"threads-{sys.argv[1]}-{os.getpid()}.json")
    print(f"sampled for {time.monotonic() - began:.0f} s", file=sys.stderr)
    sys.exit(status)
