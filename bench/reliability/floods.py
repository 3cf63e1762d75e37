"""What one abuser costs its neighbours, how soon it is gone, and how much memory it had.

A neighbour in a process of its own sends a `ping` message every few milliseconds and times the
answer: alone first, then beside each abuser, then alone again.

    python bench/reliability/floods.py --out docs/data/reliability_floods.json
    python bench/reliability/floods.py --seconds 1 --stalled 8                 # quick form
"""

import argparse
import asyncio
import contextlib
import multiprocessing
import time
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop
from kit import (
    BINARY,
    PING,
    TEXT,
    Server,
    frame,
    message,
    percentile,
    raw,
    read_frame,
    save,
    server,
)

EVERY = 0.025  # a client may send 50 a second
NEIGHBOURS = 4
ABUSER_SECONDS = 4.0
HEAD_START = 3.0  # until stalled readers have been found out
KIB = 1024
STALLED_P99, FLOOD_P99, GONE, MOST_KIB = 1.0, 5.0, 2.0, 512  # the goals: ms, ms, s, KiB
LAWFUL = ("messages of 60 KiB",)  # no rule of frames is broken: they are read slowly, and answered

Abuse = Callable[[int], Awaitable[None]]


def neighbour(port: int, seconds: float, results: Any) -> None:
    """Round trips in milliseconds, in a process of its own."""

    async def all_of_them() -> list[float]:
        found = await asyncio.gather(*(talk(number) for number in range(NEIGHBOURS)))
        return [trip for trips in found for trip in trips]

    async def talk(number: int) -> list[float]:
        await asyncio.sleep(EVERY * number / NEIGHBOURS)
        reader, writer = await raw(port)
        writer.write(message(type="hello"))
        await read_frame(reader)
        trips = []
        ends = time.perf_counter() + seconds
        while time.perf_counter() < ends:
            began = time.perf_counter()
            writer.write(message(type="ping", time=0.0))
            while b"pong" not in (await read_frame(reader))[1]:
                continue
            took = time.perf_counter() - began
            trips.append(1000 * took)
            await asyncio.sleep(max(0.0, EVERY - took))
        writer.close()
        return trips

    results.put(uvloop.run(all_of_them()))


async def beside(
    running: Server, seconds: float, abuse: Abuse | None, *, head_start: float = 0.0
) -> dict[str, Any]:
    """The neighbours' round trips while ``abuse`` goes on, and what the abuser came to.

    ``head_start``: seconds that it has before the neighbours come.
    """
    early = None if abuse is None or not head_start else asyncio.ensure_future(abuse(running.port))
    await asyncio.sleep(head_start)
    results: Any = multiprocessing.get_context("spawn").Queue()
    process = multiprocessing.get_context("spawn").Process(
        target=neighbour, args=(running.port, seconds + 1.0, results)
    )
    process.start()
    await asyncio.sleep(0.8)
    before = peak = running.rss
    found: dict[str, Any] = {}
    if abuse is not None:
        began = time.monotonic()
        task = early or asyncio.ensure_future(abuse(running.port))
        while not task.done() and time.monotonic() - began < ABUSER_SECONDS:
            await asyncio.sleep(0.02)
            peak = max(peak, running.rss)
        found["abuser_gone_after_s"] = round(time.monotonic() - began, 2) if task.done() else None
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await task
        found["memory_kib"] = round((peak - before) / KIB)
    trips = await asyncio.to_thread(results.get)
    process.join()
    found["p50_ms"] = round(percentile(trips, 0.5), 3)
    found["p99_ms"] = round(percentile(trips, 0.99), 3)
    found["max_ms"] = round(max(trips), 3)
    found["samples"] = len(trips)
    return found


def flood(data: bytes, *, reads: bool = True, protocol: str = "playhead.v1.json") -> Abuse:
    """Send ``data`` again and again, as fast as it goes, until the server ends it."""

    async def abuse(port: int) -> None:
        reader, writer = await raw(port, protocol, receive_buffer=None if reads else 4096)
        writer.write(message(type="hello") if protocol.endswith("json") else b"")
        sink = asyncio.ensure_future(_sink(reader)) if reads else None
        try:
            while not writer.is_closing():
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            if sink is not None:
                sink.cancel()
            writer.close()

    return abuse


