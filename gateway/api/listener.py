"""The HTTP listener: uvicorn inside the gateway's own event loop.

What uvicorn leaves open is closed here: how many connections there may be, how long a request's
head may take, and what happens to a client that does not read.
"""

import asyncio
import contextlib
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, Self, cast

import h11
import uvicorn
from playhead.engine import clock
from playhead.gateway.admission import ConnectionCaps, address_key
from playhead.gateway.api.app import Api
from playhead.gateway.last_call import heard, last_call, never
from playhead.gateway.letting_go import forget_frames
from playhead.gateway.server import GatewayServer
from playhead.gateway.settings import Settings
from playhead.gateway.sockets import bound_deciphering, set_socket_options
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

KEEP_ALIVE: Final = 15
"""Seconds that an idle connection is kept for the client's next request."""
MOST_HEAD: Final = 16 * 1024
"""Bytes of a request's line and headers."""


class _Server(uvicorn.Server):
    """Leaves signals to the process that it is part of."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to ``playhead serve``."""
        yield


class HttpListener:
    """Serves an ASGI application on a bound socket. Event loop only."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        caps: ConnectionCaps,
        tls: ssl.SSLContext | None = None,
    ) -> None:

        def protocol(*args: Any, **kwargs: Any) -> BoundedHttp:
            return BoundedHttp(*args, **kwargs).bound(settings, caps)

        config = uvicorn.Config(
            app,
            http=cast(type[asyncio.Protocol], protocol),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",  # below DEBUG it tells whole requests
            access_log=False,
            server_header=False,
            backlog=512,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=max(1, round(settings.close_timeout)),
            h11_max_incomplete_event_size=MOST_HEAD,
        )
        config.load()
        config.ssl = tls  # the one that takes up renewed certificates, not a copy of the files
        self._server = _Server(config)
        self._settings = settings
        self._task: asyncio.Task[None] | None = None
        self._listener: socket.socket | None = None
        self.port = 0

    async def start(self, listener: socket.socket) -> None:
        """Serve on ``listener`` until :meth:`stop`."""
        self._listener = listener
        self.port = int(listener.getsockname()[1])
        # Accepted sockets inherit these on Linux and the BSDs.
        set_socket_options(listener, self._settings)
        self._task = asyncio.create_task(self._server.serve(sockets=[listener]))
        while not self._server.started and not self._task.done():
            await asyncio.sleep(0)
        if self._task.done():
            self._task.result()

    async def stop(self, hurried: Callable[[], bool] = never) -> None:
        """Hear whoever has come, close what is idle, let responses end for a while, cut the rest.
        Does nothing when it was not started. ``hurried``: see :func:`last_call`."""
        if self._listener is not None:
            await last_call(self._listener, hurried)
            for server in self._server.servers:
                server.close()
            # uvicorn would close these without an answer, and the requests may be on their way.
            await heard(self._unasked, hurried)
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()

    def _unasked(self) -> bool:
        return any(
            connection.unasked
            for connection in self._server.server_state.connections
            if isinstance(connection, BoundedHttp)
        )


def open_api(server: GatewayServer) -> HttpListener:
    """The HTTP API in front of the sessions and the engine of ``server``."""
    settings = server.settings
    api = Api(server.hub, settings, server.gate, since=int(clock.wall()))
    tls = server.guard.options(settings.open_timeout).get("ssl")
    return HttpListener(api.app, settings, server.caps, tls)


class BoundedHttp(H11Protocol):
    """One connection. Only methods of ``asyncio.Protocol`` are extended.

    :meth:`bound` must be called before its transport is there.
    """

    _head: asyncio.TimerHandle | None = None
    _blocked: asyncio.TimerHandle | None = None
    _key = ""
    _settings: Settings
    _caps: ConnectionCaps

    def bound(self, settings: Settings, caps: ConnectionCaps) -> Self:
        """Set the bounds."""
        self._settings, self._caps = settings, caps
        return self

    @property
    def unasked(self) -> bool:
        """Whether its first request is still awaited."""
        return self.cycle is None and not self.transport.is_closing()

    def connection_made(self, transport: Any) -> None:
        """Count the connection; its first request is awaited."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=self._settings.write_limit)
        bound_deciphering(transport)
        name = transport.get_extra_info("peername")
        self._key = address_key(str(name[0]) if name else "")
        self._caps.enter(self._key)
        if self._caps.flooded:
            transport.abort()
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the connection out."""
        self._caps.leave(self._key)
        for timer in (self._head, self._blocked):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A head in pieces must not hold a connection for ever."""
        super().data_received(data)
        self._await_head()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request, unless an answer has begun: that one ends."""
        # h11 raises its fault from a method of the fault's own, so a frame of its traceback holds
        # the fault, and others this connection with what was read.
        forget_frames(sys.exception())
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def pause_writing(self) -> None:
        """The client takes nothing: it has ``slow_close`` seconds."""
        super().pause_writing()
        self._blocked = self.loop.call_later(self._settings.slow_close, self.transport.abort)

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        if self._blocked is not None:
            self._blocked.cancel()

    @property
    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        if not self._idle and self._head is not None:
            self._head.cancel()
            self._head = None
        elif self._idle and self._head is None:
            self._head = self.loop.call_later(self._settings.open_timeout, self._no_head)

    def _no_head(self) -> None:
        self._head = None
        if self._idle:
            self.transport.abort()
