"""Tells a balancer how this process is, in the words of HAProxy's agent check.

Each connection gets one line and is closed: ``ready up 37%`` (a weight: the measured slack),
``drain`` while speech ends before a stop, ``down`` when only a restart helps. See HAProxy's
configuration manual, ``agent-check``.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final, cast

from playhead.gateway.http import Readiness
from playhead.gateway.last_call import last_call, never
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

log: Final = logging.getLogger("playhead.gateway.agent")

NODE_HEADER: Final = "Playhead-Node"
LEAST: Final = 1
"""A full server keeps one per cent: when all are full, clients get its answer and not the
balancer's."""


def line(state: Readiness) -> bytes:
    """What the agent says."""
    if not state.alive:
        return b"down\n"
    if state.reason == "draining":
        return b"drain\n"
    slack = state.load.get("slack")
    percent = round(100 * slack) if isinstance(slack, float) else 100
    return f"ready up {max(LEAST, percent)}%\n".encode()


def node_header(
    node: str | None,
) -> Callable[[ServerConnection, Request, Response], Response | None]:
    """Names the process in the answer to each handshake, for a balancer to learn."""

    def name(_: ServerConnection, __: Request, response: Response) -> Response | None:
        if node is not None:
            response.headers[NODE_HEADER] = node
        return None

    return name


class Agent:
    """Serves the agent port. Event loop only."""

    def __init__(self, readiness: Callable[[], Readiness]) -> None:
        self._readiness = readiness
        self._listener: socket.socket | None = None
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket) -> None:
        """Answer on a bound socket."""
        self._listener = listener
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Answer(self._readiness), sock=listener)

    async def stop(self, hurried: Callable[[], bool] = never) -> None:
        """Answer whoever has come, and no more. Does nothing when it was not started. ``hurried``:
        see :func:`last_call`."""
        if self._server is not None and self._listener is not None:
            await last_call(self._listener, hurried)
            self._server.close()


class _Answer(asyncio.Protocol):
    """One line to whoever connects, in the turn in which that is known."""

    def __init__(self, readiness: Callable[[], Readiness]) -> None:
        self._readiness = readiness

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not asserted: uvloop's transports have the methods and not the base class.
        to = cast("asyncio.WriteTransport", transport)
        to.write(line(self._readiness()))
        to.close()
