"""Accepts connections for a while and leaves all others to whoever listens at the socket next."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Final

log: Final = logging.getLogger("playhead.gateway.acceptor")

SHORTAGE: Final = 1.0
"""Seconds until the next look after the machine had nothing left for one more connection."""

Handler = Callable[
    [asyncio.StreamReader, asyncio.StreamWriter],
    Coroutine[Any, Any, None],
]
_GONE: Final = (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)


class Acceptor:
    """Has ``handler`` speak to whoever comes, to at most ``most`` at a time, each for at most
    ``patience`` seconds, handshake and all. Further ones wait in the kernel's queue. Running event
    loop only; needs one with ``add_reader`` for sockets that listen, which asyncio's own has.

    Not ``asyncio.Server``: that accepts as many as wait, each in a task that joins the server
    later. A server that was closed in between loses the connection, and its client hears nothing.
    """

    def __init__(
        self,
        listener: socket.socket,
        handler: Handler,
        *,
        most: int,
        patience: float,
        limit: int,
        options: dict[str, Any],
    ) -> None:
        """``limit``: bytes of what a reader looks for (``StreamReader``); ``options``: of
        ``loop.connect_accepted_socket``. ``listener`` must not block and stays open."""
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._handler = handler
        self._most = most
        self._patience = patience
        self._limit = limit
        self._options = options
        self._guests: set[asyncio.Task[None]] = set()
        self._open = False
        self._short: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Begin."""
        self._open = True
        self._listen()

    async def close(self) -> None:
        """Accept no more, and wait for those who were accepted."""
        self._open = False
        self._loop.remove_reader(self._listener)
        if self._short is not None:
            self._short.cancel()
        if self._guests:
            await asyncio.wait(self._guests)

    def _listen(self) -> None:
        self._short = None
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        while len(self._guests) < self._most:
            try:
                accepted, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as fault:
                log.warning("nobody is accepted for %g s: %s", SHORTAGE, fault)
                self._loop.remove_reader(self._listener)
                self._short = self._loop.call_later(SHORTAGE, self._listen)
                return
            accepted.setblocking(False)
            guest = self._loop.create_task(self._meet(accepted))
            self._guests.add(guest)
            guest.add_done_callback(self._leave)
        self._loop.remove_reader(self._listener)

    def _leave(self, guest: asyncio.Task[None]) -> None:
        full = len(self._guests) == self._most
        self._guests.discard(guest)
        if full and self._open and self._short is None:
            self._listen()

    async def _meet(self, accepted: socket.socket) -> None:
        with contextlib.suppress(*_GONE):
            async with asyncio.timeout(self._patience):
                reader = asyncio.StreamReader(self._limit)
                protocol = asyncio.StreamReaderProtocol(reader)
                transport, _ = await self._loop.connect_accepted_socket(
                    lambda: protocol, accepted, **self._options
                )
                writer = asyncio.StreamWriter(transport, protocol, reader, self._loop)
                try:
                    await self._handler(reader, writer)
                finally:
                    writer.transport.abort()
