"""How soon and for how many: time to first audio, streams without a stall, memory, idle CPU.

Starts `playhead serve` on this machine and talks to it over real sockets from one other process, so
server and listeners share the cores. Listeners are strict: each keeps its own clock-driven
count of what it has played, reports it every 250 ms, and any moment without audio is a stall.

    python bench/gateway_load.py --out docs/data/gateway_load.json
"""

import argparse
import asyncio
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgpack
import uvloop
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

RATE = 24_000
THRESHOLD = 0.1
SENTENCES = (
    "The morning train to the coast leaves at a quarter past seven, and it is rarely late.",
    "Please take your umbrella, because the forecast says rain until the evening.",
    "Our library has moved to the second floor of the old post office.",
    "She asked whether the soup was still warm, and he laughed.",
    "Every listener has a buffer, and every buffer has an end.",
    "If you need help, press the green button and wait for the tone.",
    "The garden behind the school is open to everyone on Sundays.",
    "He had walked that road for years before he noticed the little bridge.",
)


@dataclass
class Listener:
    """One strict player: plays at the clock's rate once it holds the threshold."""

    first: float | None = None
    started: float | None = None
    received: int = 0
    end: float = 0.0  # when what was received has been played
    stalls: list[float] = field(default_factory=list)
    lanes: dict[str, int] = field(default_factory=dict)

    def arrive(self, samples: int, now: float) -> None:
        """Audio came."""
        if not samples:
            return
        if self.first is None:
            self.first = now
        self.received += samples
        if self.started is None:
            if self.received >= THRESHOLD * RATE:
                self.started = now
                self.end = now + self.received / RATE
            return
        if now > self.end:
            self.stalls.append(now - self.end)
            self.end = now
        self.end += samples / RATE

    def consumed(self, now: float) -> int:
        """Samples played by now."""
        if self.started is None:
            return 0
        return max(0, self.received - round(max(0.0, self.end - now) * RATE))


def hello(codec: str) -> dict[str, Any]:
    return {"type": "hello", "codec": codec, "start_threshold": THRESHOLD * 1e3}


async def open_session(url: str, codec: str) -> Any:
    socket = await connect(
        url,
        subprotocols=[Subprotocol("playhead.v1.msgpack")],
        compression=None,
        max_size=None,
        ping_interval=None,
    )
    await socket.send(msgpack.packb(hello(codec)))
    return socket


async def report(socket: Any, listener: Listener, epoch: int, until: float) -> None:
    """Say where the playhead is, every 250 ms."""
    while (now := time.monotonic()) < until:
        consumed = listener.consumed(now)
        state = "prebuffer" if listener.started is None else "playing"
        if listener.started is not None and now > listener.end:
            state = "stalled"
        message = {
            "type": "report",
            "epoch": epoch,
            "received": listener.received,
            "consumed": consumed,
            "heard": consumed,
            "buffered": listener.received - consumed,
            "state": state,
            "underruns": len(listener.stalls),
            "time": now * 1e3,
        }
        await socket.send(msgpack.packb(message))
        await asyncio.sleep(0.25)


async def speak_for(
    url: str, codec: str, number: int, seconds: float, delay: float
) -> dict[str, Any]:
    """One stream: a long text, listened to for ``seconds``, then cancelled."""
    await asyncio.sleep(delay)
    socket = await open_session(url, codec)
    listener = Listener()
    order = [SENTENCES[(number + i) % len(SENTENCES)] for i in range(40)]
    asked = time.monotonic()
    until = asked + seconds
    await socket.send(msgpack.packb({"type": "text", "text": " ".join(order)[:1900]}))
    reporter = asyncio.create_task(report(socket, listener, 1, until))
    failed = None
    try:
        async with asyncio.timeout_at(asyncio.get_running_loop().time() + seconds):
            async for frame in socket:
                message = msgpack.unpackb(frame)
                if message["type"] == "audio":
                    listener.arrive(message["samples"], time.monotonic())
                    lane = message["lane"]
                    listener.lanes[lane] = listener.lanes.get(lane, 0) + 1
                elif message["type"] == "failed":
                    failed = message["code"]
                    break
    except TimeoutError:
        pass
    reporter.cancel()
    now = time.monotonic()
    if listener.started is not None and now > listener.end and failed is None:
        listener.stalls.append(now - listener.end)
    await socket.send(msgpack.packb({"type": "close"}))
    await socket.close()
    return {
        "ttfa_ms": None if listener.first is None else round((listener.first - asked) * 1e3, 2),
        "stalls_ms": [round(s * 1e3, 1) for s in listener.stalls],
        "seconds": round(listener.received / RATE, 2),
        "lanes": listener.lanes,
        "failed": failed,
    }


