"""An echo server made of the gateway's own connections, for conformance suites.

Everything below the session is what `playhead serve` runs: the peer with its budgets, the inbox,
the line. Messages come back as they are.

    python bench/reliability/echo.py --port 9001
"""

import argparse
import asyncio
from typing import Any, cast

import uvloop
from playhead.gateway.arrivals import Arrivals
from playhead.gateway.commons import Commons
from playhead.gateway.line import Line
from playhead.gateway.listener import bind
from playhead.gateway.peer import Peer
from playhead.gateway.settings import Settings
from websockets.asyncio.server import ServerConnection, serve


class Echo:
    """Says everything again."""

    def __init__(self, peer: Peer, settings: Settings) -> None:
        self.line = Line(peer, settings, self)

    def take(self, frame: bytes | str, now: float) -> None:
        """A message: send it back."""
        self.line.send(frame)

    def hold(self, held: bool, now: float) -> None:
        """Nothing is made here that could be held."""

    def delay(self, one_way: float) -> None:
        """Of no interest."""

    def gave_up(self, now: float) -> None:
        """Nobody to tell."""


async def run(port: int) -> None:
    """Serve until killed."""
    settings = Settings(max_connections_per_address=1_000_000, max_connections=1_000_000)
    commons = Commons.of(settings, Arrivals(settings), asyncio.get_running_loop())

    def connection(*args: Any, **kwargs: Any) -> Peer:
        return Peer(*args, commons=commons, **kwargs)

    async def handle(peer: ServerConnection) -> None:
        await Echo(cast(Peer, peer), settings).line.run()

    server = await serve(
        handle,
        sock=bind("127.0.0.1", port),
        create_connection=cast("type[ServerConnection]", connection),
        compression=None,
        ping_interval=None,
        max_size=settings.max_message,
        write_limit=settings.write_limit,
    )
    print(f"echo on ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/", flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=0)
    uvloop.run(run(parser.parse_args().port))


if __name__ == "__main__":
    main()
