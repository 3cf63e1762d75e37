"""How well is a listener followed that never reports, when its network stands still?

A client with `reports: false` plays what it gets without a break. Once a second of speech has been
heard it reads nothing for a while, as a network does that stands still (its receive buffer is
small, so little more arrives). Then it interrupts, and `cancelled.heard` is compared with what its
player has played. Once with what the kernel tells (SIOCOUTQ), once without.

    python bench/silent_listener.py [--stall 3] [--runs 5]
"""

import argparse
import asyncio
import socket
import sys
from dataclasses import replace
from pathlib import Path

import uvloop
from playhead.client.player import Player
from playhead.client.track import PlayerConfig
from playhead.engine import clock
from playhead.engine.lanes import cpu_limits
from playhead.engine.loop import Engine, EngineConfig
from playhead.gateway.messages import Audio, Cancel, Cancelled, End, Hello, ServerMessage, Text
from playhead.gateway.protocol import Wire
from playhead.gateway.serve import server_facts
from playhead.gateway.server import GatewayServer, bind
from playhead.gateway.settings import Settings
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from live import RATE, WaveRunner

TEXT = "the quick brown fox jumps over the lazy dog " * 6
RECEIVE_BUFFER = 4_096


class Listener:
    """Plays from the moment sound arrives, and knows how far it is."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._wire = Wire("msgpack")
        self._player = Player(PlayerConfig(sample_rate=RATE, start_threshold=0.0))
        self._begun = False

    async def send(self, *messages: Hello | Text | End | Cancel) -> None:
        for message in messages:
            await self._connection.send(self._wire.encode_client(message))

    async def listen(self, seconds: float) -> None:
        end = clock.monotonic() + seconds
        while (left := end - clock.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    self._take(self._wire.decode_server(await self._connection.recv()))
            except TimeoutError:
                return

    async def interrupt(self) -> tuple[float, float]:
        """Seconds heard: as the server says, and in truth."""
        self._player.advance(clock.monotonic())
        counters = self._player.counters(1, clock.monotonic())
        assert counters is not None
        await self.send(Cancel())
        while True:
            message = self._wire.decode_server(await self._connection.recv())
            if isinstance(message, Cancelled):
                return message.heard / RATE, counters.consumed / RATE

    def _take(self, message: ServerMessage | None) -> None:
        if not isinstance(message, Audio):
            return
        now = clock.monotonic()
        if not self._begun:
            self._player.begin(1, now)
            self._begun = True
        self._player.add(1, message.samples, message.final, now)


async def one(port: int, stall: float) -> tuple[float, float]:
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", port))
    wire = [Subprotocol("playhead.v1.msgpack")]
    async with connect(
        f"ws://127.0.0.1:{port}/v1/session",
        sock=raw,
        subprotocols=wire,
        max_size=None,
        compression=None,
        ping_interval=None,
    ) as connection:
        listener = Listener(connection)
        await listener.send(Hello(reports=False, start_threshold=0.0), Text(TEXT), End())
        await listener.listen(1.0)
        connection.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(stall)
        connection.transport.resume_reading()  # type: ignore[attr-defined]
        await listener.listen(1.0)
        return await listener.interrupt()


async def measure(observed: bool, stall: float, runs: int) -> list[tuple[float, float]]:
    settings = Settings(port=0, drain_timeout=0.0, slow_hold=60.0, slow_close=90.0)
    facts = replace(server_facts(settings, WaveRunner.info), observed=observed)

    def open_engine(deliver: object) -> Engine:
        engine = Engine(WaveRunner(), EngineConfig(cpu_limits(2)), deliver)  # type: ignore[arg-type]
        engine.start()
        return engine

    server = GatewayServer(settings, facts, open_engine)
    await server.start(bind(settings.host, settings.port))
    try:
        return [await one(server.port, stall) for _ in range(runs)]
    finally:
        server.hurry()
        await server.drain()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--stall", type=float, default=3.0, help="seconds that nothing is read")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    print(f"stall {args.stall:g} s, {args.runs} interruptions each; seconds")
    print(f"{'signal':<12} {'told':>6} {'heard':>6} {'error':>6}  worst")
    for name, observed in (("open loop", False), ("kernel", True)):
        found = uvloop.run(measure(observed, args.stall, args.runs))
        told, heard = (sum(column) / len(found) for column in zip(*found, strict=True))
        errors = [abs(said - true) for said, true in found]
        mean, worst = sum(errors) / len(errors), max(errors)
        print(f"{name:<12} {told:6.2f} {heard:6.2f} {mean:6.2f}  {worst:.2f}")


if __name__ == "__main__":
    main()
