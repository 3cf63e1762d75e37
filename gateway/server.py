"""The listener: who may open a session, plain HTTP beside it, and the way down."""

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, Literal, cast

from playhead.engine import clock
from playhead.engine.types import EngineEvent
from playhead.gateway.admission import ConnectionCaps, origin_allowed
from playhead.gateway.collectors import BuildCollector, EngineCollector, SessionCollector
from playhead.gateway.connection import Connection
from playhead.gateway.dialects import upgrade
from playhead.gateway.dialects.adapter import DialectConnection
from playhead.gateway.door import EngineDoor
from playhead.gateway.http import HttpSite, Page, Readiness, load_pages, response
from playhead.gateway.hub import Hub
from playhead.gateway.listener import BACKLOG
from playhead.gateway.listener import bind as bind
from playhead.gateway.looplag import LoopLag
from playhead.gateway.metrics import Metrics
from playhead.gateway.observe_server import Gallery, Viewing, is_viewer, viewer_subprotocol
from playhead.gateway.peer import Peer
from playhead.gateway.protocol import SUBPROTOCOLS, Wire
from playhead.gateway.session import ServerFacts
from playhead.gateway.settings import Settings
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

log: Final = logging.getLogger("playhead.gateway.server")

SESSION_PATH: Final = "/v1/session"
GOING_AWAY: Final = 1001
SERVICE_RESTART: Final = 1012
RETRY_AFTER: Final = "5"
DRAIN_POLL: Final = 0.02
_SUBPROTOCOLS: Final = [Subprotocol(name) for name in SUBPROTOCOLS]

Deliver = Callable[[list[EngineEvent]], None]


