"""Cost of the CPU voice on this machine, without server or network. Run: python bench/voice.py

Best of many, single-threaded, so that other work on the machine matters little.
"""

import resource
import time
from collections.abc import Callable

from playhead.engine.models.hibari.runner import HibariRunner
from playhead.engine.models.hibari.stream import SegmentStream
from playhead.engine.types import ChunkWork, Lane, Request

SENTENCE = "Hello, this is a streaming voice gateway, and it never stalls."


def milliseconds(action: Callable[[], object], repeats: int = 30) -> tuple[float, float]:
    """Best and median."""
    taken = []
    for _ in range(repeats):
        started = time.perf_counter()
        action()
        taken.append((time.perf_counter() - started) * 1e3)
    taken.sort()
    return taken[0], taken[repeats // 2]


def report(name: str, action: Callable[[], object]) -> None:
    best, median = milliseconds(action)
    print(f"{name}, ms  best {best:.2f} median {median:.2f}")


def first_chunk(runner: HibariRunner) -> None:
    runner.open(Request(utterance=1, client="bench", voice="heart"))
    runner.push_text(1, SENTENCE, flush=False, end=True)
    runner.step([1])
    runner.decode([ChunkWork(1, 0, 0, 8, Lane.URGENT, None, 0.0, 0.0)])
    runner.close(1)


def main() -> None:
    started = time.perf_counter()
    runner = HibariRunner()
    print(f"load {time.perf_counter() - started:.2f} s")
    frontend, backbone = runner._voice.frontend, runner._voice.backbone
    (piece,), _ = frontend.plan(SENTENCE, 0)
    made = backbone.run(piece.ids, 1.0)
    report("front end", lambda: frontend.plan(SENTENCE, 0))
    report("backbone", lambda: backbone.run(piece.ids, 1.0))
    report("text to first chunk of 8 frames", lambda: first_chunk(runner))

    def fresh(count: int) -> list[SegmentStream]:
        stop = len(made.f0)
        return [SegmentStream(made.latents, made.f0, 22, stop, (seed,)) for seed in range(count)]

    report("first 8 frames", lambda: SegmentStream.decode(runner._decoder, fresh(1), 8))
    for batch in (1, 4):
        for frames in (8, 16, 32):
            taken = []
            for _ in range(6):
                streams = fresh(batch)
                SegmentStream.decode(runner._decoder, streams, 8)
                while streams[0].remaining >= frames:
                    begun = time.perf_counter()
                    SegmentStream.decode(runner._decoder, streams, frames)
                    taken.append((time.perf_counter() - begun) * 1e3)
            taken.sort()
            audio = batch * frames * 12.5
            print(
                f"batch {batch} x {frames:2d} frames ms  best {taken[0]:.2f} "
                f"median {taken[len(taken) // 2]:.2f}  real-time factor {taken[0] / audio:.4f}"
            )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"peak memory {peak:.0f} MB")


if __name__ == "__main__":
    main()