async def _sink(reader: asyncio.StreamReader) -> None:
    while await reader.read(65_536):
        continue


def stalled(count: int, seconds: float) -> Abuse:
    """So many clients that ask for long speech and read none of it."""

    async def abuse(port: int) -> None:
        open_ones = []
        for _ in range(count):
            reader, writer = await raw(port, receive_buffer=4096)
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(message(type="hello"))
            writer.write(message(type="text", text="word " * 300) + message(type="end"))
            open_ones.append(writer)
        await asyncio.sleep(seconds)
        for writer in open_ones:
            writer.transport.abort()

    return abuse


def abusers() -> dict[str, Abuse]:
    """What is tried, by name."""
    tiny = frame(TEXT, b"{}")
    start = frame(TEXT, b"x", fin=False)
    return {
        "pings, read": flood(frame(PING, b"x" * 125) * 64),
        "pings, unread": flood(frame(PING, b"x" * 125) * 64, reads=False),
        "empty pings": flood(frame(PING) * 512),
        "tiny messages": flood(tiny * 512),
        "tiny messages, unread": flood(tiny * 512, reads=False),
        "tiny binary messages": flood(frame(BINARY, b"\x80") * 512, protocol="playhead.v1.msgpack"),
        "empty fragments": flood(start + frame(0, b"", fin=False) * 1024),
        "messages of 60 KiB": flood(message(type="text", text="x" * 60_000)),
        "cancel and start": flood((message(type="start") + message(type="cancel")) * 64),
    }


async def measure(seconds: float, stalled_clients: int, only: str | None) -> dict[str, Any]:
    """The whole table, or the row ``only``."""
    flags = ("--max-connections-per-address", "1000", "--log-level", "error")
    table: dict[str, Any] = {}
    async with server(*flags) as running:
        await beside(running, 1.0, None)
        table["alone"] = await beside(running, seconds, None)
        for name, abuse in abusers().items():
            if only not in (None, name):
                continue
            table[name] = await beside(running, seconds, abuse)
            print(name, table[name], flush=True)
        before = running.rss
        idle = stalled(stalled_clients, seconds + HEAD_START + 2.0)
        found = await beside(running, seconds, idle, head_start=HEAD_START)
        found["memory_kib_each"] = round((running.rss - before) / KIB / stalled_clients)
        del found["abuser_gone_after_s"], found["memory_kib"]
        table[f"{stalled_clients} stalled readers"] = found
        table["alone again"] = await beside(running, seconds, None)
    base = (table["alone"]["p99_ms"] + table["alone again"]["p99_ms"]) / 2
    for name, found in table.items():
        found["added_p99_ms"] = round(found["p99_ms"] - base, 3)
        judge(name, found)
    return {"seconds": seconds, "table": table}


def judge(name: str, found: dict[str, Any]) -> None:
    """Print a row beside its goals (docs/reliability.md, section 4)."""
    row = f"{name:24} p50 {found['p50_ms']:7.3f}  p99 {found['p99_ms']:7.3f} ms"
    if name.startswith("alone"):
        print(row)
        return
    most = STALLED_P99 if "stalled" in name else FLOOD_P99
    gone = found.get("abuser_gone_after_s", 0.0)
    memory = found.get("memory_kib", found.get("memory_kib_each", 0))
    missed = [f"p99 +{most:g} ms"] if found["added_p99_ms"] > most else []
    if name not in LAWFUL and (gone is None or gone > GONE):
        missed.append(f"gone within {GONE:g} s")
    if memory > MOST_KIB:
        missed.append(f"{MOST_KIB} KiB")
    verdict = "missed: " + ", ".join(missed) if missed else "met"
    print(f"{row}  added {found['added_p99_ms']:+7.3f}  gone {gone} s  {memory} KiB  {verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--stalled", type=int, default=64)
    parser.add_argument("--only", help="one abuser, by its name in the table")
    parser.add_argument("--out")
    args = parser.parse_args()
    save(args.out, uvloop.run(measure(args.seconds, args.stalled, args.only)))


if __name__ == "__main__":
    main()