class GatewayServer:
    """One listening socket, its sessions and the engine behind them. Event loop only.

    ``open_engine`` is called once with the function that takes the engine's events.
    """

    def __init__(
        self,
        settings: Settings,
        facts: ServerFacts,
        open_engine: Callable[[Deliver], EngineDoor],
        *,
        pages: Mapping[str, Page] | None = None,
    ) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.hub = Hub(facts, self.metrics, open_engine, encoder_threads=settings.encoder_threads)
        self.metrics.registry.register(EngineCollector(self.hub.engine.stats))
        self.metrics.registry.register(SessionCollector(self.hub.session_counters))
        self.metrics.registry.register(BuildCollector(facts.server, facts.model))
        self.draining = False
        self._hurry = asyncio.Event()
        self._handlers: set[asyncio.Task[None]] = set()
        self._caps = ConnectionCaps(settings.max_connections, settings.max_connections_per_address)
        self._lag = LoopLag(self.hub.loop, self.metrics.observe_lag)
        self._site = HttpSite(
            load_pages() if pages is None else pages, self.readiness, self.metrics.text
        )
        self._gallery = Gallery(self.hub, permitted=settings.observable)
        self._server: Server | None = None

    # -- up ---------------------------------------------------------------------------------

    async def start(self, listener: socket.socket) -> None:
        """Serve on a bound socket (see :func:`bind`)."""
        settings = self.settings
        self._server = await serve(
            self._handle,
            sock=listener,
            create_connection=cast("type[ServerConnection]", self._peer),
            process_request=self._process_request,
            subprotocols=_SUBPROTOCOLS,
            select_subprotocol=_select_subprotocol,
            compression=None,
            server_header="playhead",
            open_timeout=settings.open_timeout,
            close_timeout=settings.close_timeout,
            ping_interval=None,  # the connection keeps itself alive, with finer stamps
            max_size=settings.max_message,
            write_limit=settings.write_limit,
            backlog=BACKLOG,
        )
        self._lag.start()

    @property
    def port(self) -> int:
        """The TCP port listened on."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def peers(self) -> list[Peer]:
        """The open WebSocket connections."""
        found = self._server.connections if self._server is not None else ()
        return [peer for peer in found if isinstance(peer, Peer)]

    def readiness(self) -> Readiness:
        """What ``/readyz`` tells."""
        stats = self.hub.engine.stats()
        alive = self.hub.engine.dead is None
        full = len(self._handlers) >= self.settings.max_connections or stats.live >= stats.max_live
        reason = "full" if full else "ready"
        if self.draining:
            reason = "draining"
        elif not alive:
            reason = "engine_dead"
        load: dict[str, object] = {
            "model": self.hub.facts.model,
            "sessions": len(self.hub.registry),
            "connections": len(self._handlers),
            "utterances": stats.live,
            "max_utterances": stats.max_live,
            "utilisation": round(stats.utilisation, 4),
            "waiting": {lane.value: lane_stats.waiting for lane, lane_stats in stats.lanes.items()},
        }
        return Readiness(reason == "ready", reason, load, alive)

    # -- down -------------------------------------------------------------------------------

    async def drain(self, code: int = SERVICE_RESTART) -> None:
        """Refuse new work, let speech end (up to ``drain_timeout``), close, stop the engine."""
        now = clock.monotonic()
        deadline = now + self.settings.drain_timeout
        self.draining = True
        self._gallery.close(code)
        self.hub.drain(deadline, now)
        while not (self.hub.idle or self._hurry.is_set()) and clock.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), DRAIN_POLL)
        await self._close(code)

    def hurry(self) -> None:
        """Cut a running :meth:`drain` short."""
        self._hurry.set()

    async def _close(self, code: int) -> None:
        now = clock.monotonic()
        for host in self.hub.registry:
            host.stop(code, "server is shutting down", now)
        if self._handlers:
            await asyncio.wait(self._handlers, timeout=self.settings.close_timeout)
        if self._server is not None:
            self._server.close(code=code)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(
                    self._server.wait_closed(), self.settings.close_timeout + 1.0
                )
        self._lag.stop()
        self.hub.close()
        self.hub.engine.stop()

    # -- connections ------------------------------------------------------------------------

    def _peer(self, *args: Any, **kwargs: Any) -> Peer:
        return Peer(*args, settings=self.settings, caps=self._caps, **kwargs)

    def _process_request(self, peer: ServerConnection, request: Request) -> Response | None:
        assert isinstance(peer, Peer)
        if request.path.partition("?")[0] == SESSION_PATH:
            return (
                self._refuse_origin(request)
                or self._refuse_subprotocol(request)
                or self._refuse_load(peer)
            )
        if is_viewer(request):
            refusal = self._refuse_origin(request) or self._gallery.answer(request)
            return refusal or self._refuse_load(peer)
        route = upgrade.route_of(request)
        if route is None:
            return self._site.respond(request)
        refusal = self._refuse_origin(request) or self._refuse_load(peer)
        if refusal is not None:
            return refusal
        dialect = upgrade.open_dialect(route, request, self.hub.facts)
        if isinstance(dialect, Response):
            self.metrics.refused("request")
            return dialect
        peer.dialect = dialect
        return None

    def _refuse_origin(self, request: Request) -> Response | None:
        origins = request.headers.get_all("Origin")
        hosts = request.headers.get_all("Host")
        settings = self.settings
        if len(origins) > 1 or not origin_allowed(
            origins[0] if origins else None,
            hosts[0] if len(hosts) == 1 else "",
            settings.origins,
            allow_remote=settings.allow_remote,
        ):
            return self._refusal(
                HTTPStatus.FORBIDDEN,
                "origin",
                "pages of this origin may not connect",
                "a page of this server or of this machine, or one named with --origins",
            )
        return None

    def _refuse_subprotocol(self, request: Request) -> Response | None:
        offered = upgrade.offered(request)
        if request.headers.get("Upgrade") and not set(offered) & set(SUBPROTOCOLS):
            return self._refusal(
                HTTPStatus.BAD_REQUEST,
                "subprotocol",
                "no known WebSocket subprotocol was offered",
                "Sec-WebSocket-Protocol: " + " or ".join(SUBPROTOCOLS),
            )
        return None

    def _refuse_load(self, peer: Peer) -> Response | None:
        """Whether the server can take one more connection."""
        if self.draining:
            return self._busy("draining", "the server is going down")
        if self.hub.engine.dead is not None:
            return self._busy("not_ready", "the speech engine has stopped")
        reason = self._caps.refusal(peer.address)
        if reason == "connections":
            return self._busy(reason, "too many connections")
        if reason is not None:
            return self._refusal(
                HTTPStatus.TOO_MANY_REQUESTS,
                reason,
                "too many connections from this address",
                f"at most {self.settings.max_connections_per_address} at a time",
                retry=True,
            )
        return None

    def _busy(self, reason: str, message: str) -> Response:
        return self._refusal(
            HTTPStatus.SERVICE_UNAVAILABLE, reason, message, "try again later", retry=True
        )

    def _refusal(
        self, status: HTTPStatus, code: str, message: str, expected: str, *, retry: bool = False
    ) -> Response:
        self.metrics.refused(code)
        body = json.dumps({"code": code, "message": message, "expected": expected}) + "\n"
        headers = {"Retry-After": RETRY_AFTER} if retry else {}
        return response(status, body, content_type="application/json", headers=headers)

    async def _handle(self, peer: ServerConnection) -> None:
        assert isinstance(peer, Peer)
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._handlers.add(task)
        self.metrics.connections.set(len(self._handlers))
        try:
            await self._connection(peer).run()
        finally:
            self._handlers.discard(task)
            self.metrics.connections.set(len(self._handlers))

    def _connection(self, peer: Peer) -> Connection | DialectConnection | Viewing:
        if is_viewer(peer.request):
            return self._gallery.viewer(peer)
        if peer.dialect is not None:
            return DialectConnection(peer, self.hub, peer.dialect, self.settings)
        encoding = str(peer.subprotocol).rpartition(".")[2]
        wire = Wire(cast(Literal["msgpack", "json"], encoding))
        return Connection(peer, self.hub, wire, self.settings)


def _select_subprotocol(
    peer: ServerConnection, subprotocols: Sequence[Subprotocol]
) -> Subprotocol | None:
    """The native protocol must be named; others need no name."""
    assert isinstance(peer, Peer)
    if is_viewer(peer.request):
        return viewer_subprotocol(subprotocols)
    if peer.dialect is not None:
        return upgrade.select(peer.dialect, subprotocols)
    return next((name for name in _SUBPROTOCOLS if name in subprotocols), None)
