#!/usr/bin/env python3
"""1,000 clients lose their server at the same moment: how soon do they speak again as before?

    bench/reliability/thundering.py [--clients 1000] [--gap 60] [--before 15] [--after 25]
                                    [--signal kill|term] [--out FILE]

A server process with the known wave of the tests, batched as an accelerator's; the clients are the
shipped Python client, each speaking about every ``--gap`` seconds. The process is killed, or told
to go (``term``), and another started at the same port once it has ended. Printed: how soon all were
back, and the time to the first sound, refusals and the waits that they ask for included, by seconds
since the new server was ready. Recovered: from when on every window's p99 is at most twice that of
before, or 0.5 s, and all who had asked before have had their first sound. Exit status 0 when that
is within ten seconds, and nobody was lost; with ``term`` also what was being spoken must have been
spoken to its end by the server that was told to go, and that must have ended with status 0 within
its drain time.
"""

import argparse
import asyncio
import contextlib
import json
import random
import resource
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reliability")]

from figures import command, machine  # noqa: E402
from kit import served  # noqa: E402
from machine import kept_waiting  # noqa: E402
from returning import Member, Start, quantile  # noqa: E402

WINDOW = 2.0
GOAL = 10.0
FINE = 0.5
"""Seconds to the first sound that nobody calls slow."""
PATIENCE = 90.0
DRAIN = 5.0
MARGIN = 3.0
"""Seconds beyond the drain time within which the process must have ended."""


@dataclass
class Outage:
    """Monotonic seconds."""

    began: float
    ended: float  # the process was gone
    status: int
    back: float  # the new server was ready
    everybody: float  # the last client had a session again
    kept: float  # longest that a thread waited for a core since then


def flags(port: int) -> list[str]:
    return [
        *("--http-port", "off", "--port", str(port), "--drain-timeout", f"{DRAIN:g}"),
        *("--max-connections-per-address", "3000", "--max-connections", "3000"),
    ]


async def outage(
    members: list[Member], args: argparse.Namespace, stack: contextlib.ExitStack
) -> Outage:
    voice = {"FAULTY_PACE": "20000", "FAULTY_BATCH": "64"}
    process, url = stack.enter_context(served(*flags(0), stderr=None, **voice))
    over = asyncio.Event()
    talking = []
    for member in members:  # the first arrival of a crowd is not what is asked about
        talking.append(asyncio.create_task(member.talk(url, over)))
        await asyncio.sleep(0.005)
    async with asyncio.timeout(PATIENCE):
        while not all(member.connected or member.lost for member in members):
            await asyncio.sleep(0.05)
    await asyncio.sleep(args.before)
    began = time.monotonic()
    process.send_signal(signal.SIGKILL if args.signal == "kill" else signal.SIGTERM)
    status = await asyncio.to_thread(process.wait)
    ended = time.monotonic()
    port = urlsplit(url).port or 0
    await asyncio.to_thread(stack.enter_context, served(*flags(port), stderr=None, **voice))
    back = time.monotonic()
    with kept_waiting() as kept:
        async with asyncio.timeout(PATIENCE):
            while not all(member.moved or member.lost for member in members):
                await asyncio.sleep(0.05)
        everybody = max(at for member in members for at in member.moved)
        await asyncio.sleep(max(0.0, back + args.after - time.monotonic()))
    over.set()
    await asyncio.wait(talking, timeout=PATIENCE)
    return Outage(began, ended, status, back, everybody, kept.seconds)


def drained(members: list[Member], met: Outage) -> dict[str, Any]:
    """What became of the utterances that were being heard at the signal, and of the process."""
    speaking = [
        heard for member in members for heard in member.heard if heard.first < met.began < heard.end
    ]
    by_one = sum(heard.by_one for heard in speaking)
    took = met.ended - met.began
    good = met.status == 0 and took <= DRAIN + MARGIN and by_one == len(speaking)
    told = {"speaking": len(speaking), "to_its_end_by_the_old_server": by_one}
    return told | {"ended_after": took, "status": met.status, "as_promised": good}


