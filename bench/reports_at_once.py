"""How long the event loop does nothing but take reports, after a pause in which many have come.

    python bench/reports_at_once.py [--sessions 140] [--times 10]

A server in this process, clients in another, each with an utterance; the loop stands still until
every client has sent a report. Told is the processor time of the longest run of messages without
anything else between, milliseconds, one for each pause.
"""

import argparse
import asyncio
import gc
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "reliability"), str(TESTS / "gateway")]

from faulty import FaultyRunner  # noqa: E402 - found by the path above
from live import live_gateway  # noqa: E402
from playhead.engine.policy import PolicyConfig  # noqa: E402
from playhead.gateway.turns import Turns  # noqa: E402
from ways_to_end import Talker  # noqa: E402

SETTLES = 0.5


def spoken_to(talker: Talker) -> Any:
    """The first audio of an utterance, asked for until it is let in."""
    talker.hello()
    while True:
        talker.say("This goes on. " * 3)
        message = talker.until("audio", "failed", "error")
        if message["type"] == "audio":
            return message
        time.sleep(0.05)


def clients(port: int, count: int) -> None:
    """Each line on standard input is answered once everybody has sent a report."""
    talkers = [Talker(port) for _ in range(count)]
    first = [spoken_to(talker) for talker in talkers]
    print("ready", flush=True)
    for _ in sys.stdin:
        for talker, audio in zip(talkers, first, strict=True):
            talker.send(
                "report",
                **{"epoch": audio["epoch"], "received": audio["samples"], "consumed": 0},
                **{"heard": 0, "buffered": audio["samples"], "state": "playing", "time": 0.0},
                seq=audio["seq"],
            )
        print("sent", flush=True)


def told(line: str, expected: str) -> None:
    """Without clients there is nothing to measure, and no report is the shortest of all."""
    if line.strip() != expected:
        raise RuntimeError(f"the clients said {line!r} and not {expected!r}: they have ended")


async def measure(count: int, times: int) -> list[float]:
    """Milliseconds, a figure for each pause."""
    took: list[float] = []
    plain = Turns._round

    def timed(turns: Turns) -> None:
        began = time.thread_time()
        plain(turns)
        took.append(1e3 * (time.thread_time() - began))

    Turns._round = timed  # type: ignore[method-assign]
    policy = PolicyConfig(max_live=2 * count, max_utilisation=1e9)
    async with live_gateway(
        FaultyRunner(1000.0), policy, max_connections_per_address=2 * count
    ) as server:
        command = [sys.executable, __file__, "--port", str(server.port), "--sessions", str(count)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as crowd:
            assert crowd.stdin is not None
            assert crowd.stdout is not None
            told(await asyncio.to_thread(crowd.stdout.readline), "ready")
            gc.disable()
            worst = []
            for _ in range(times):
                await asyncio.sleep(SETTLES)
                took.clear()
                print("go", file=crowd.stdin, flush=True)
                told(crowd.stdout.readline(), "sent")  # the loop stands still
                await asyncio.sleep(SETTLES)
                worst.append(max(took))
            crowd.kill()
    return worst


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sessions", type=int, default=140)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.port:
        clients(args.port, args.sessions)
        return
    worst = uvloop.run(measure(args.sessions, args.times))
    print(f"{args.sessions} reports at once, ms:", " ".join(f"{ms:.1f}" for ms in sorted(worst)))


if __name__ == "__main__":
    main()
