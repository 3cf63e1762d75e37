"""What wire codecs cost: processor time per second of audio, and cores for a thousand listeners.

    python bench/opus_cost.py [--listeners 1000] [--out docs/data/opus_cost.json]

Speech of the bundled voice goes through the gateway's own encoders, in chunks as long as those of
the accelerator model (one to sixteen frames of 80 ms). Processor time is the encoding thread's own,
the least of several rounds, so that other work on the machine counts little. Then a stream for each
listener, in turn: an encoder that has not run for a while finds its state out of the caches. Then
as many encoder threads as the server has by default, at once, in one process: what one interpreter
gets done by them, in seconds of audio per second. No device needed; two minutes.
"""

import argparse
import json
import os
import platform
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from playhead.codecs import registry
from playhead.codecs.base import Pcm
from playhead.engine.models.hibari.runner import HibariRunner
from playhead.engine.types import ChunkWork, Lane, Request

TEXT = (
    "The quick brown fox jumps over the lazy dog, and then it rests a while in the sun. "
    "Please hold the line: somebody will be with you in a moment, and thank you for your patience. "
)
RATE = 24_000
SECONDS = 12.0
CHUNKS = (0.08, 0.32, 1.28)
"""Seconds of audio handed to an encoder at once."""
FORMATS = (
    ("pcm_s16le", 24_000),
    ("pcm_s16le", 16_000),
    ("mulaw", 8_000),
    ("opus", 16_000),
    ("opus", 24_000),
    ("opus", 48_000),
)
ROUNDS = 5
THREADS = (1, 2)
TOGETHER_SECONDS = 3.0
TURN = 0.32
"""Seconds of audio that a stream of a crowd gets encoded in its turn."""
TURNS = 4
"""The first, in which an encoder starts, does not count."""


def speech() -> Pcm:
    """Some seconds of the bundled voice."""
    runner = HibariRunner()
    runner.open(Request(1, "bench", runner.info.voices[0]))
    runner.push_text(1, TEXT, flush=True, end=True)
    parts: list[Pcm] = []
    first = 0
    ended = False
    while not ended:
        (result,) = runner.step([1])
        ended = result.ended
        if result.frames:
            work = ChunkWork(1, 0, first, result.frames, Lane.URGENT, None, 0.0, 0.0)
            (pcm,) = runner.decode([work])
            if isinstance(pcm, BaseException):
                raise pcm
            parts.append(pcm)
            first += result.frames
    assert runner.info.sample_rate == RATE
    return np.resize(np.concatenate(parts), int(SECONDS * RATE)).astype(np.float32)


def encode(pcm: Pcm, codec: str, rate: int, chunk: float) -> int:
    """One utterance through an encoder of its own; bytes on the wire."""
    encoder = registry.encoder(registry.open_format(codec, rate), RATE)
    size, sent = int(chunk * RATE), 0
    for at in range(0, len(pcm), size):
        sent += len(encoder.encode(pcm[at : at + size]).data)
    return sent + len(encoder.flush().data)


def cost(pcm: Pcm, codec: str, rate: int, chunk: float, listeners: int) -> dict[str, Any]:
    """Processor time of one stream."""
    spent = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        sent = encode(pcm, codec, rate, chunk)
        spent.append((time.thread_time() - began) / SECONDS)
    return {
        "codec": codec,
        "rate": rate,
        "chunk_s": chunk,
        "cpu_ms_per_s": 1e3 * min(spent),
        "kbit_per_s": 8e-3 * sent / SECONDS,
        "cores": listeners * min(spent),
    }


def crowd(pcm: Pcm, codec: str, rate: int, listeners: int) -> dict[str, Any]:
    """Processor time of ``listeners`` streams that are all there, one after the other."""
    encoders = [registry.encoder(registry.open_format(codec, rate), RATE) for _ in range(listeners)]
    size, spent = int(TURN * RATE), []
    for turn in range(TURNS):
        began = time.thread_time()
        for place, encoder in enumerate(encoders):
            at = (turn * size + 997 * place) % (len(pcm) - size)
            encoder.encode(pcm[at : at + size])
        spent.append((time.thread_time() - began) / TURN)
    return {
        "codec": codec,
        "rate": rate,
        "listeners": listeners,
        "cpu_ms_per_s": 1e3 * min(spent[1:]) / listeners,
        "cores": min(spent[1:]),
    }


def together(pcm: Pcm, codec: str, rate: int, threads: int) -> dict[str, Any]:
    """Seconds of audio per second that threads of one process encode."""
    done = [0] * threads
    until = time.monotonic() + TOGETHER_SECONDS

    def work(index: int) -> None:
        while time.monotonic() < until:
            encode(pcm[: 2 * RATE], codec, rate, 0.32)
            done[index] += 1

    workers = [threading.Thread(target=work, args=(index,)) for index in range(threads)]
    cpu, began = time.process_time(), time.monotonic()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.monotonic() - began
    return {
        "codec": codec,
        "rate": rate,
        "threads": threads,
        "audio_s_per_s": 2.0 * sum(done) / seconds,
        "cores": (time.process_time() - cpu) / seconds,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--listeners", type=int, default=1000)
    parser.add_argument("--out", type=Path, help="JSON file")
    args = parser.parse_args()
    pcm = speech()
    print(f"codec       Hz  chunk s  CPU ms/s  kbit/s  cores for {args.listeners:,} listeners")
    alone = []
    for codec, rate in FORMATS:
        for chunk in CHUNKS:
            row = cost(pcm, codec, rate, chunk, args.listeners)
            alone.append(row)
            print(
                f"{codec:9} {rate:6d} {chunk:8.2f} {row['cpu_ms_per_s']:9.3f}"
                f" {row['kbit_per_s']:7.1f} {row['cores']:7.2f}",
                flush=True,
            )
    print(f"codec       Hz  {args.listeners:,} streams in turn: CPU ms/s  cores")
    crowds = []
    for codec, rate in FORMATS:
        row = crowd(pcm, codec, rate, args.listeners)
        crowds.append(row)
        spent, cores = row["cpu_ms_per_s"], row["cores"]
        print(f"{codec:9} {rate:6d} {spent:32.3f} {cores:6.2f}", flush=True)
    print("codec       Hz  threads  audio-s/s  cores")
    beside = []
    for codec, rate in (("pcm_s16le", 24_000), ("opus", 24_000)):
        for threads in THREADS:
            row = together(pcm, codec, rate, threads)
            beside.append(row)
            made, cores = row["audio_s_per_s"], row["cores"]
            print(f"{codec:9} {rate:6d} {threads:8d} {made:10.1f} {cores:6.2f}", flush=True)
    if args.out:
        facts = {
            "date": datetime.now(UTC).date().isoformat(),
            "machine": platform.processor() or platform.machine(),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "load": os.getloadavg(),
        }
        text = json.dumps({**facts, "alone": alone, "crowd": crowds, "together": beside}, indent=1)
        args.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
