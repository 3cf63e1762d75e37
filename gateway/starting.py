"""What a server answers while its model loads: on its own ports, from a thread of its own.

Loading takes a second or several minutes, and holds the main thread. Whoever asks meanwhile is told
how far it is and to come again, instead of waiting in the backlog.
"""

import asyncio
import contextlib
import json
import math
import socket
import threading
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final

from playhead.engine import clock
from playhead.engine.progress import Progress, Stage
from playhead.engine.spread import Spread
from playhead.gateway.acceptor import Acceptor, Handler
from playhead.gateway.access_guard import Guard
from playhead.gateway.http import response
from playhead.gateway.last_call import last_call
from playhead.gateway.listen import Listeners

RETRY_AFTER: Final = 2.0
SPREAD: Final = 2.0
"""Share by which others are told to wait longer: the header has whole seconds, here 2 to 5."""
MOST_OPEN: Final = 256
"""At each port; further ones wait until there is room, or for the server."""
MOST_HEAD: Final = 8 * 1024
PATIENCE: Final = 2.0
"""Seconds for a handshake, a request and its answer together."""


def answer(head: bytes, stage: Stage, seconds: float, wait: float = RETRY_AFTER) -> bytes:
    """The response to a request of which ``head`` is the first line and what follows it, after
    loading for so many seconds: to come again in ``wait``, whole seconds of it. Pure."""
    words = head.partition(b"\r\n")[0].split(b" ")
    path = words[1].partition(b"?")[0] if len(words) == 3 else b""
    if path == b"/readyz":
        load = {"stage": stage.name, "done": round(stage.done, 3), "seconds": round(seconds, 1)}
        body = {"ready": False, "reason": "loading", "load": load}
    else:
        body = {
            "code": "not_ready",
            "message": f"the server is starting: {stage.name}, {stage.done:.0%}",
            "expected": "try again later",
        }
    made = response(
        HTTPStatus.SERVICE_UNAVAILABLE,
        json.dumps(body) + "\n",
        content_type="application/json",
        headers={"Retry-After": str(math.floor(wait))},
    )
    if words[0] == b"HEAD":
        made.body = b""
    return bytes(made.serialize())


@contextlib.contextmanager
def waiting(listeners: Listeners, guard: Guard) -> Iterator[Progress]:
    """Answer at all ports while the block runs; give it what is to hear how loading goes. Where the
    block raises nobody will serve, and who has connected is answered here to the last."""
    room = _WaitingRoom(guard)
    room.open(listeners)
    try:
        yield room.progress
    except BaseException:
        room.close(last=True)
        raise
    room.close()


class _WaitingRoom:
    """An event loop on a thread. The sockets stay open when it closes, and with them what it has
    not accepted yet."""

    def __init__(self, guard: Guard) -> None:
        self.progress = Progress()
        self._guard = guard
        self._began = clock.monotonic()
        self._spread = Spread(SPREAD)
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._last = False
        self._thread = threading.Thread(target=self._run, name="playhead-waiting", daemon=True)
        self._ports: list[tuple[socket.socket, Handler, dict[str, Any]]] = []

    def open(self, listeners: Listeners) -> None:
        """Begin."""
        secure = self._guard.options(PATIENCE)
        self._ports.append((listeners.sessions, self._http, secure))
        if listeners.http is not None:
            self._ports.append((listeners.http, self._http, secure))
        if listeners.agent is not None:
            self._ports.append((listeners.agent, self._agent, {}))
        self._thread.start()

    def close(self, *, last: bool = False) -> None:
        """Answer what was accepted, and end; ``last``: nobody will listen here after us."""
        self._last = last
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        acceptors = [
            Acceptor(
                listener,
                handler,
                most=MOST_OPEN,
                patience=PATIENCE,
                limit=MOST_HEAD,
                options=options,
            )
            for listener, handler, options in self._ports
        ]
        for acceptor in acceptors:
            acceptor.open()
        await self._over.wait()
        if self._last:
            await asyncio.gather(*(last_call(listener) for listener, _, _ in self._ports))
        await asyncio.gather(*(acceptor.close() for acceptor in acceptors))

    async def _agent(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"down#{self.progress.stage.name}\n".encode())
        writer.close()
        await writer.wait_closed()

    async def _http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seconds = clock.monotonic() - self._began
        writer.write(answer(head, self.progress.stage, seconds, self._spread(RETRY_AFTER)))
        await writer.drain()
        if not head.startswith((b"GET ", b"HEAD ")):
            # A socket that is closed with a body unread is reset, and the answer may be lost.
            if writer.can_write_eof():
                writer.write_eof()
            with contextlib.suppress(TimeoutError):  # TLS has no half that could be closed
                await asyncio.wait_for(_skip(reader), PATIENCE / 2)
        writer.close()
        await writer.wait_closed()


async def _skip(reader: asyncio.StreamReader) -> None:
    while await reader.read(MOST_HEAD):
        pass
