#!/usr/bin/env python3
"""The bundled voice from cold: more starts than it can make, without sockets. Who stalls?

    bench/reliability/cold.py [--rate 16] [--seconds 6] [--seed 0]

The real engine on this machine's cores, rehearsed as `playhead serve` does; strict players, whose
first sample plays when it comes and who hold nothing back.
"""

import argparse
import random
import sys
import time

from playhead.engine.clock import monotonic
from playhead.engine.lanes import cpu_limits
from playhead.engine.loop import Engine, EngineConfig
from playhead.engine.models.hibari.runner import HibariRunner
from playhead.engine.rehearsal import rehearse
from playhead.engine.types import AudioChunk, EngineEvent, Finish, Finished, Request

TEXTS = (
    "She asked whether the soup was still warm, and he laughed.",
    "The train to the coast leaves at a quarter past nine from platform four.",
    "Please wait a moment while I look that up.",
    "I could not find the word, so I drew it on the back of the menu, and everybody nodded.",
)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=16.0)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    runner, lanes, rng = HibariRunner(), cpu_limits(2), random.Random(args.seed)
    chunks: dict[int, list[tuple[float, float]]] = {}
    refused: set[int] = set()

    def deliver(events: list[EngineEvent]) -> None:
        now = monotonic()
        for event in events:
            if isinstance(event, AudioChunk):
                seconds = len(event.pcm) / runner.info.sample_rate
                chunks.setdefault(event.utterance, []).append((now, seconds))
            elif isinstance(event, Finished) and event.reason is Finish.FAILED:
                refused.add(event.utterance)

    config = EngineConfig(lanes, capacity=rehearse(runner, lanes, monotonic))
    engine = Engine(runner, config, deliver)
    engine.start()
    begin, due, asked = monotonic(), 0.0, {}
    while (due := due + rng.expovariate(args.rate)) < args.seconds:
        time.sleep(max(0.0, begin + due - monotonic()))
        number = len(asked) + 1
        asked[number] = monotonic()
        engine.submit(Request(number, f"client {number}", "heart"))
        engine.push_text(number, rng.choice(TEXTS), end=True)
    time.sleep(2.0)
    while engine.stats().live:
        time.sleep(0.1)
    engine.stop()
    stalls = [worst_stall(heard) for heard in chunks.values()]
    first = sorted(heard[0][0] - asked[number] for number, heard in chunks.items())
    print(
        f"{args.rate:g}/s for {args.seconds:g} s: {len(asked)} offered, {len(refused)} refused, "
        f"{sum(stall > 0 for stall in stalls)} of {len(stalls)} stalled, "
        f"worst {max(stalls):.3f} s; "
        f"first sound p50 {first[len(first) // 2]:.3f}, p95 {first[int(0.95 * len(first))]:.3f} s"
    )
    return 0


def worst_stall(heard: list[tuple[float, float]]) -> float:
    """The longest gap of a player that starts with the first chunk, seconds."""
    end, worst = heard[0][0], 0.0
    for at, seconds in heard:
        worst = max(worst, at - end - 1e-3)
        end = max(end, at) + seconds
    return max(0.0, worst)


if __name__ == "__main__":
    sys.exit(main())
