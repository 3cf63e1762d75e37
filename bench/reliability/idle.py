#!/usr/bin/env python3
"""Ten thousand sessions that do nothing: memory, processor time, accepts, and what stays behind.

python bench/reliability/idle.py --out docs/data/reliability_idle.json
python bench/reliability/idle.py --sessions 500 --rounds 2 --watch 3      # quick form
"""

import argparse
import asyncio
import resource
import socket
import time
from typing import Any

import uvloop
from kit import Server, message, save, server, upgrade

HELLO = message(type="hello")
AT_ONCE = 64


class Idle(asyncio.Protocol):
    """One client that has said hello, answers pings, and is silent."""

    def __init__(self, port: int, ready: "asyncio.Future[None]") -> None:
        self._port = port
        self._ready = ready
        self._open = False
        self._rest = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(upgrade(self._port))

    def data_received(self, data: bytes) -> None:
        self._rest += data
        if not self._open:
            head, found, rest = self._rest.partition(b"\r\n\r\n")
            if not found:
                return
            if b" 101 " not in head.split(b"\r\n")[0]:
                self._fail(head.split(b"\r\n")[0].decode())
                return
            self._open, self._rest = True, rest
            self.transport.write(HELLO)
        self._frames()

    def _frames(self) -> None:
        while len(self._rest) >= 2:
            opcode, size, at = self._rest[0] & 15, self._rest[1], 2
            if size == 126:
                size, at = int.from_bytes(self._rest[2:4], "big"), 4
            if len(self._rest) < at + size:
                return
            payload, self._rest = self._rest[at : at + size], self._rest[at + size :]
            if opcode == 9:
                self.transport.write(bytes([0x8A, 0x80 | len(payload)]) + bytes(4) + payload)
            elif opcode == 8:
                self.transport.close()
            elif opcode == 1 and not self._ready.done():
                self._ready.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail("closed")

    def _fail(self, why: str) -> None:
        if not self._ready.done():
            self._ready.set_exception(ConnectionError(why))


async def arrive(port: int, count: int) -> list[Idle]:
    """So many sessions, opened as fast as the server takes them."""
    loop = asyncio.get_running_loop()
    gate = asyncio.Semaphore(AT_ONCE)

    async def one() -> Idle:
        async with gate:
            ready: asyncio.Future[None] = loop.create_future()
            plain = socket.socket()
            plain.setblocking(False)
            await loop.sock_connect(plain, ("127.0.0.1", port))
            _, client = await loop.create_connection(lambda: Idle(port, ready), sock=plain)
            await ready
            return client

    return list(await asyncio.gather(*(one() for _ in range(count))))


async def leave(running: Server, clients: list[Idle]) -> None:
    """All close at once; wait until the server has none left."""
    for client in clients:
        client.transport.write(message(type="close"))
    for _ in range(300):
        await asyncio.sleep(0.1)
        if await running.metric("playhead_connections") == 0:
            return
    raise AssertionError("sessions leak")


async def measure(sessions: int, rounds: int, watch: float) -> dict[str, Any]:
    """The figures of one server process."""
    flags = ("--max-connections", str(sessions + 100))
    flags += ("--max-connections-per-address", str(sessions + 100), "--log-level", "warning")
    async with server(*flags) as running:
        warm = await arrive(running.port, 100)
        await leave(running, warm)
        empty, descriptors = running.rss, running.descriptors
        history = []
        for number in range(rounds + 1):
            began, used = time.monotonic(), running.cpu
            clients = await arrive(running.port, sessions)
            took, used = time.monotonic() - began, running.cpu - used
            await asyncio.sleep(2.0)
            full = running.rss
            if number == 0:
                share = await idle_share(running, watch)
                first, accepts = full, sessions / took
            history.append({"full": full, "accepts_per_s": round(sessions / took)})
            history[-1]["accepts_per_core_s"] = round(sessions / used)
            await leave(running, clients)
            history[-1]["empty"] = running.rss
            print(number, history[-1], flush=True)
        return {
            "sessions": sessions,
            "rss_per_session_kib": round((first - empty) / sessions / 1024, 1),
            "idle_cpu_of_a_core": round(share, 4),
            "accepts_per_s": round(accepts),
            "accepts_per_core_s": history[0]["accepts_per_core_s"],
            "growth_since_first": round(history[-1]["full"] / first - 1, 4),
            "growth_since_second": round(history[-1]["full"] / history[:2][-1]["full"] - 1, 4),
            "descriptors_left": running.descriptors - descriptors,
            "rounds": history,
        }


async def idle_share(running: Server, watch: float) -> float:
    """Processor time used per second while nothing happens but keepalive."""
    await asyncio.sleep(10.0 if watch > 10 else 1.0)  # the first pings come soon after the start
    before, began = running.cpu, time.monotonic()
    await asyncio.sleep(watch)
    return (running.cpu - before) / (time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--watch", type=float, default=30.0)
    parser.add_argument("--out")
    args = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    save(args.out, uvloop.run(measure(args.sessions, args.rounds, args.watch)))


if __name__ == "__main__":
    main()