def windows(starts: list[Start], outage: Outage, seconds: float) -> list[dict[str, Any]]:
    """Of utterances by when they were asked for, seconds since the new server was ready."""
    rows = []
    for number in range(int(seconds / WINDOW)):
        begin = outage.back + number * WINDOW
        here = [start for start in starts if begin <= start.asked < begin + WINDOW]
        row = {"from": number * WINDOW, "utterances": len(here)}
        rows.append(row | {"p50": quantile(here, 0.5), "p99": quantile(here, 0.99)})
    return rows


def recovered(rows: list[dict[str, Any]], usual: float, heard: float) -> float:
    """Seconds after which no window is slower than it should be, nor empty, and those who had asked
    before that have been ``heard``."""
    most = max(2 * usual, FINE)
    slow = [row["from"] + WINDOW for row in rows if not row["p99"] <= most]
    return max([*slow, heard])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=1_000)
    parser.add_argument("--gap", type=float, default=60.0, help="seconds between utterances")
    parser.add_argument("--before", type=float, default=15.0)
    parser.add_argument("--after", type=float, default=25.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--signal", choices=("kill", "term"), default="kill")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 16_384)), hard))
    members = [
        Member(random.Random(f"{args.seed} {number}"), args.gap) for number in range(args.clients)
    ]
    with contextlib.ExitStack() as stack:
        met = asyncio.run(outage(members, args, stack))
    starts = [start for member in members for start in member.starts]
    before = [start for start in starts if start.asked + start.took < met.began]
    during = [s for s in starts if s.asked < met.back and s.asked + s.took >= met.began]
    heard = max((s.asked + s.took - met.back for s in during), default=0.0)
    rows = windows(starts, met, args.after)
    told = {
        "machine": machine(),
        "command": command(),
        "arguments": {name: value for name, value in vars(args).items() if name != "out"},
        "clients": args.clients,
        "before": {
            "utterances": len(before),
            "p50": quantile(before, 0.5),
            "p99": quantile(before, 0.99),
        },
        "down": met.back - met.began,
        "drained": drained(members, met),
        "everybody_back": met.everybody - met.back,
        "interrupted": {"utterances": len(during), "p99": quantile(during, 0.99)},
        "heard_again": heard,
        "recovered": recovered(rows, quantile(before, 0.99), heard),
        "refused": sum(member.refused for member in members),
        "lost": [fault for member in members for fault in member.lost],
        "kept_waiting": met.kept,
        "windows": rows,
    }
    show(told)
    if args.out:
        args.out.write_text(json.dumps(told, indent=1) + "\n")
    broken = args.signal == "term" and not told["drained"]["as_promised"]
    return int(told["recovered"] > GOAL or bool(told["lost"]) or broken)


def show(told: dict[str, Any]) -> None:
    before = told["before"]
    print(f"before: {before['utterances']} utterances, first sound p50", end=" ")
    print(f"{before['p50'] * 1e3:.0f} ms, p99 {before['p99'] * 1e3:.0f} ms")
    print(f"down for {told['down']:.1f} s; all {told['clients']} back", end=" ")
    print(f"{told['everybody_back']:.1f} s later; {len(told['lost'])} lost", *told["lost"][:3])
    drained = told["drained"]
    print(f"{drained['speaking']} were speaking at the signal,", end=" ")
    print(
        f"{drained['to_its_end_by_the_old_server']} of them to their end at the old server,",
        end=" ",
    )
    print(f"which ended after {drained['ended_after']:.1f} s with status {drained['status']}")
    print(f"{told['interrupted']['utterances']} asked for before it was up,", end=" ")
    print(
        f"all heard {told['heard_again']:.1f} s after that; refusals: {told['refused']};", end=" "
    )
    print(f"kept from a core: {told['kept_waiting']:.2f} s at most")
    for row in told["windows"]:
        print(f"  {row['from']:4.0f} s  {row['utterances']:4d} utterances", end="  ")
        print(f"p50 {row['p50'] * 1e3:6.0f} ms  p99 {row['p99'] * 1e3:6.0f} ms")
    print(f"recovered after {told['recovered']:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
