#!/usr/bin/env python3
"""The cable is pulled in mid-speech and put back, and the client's address changes: sound by hash.

    bench/reliability/unplug.py [--clients 8] [--cuts 20] [--moves 6] [--longest 10] [--seed 1]
                                [--out FILE]

Server and clients live in two network namespaces that a pair of virtual interfaces joins; one end
or the other is taken down for 0.2 to ``--longest`` seconds, or the clients' machine loses its
address and gets another. The clients are the shipped Python client, each speaking one long text in
pieces. Exit status 0 when each sound was whole, no sample came twice, and nothing was left at the
server; 77 where no namespaces can be had.
"""

import argparse
import contextlib
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reliability")]

from figures import save  # noqa: E402
from kit import served  # noqa: E402
from playhead.loadgen.namespace import inside  # noqa: E402
from races import nothing_left  # noqa: E402
from unplugged import SENTENCE, Listener, Met, events, live_through  # noqa: E402
from wire import SERVER, NoWire, laid  # noqa: E402

FLAGS = ("--host", "0.0.0.0", "--open", "--http-port", "off")
SECONDS_A_CHARACTER = 0.075
CANNOT = 77


def unplug(args: argparse.Namespace) -> dict[str, Any]:
    """Raises :class:`NoWire`."""
    planned = events(args.seed, args.cuts, args.moves, args.longest)
    # Enough to speak of until the last one, since those who hear nothing are not spoken to.
    lasts = sum(event.after + 0.5 * event.seconds + 2.0 for event in planned) + 5.0
    text = SENTENCE * round(lasts / SECONDS_A_CHARACTER / len(SENTENCE))
    listeners = [Listener(text) for _ in range(args.clients)]
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        wire = stack.enter_context(laid())
        with inside(wire.server):
            voice = {"FAULTY_PACE": "2000", "FAULTY_BATCH": "32"}
            _, near = stack.enter_context(served(*FLAGS, stderr=None, **voice))
        url = near.replace("127.0.0.1", SERVER)

        async def main() -> list[Met]:
            met = await live_through(url, wire, planned, listeners, args.seed)
            await nothing_left(url)
            return met

        met = wire.run(main)
    return {
        "seconds": round(time.monotonic() - began, 1),
        "clients": len(listeners),
        "seconds_of_speech_each": round(len(text) * SECONDS_A_CHARACTER, 1),
        "exact": sum(listener.exact for listener in listeners),
        "resumed": sum(listener.resumed for listener in listeners),
        "faults": [listener.fault for listener in listeners if listener.fault],
        "events": [row(each, listeners) for each in met],
    }


def row(met: Met, listeners: list[Listener]) -> dict[str, Any]:
    """What happened, and after how many seconds from its end the listeners heard more."""
    found = [listener.heard_again(met.ended) for listener in listeners]
    waits = sorted(round(wait, 2) for wait in found if wait is not None)
    return asdict(met.event) | {"heard_again": waits}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--moves", type=int, default=6)
    parser.add_argument("--longest", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out")
    args = parser.parse_args()
    try:
        found = unplug(args)
    except NoWire as fault:
        print(f"unplug.py: {fault}", file=sys.stderr)
        return CANNOT
    cuts = [wait for each in found["events"] if each["end"] for wait in each["heard_again"]]
    moves = [wait for each in found["events"] if not each["end"] for wait in each["heard_again"]]
    for name, waits in (("after_a_cut", cuts), ("after_a_move", moves)):
        if waits:
            found[name] = {"median": statistics.median(waits), "most": max(waits)}
    save(args.out, found)
    return int(found["exact"] != found["clients"] or bool(found["faults"]))


if __name__ == "__main__":
    sys.exit(main())
