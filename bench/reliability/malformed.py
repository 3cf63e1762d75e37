"""A million malformed messages in-process, and frames of every wrong kind over real sockets.

python bench/reliability/malformed.py --out docs/data/reliability_malformed.json
python bench/reliability/malformed.py --messages 20000 --frames 2000            # quick form
"""

import argparse
import asyncio
import contextlib
import random
import resource
import sys
import time
from pathlib import Path
from typing import Any

import uvloop
from kit import ROOT, frame, message, raw, save, server

sys.path.insert(0, str(ROOT / "tests" / "gateway"))

from fuzz_targets import TARGETS, mutate

CORPUS = ROOT / "tests" / "vectors" / "fuzz"
SHARES = {"msgpack_message": 0.45, "json_message": 0.45, "http_speech": 0.08, "dialogue": 0.02}


def seeds(name: str) -> list[bytes]:
    """The committed corpus of one target."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def in_process(count: int, seed: int) -> dict[str, Any]:
    """Mutations of the corpus into the parsers and sessions; a fault ends the run."""
    chance = random.Random(seed)
    found: dict[str, Any] = {}
    resident = _resident()
    for name, share in SHARES.items():
        corpus, target = seeds(name), TARGETS[name]
        began = time.perf_counter()
        for _ in range(round(count * share)):
            target(mutate(chance.choice(corpus), corpus, chance))
        found[name] = {
            "messages": round(count * share),
            "per_s": round(count * share / (time.perf_counter() - began)),
        }
    return {**found, "faults": 0, "growth_kib": _resident() - resident}


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024


async def over_sockets(count: int, seed: int) -> dict[str, Any]:
    """Mutated frames to a running server, a new connection whenever it ends one."""
    chance = random.Random(seed)
    corpus = [frame(1, data) for data in seeds("json_message") if len(data) < 400]
    corpus += [frame(opcode, b"x" * 10, fin=fin) for opcode in range(16) for fin in (True, False)]
    flags = ("--max-connections-per-address", "100000", "--log-level", "warning", "--grace", "0")
    sent = connections = 0
    async with server(*flags) as running:
        before = running.rss
        while sent < count:
            connections += 1
            sent += await _one_connection(running.port, corpus, chance)
        for _ in range(100):
            await asyncio.sleep(0.1)
            if not await running.metric("playhead_sessions"):
                break
        return {
            "frames": sent,
            "connections": connections,
            "sessions_left": await running.metric("playhead_sessions"),
            "alive": running.process.returncode is None,
            "growth_kib": (running.rss - before) // 1024,
        }


async def _one_connection(port: int, corpus: list[bytes], chance: random.Random) -> int:
    sent = 0
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        reader, writer = await raw(port)
        writer.write(message(type="hello"))
        sink = asyncio.ensure_future(reader.read(-1))
        while not sink.done() and sent < 200:
            data = chance.choice(corpus)
            writer.write(mutate(data, corpus, chance) if chance.random() < 0.3 else data)
            sent += 1
            if sent % 5 == 0:
                await asyncio.sleep(0)
        writer.close()
        sink.cancel()
    return sent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--frames", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out")
    args = parser.parse_args()
    figures = {"in_process": in_process(args.messages, args.seed)}
    figures["over_sockets"] = uvloop.run(over_sockets(args.frames, args.seed))
    save(args.out, figures)


if __name__ == "__main__":
    main()