async def first_audio(url: str, codec: str, times: int) -> list[float]:
    """TTFA of single short utterances, one after the other, in ms."""
    socket = await open_session(url, codec)
    await socket.recv()
    out = []
    for number in range(times):
        text = SENTENCES[number % len(SENTENCES)]
        asked = time.monotonic()
        await socket.send(msgpack.packb({"type": "text", "text": text}))
        await socket.send(msgpack.packb({"type": "end"}))
        first = None
        async for frame in socket:
            message = msgpack.unpackb(frame)
            if message["type"] == "audio" and message["samples"] and first is None:
                first = time.monotonic()
                await socket.send(msgpack.packb({"type": "cancel"}))
            if message["type"] in ("cancelled", "done", "failed"):
                break
        assert first is not None
        out.append((first - asked) * 1e3)
        await asyncio.sleep(0.25)  # the server takes five new utterances a second
    await socket.close()
    return out


async def crowd(url: str, codec: str, streams: int, seconds: float) -> dict[str, Any]:
    """``streams`` at once, started over two seconds."""
    rows = await asyncio.gather(
        *(speak_for(url, codec, n, seconds, 2.0 * n / streams) for n in range(streams))
    )
    stalled = [row for row in rows if row["stalls_ms"]]
    ttfa = sorted(row["ttfa_ms"] for row in rows if row["ttfa_ms"] is not None)
    return {
        "streams": streams,
        "codec": codec,
        "refused": sum(row["failed"] is not None for row in rows),
        "stalled": len(stalled),
        "worst_stall_ms": max((max(row["stalls_ms"]) for row in stalled), default=0.0),
        "ttfa_p50_ms": ttfa[len(ttfa) // 2] if ttfa else None,
        "ttfa_p95_ms": ttfa[int(0.95 * len(ttfa))] if ttfa else None,
        "audio_seconds": round(sum(row["seconds"] for row in rows), 1),
        "rows": rows,
    }


@dataclass
class Server:
    """A `playhead serve` of our own."""

    process: subprocess.Popen[str]
    url: str

    @classmethod
    def start(cls, *flags: str) -> "Server":
        """Start it and wait for its line."""
        command = [str(Path(sys.executable).parent / "playhead"), "serve", "--port", "0", *flags]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://([\d.]+:\d+)/", line):
                return cls(process, f"ws://{found[1]}/v1/session")
        raise RuntimeError("the server did not start")

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self, what: str) -> float:
        """``VmRSS`` or ``VmHWM`` in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"{what}:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1e3

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(60)


def single(server: Server, codec: str, times: int) -> dict[str, Any]:
    values = sorted(uvloop.run(first_audio(server.url, codec, times)))
    return {
        "codec": codec,
        "n": times,
        "p50_ms": round(statistics.median(values), 1),
        "p95_ms": round(values[int(0.95 * times)], 1),
        "max_ms": round(values[-1], 1),
    }


def search(server: Server, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Crowds of growing size until one stalls."""
    out = []
    for streams in args.streams:
        before = server.cpu_seconds()
        result = uvloop.run(crowd(server.url, args.codec, streams, args.seconds))
        result["server_cores"] = round((server.cpu_seconds() - before) / (args.seconds + 2), 2)
        result["rss_mb"] = round(server.memory("VmRSS"))
        out.append(result)
        shown = {k: v for k, v in result.items() if k != "rows"}
        print(json.dumps(shown), flush=True)
        time.sleep(2)
    return out


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--codec", default="pcm_s16le")
    parser.add_argument("--times", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--streams", type=int, nargs="*", default=[8, 16, 24, 32, 40, 48])
    parser.add_argument("--flags", default="", help="more flags for `playhead serve`, in quotes")
    args = parser.parse_args()
    server = Server.start(*args.flags.split())
    try:
        time.sleep(1)
        before = server.cpu_seconds()
        time.sleep(5)
        idle = (server.cpu_seconds() - before) / 5
        out: dict[str, Any] = {
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
            "python": platform.python_version(),
            "idle_cores": round(idle, 4),
            "idle_rss_mb": round(server.memory("VmRSS")),
            "single": single(server, args.codec, args.times),
        }
        print(json.dumps(out), flush=True)
        out["crowds"] = search(server, args)
        out["peak_rss_mb"] = round(server.memory("VmHWM"))
        print(json.dumps({"peak_rss_mb": out["peak_rss_mb"]}))
    finally:
        server.stop()
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
