"""The listener: who may open a session, plain HTTP beside it, and the way down."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, Literal, cast

from playhead.engine import clock, garbage
from playhead.engine.types import EngineEvent
from playhead.gateway import subprotocols
from playhead.gateway.access import Access, Denied
from playhead.gateway.access_gate import TICKETS_PATH, Gate
from playhead.gateway.access_guard import Guard
from playhead.gateway.access_watch import watch
from playhead.gateway.arrivals import Arrivals
from playhead.gateway.collectors import (
    BuildCollector,
    EngineCollector,
    GarbageCollector,
    SessionCollector,
)
from playhead.gateway.commons import Commons
from playhead.gateway.connection import Connection
from playhead.gateway.dialects import upgrade
from playhead.gateway.dialects.adapter import DialectConnection
from playhead.gateway.door import EngineDoor
from playhead.gateway.handshake import answered
from playhead.gateway.http import METRICS_PATH, HttpSite, Page, Readiness, load_pages
from playhead.gateway.hub import Hub
from playhead.gateway.hush import hushed
from playhead.gateway.listener import BACKLOG
from playhead.gateway.listener import bind as bind
from playhead.gateway.looplag import LoopLag
from playhead.gateway.metrics import Metrics
from playhead.gateway.observe_server import Gallery, Viewing, is_viewer
from playhead.gateway.peer import Peer
from playhead.gateway.protocol import Wire
from playhead.gateway.roster_server import SESSIONS_PATH, Roster
from playhead.gateway.session import ServerFacts
from playhead.gateway.settings import Settings
from playhead.gateway.slack import shares, slack
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

log: Final = logging.getLogger("playhead.gateway.server")

SESSION_PATH: Final = "/v1/session"
GOING_AWAY: Final = 1001
SERVICE_RESTART: Final = 1012
DRAIN_POLL: Final = 0.02

Deliver = Callable[[list[EngineEvent]], None]
End = Callable[[Callable[[], bool]], Awaitable[None]]
"""Ends another port of this process; it is given whether to hurry."""


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
        guard: Guard | None = None,
    ) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.hub = Hub(facts, self.metrics, open_engine, encoder_threads=settings.encoder_threads)
        engine = self.hub.engine
        self.metrics.registry.register(EngineCollector(engine.stats, lambda: engine.tells))
        self.metrics.registry.register(
            SessionCollector(self.hub.session_counters, self.hub.sources)
        )
        self.metrics.registry.register(BuildCollector(facts.server, facts.model))
        self.metrics.slack.set_function(self.slack)
        self.draining = False
        self._hurry = asyncio.Event()
        self._handlers: set[asyncio.Task[None]] = set()
        self._arrivals = Arrivals(settings)
        self.caps = self._arrivals.caps
        self.guard = guard or Guard(settings)
        self.access = Access(
            self.guard.keys,
            address_connections=settings.max_connections_per_address,
            wall=clock.wall,
        )
        self.gate = Gate(settings, self.access, self._arrivals, self.metrics, self._closed)
        self._watcher: asyncio.Task[None] | None = None
        self.garbage = garbage.Keeper(
            # A session and its connection are one.
            lambda: max(len(self.hub.registry), self.caps.total),
            lambda: not self.hub.idle,
        )
        self.metrics.registry.register(GarbageCollector(self.garbage))
        self._lag = LoopLag(
            self.hub.loop, self.metrics.observe_lag, engine.paused, self.garbage.look
        )
        self._scrape = b""  # what the latest request for metrics is answered with
        self._site = HttpSite(
            load_pages() if pages is None else pages, self.readiness, lambda: self._scrape
        )
        self._gallery = Gallery(self.hub, permitted=settings.observable)
        self._roster = Roster(self.hub, permitted=settings.observable)
        self._server: Server | None = None

    # -- up ---------------------------------------------------------------------------------

    async def start(self, listener: socket.socket) -> None:
        """Serve on a bound socket (see :func:`bind`) that nobody else holds a copy of: at the end
        it is made deaf (:func:`playhead.gateway.last_call.last_call`)."""
        settings = self.settings
        self._arrivals.listener = listener
        commons = Commons.of(settings, self._arrivals, self.hub.loop)
        self._server = await serve(
            self._handle,
            sock=listener,
            create_connection=cast("type[ServerConnection]", partial(Peer, commons=commons)),
            process_request=self._process_request,
            logger=hushed("websockets.server"),
            subprotocols=subprotocols.NATIVE,
            select_subprotocol=subprotocols.select,
            process_response=answered(settings.node),
            compression=None,
            server_header="playhead",
            open_timeout=settings.open_timeout,
            close_timeout=settings.close_timeout,
            ping_interval=None,  # the connection keeps itself alive, with finer stamps
            max_size=settings.max_message,
            write_limit=settings.write_limit,
            backlog=BACKLOG,
            **self.guard.options(settings.open_timeout),
        )
        self._lag.start()
        self._watcher = asyncio.create_task(
            watch(self.guard, self.access, self.hub, lambda: self.peers)
        )

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
        taken = stats.occupied(clock.monotonic())
        full = len(self._handlers) >= self.settings.max_connections or taken >= stats.max_live
        reason = "full" if full else "ready"
        if self.draining:
            reason = "draining"
        elif not alive:
            reason = "engine_dead"
        load: dict[str, object] = {
            "model": self.hub.facts.model,
            "random_weights": self.hub.facts.random_weights,
            "sessions": len(self.hub.registry),
            "connections": len(self._handlers),
            "utterances": stats.live,
            "max_utterances": stats.max_live,
            "utilisation": round(stats.utilisation, 4),
            "uncaptured_calls": stats.model.uncaptured,
            "waiting": {lane.value: lane_stats.waiting for lane, lane_stats in stats.lanes.items()},
            "slack": round(self.slack(), 3),
        }
        return Readiness(reason == "ready", reason, load, alive)

    def slack(self) -> float:
        """What the tightest resource has left, 0 to 1."""
        stats, lag = self.hub.engine.stats(), self.metrics.lag.value
        most = self.settings.max_connections
        return slack(shares(stats, len(self._handlers), most, lag, clock.monotonic()))

    # -- down -------------------------------------------------------------------------------

    async def drain(self, code: int = SERVICE_RESTART, *others: End) -> None:
        """Refuse new work, let speech end (up to ``drain_timeout``), close, stop the engine;
        ``others`` end at the same time."""
        now = clock.monotonic()
        deadline = now + self.settings.drain_timeout
        self.draining = True
        self._gallery.close(code)
        self.hub.drain(deadline, now)
        while not (self.hub.idle or self._hurry.is_set()) and clock.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), DRAIN_POLL)
        await asyncio.gather(self._close(code), *(end(self._hurry.is_set) for end in others))

    def hurry(self) -> None:
        """Cut a running :meth:`drain` short: wait for no speech, nor for whoever has not asked."""
        self._hurry.set()

    async def _close(self, code: int) -> None:
        now, patience = clock.monotonic(), self.settings.close_timeout
        for host in self.hub.registry:
            host.stop(code, "server is shutting down", now)
        if self._handlers:
            await asyncio.wait(self._handlers, timeout=patience)
        if self._server is not None:
            await self._arrivals.last(self._hurry.is_set)
            self._server.server.close()  # accepts no more; what follows closes connections too
            await self._arrivals.heard(self._hurry.is_set)
            self._server.close(code=code)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._server.wait_closed(), patience + 1.0)
        self._lag.stop()
        if self._watcher is not None:
            self._watcher.cancel()
        self.hub.close()
        self.hub.engine.stop()

    # -- connections ------------------------------------------------------------------------

    async def _process_request(self, peer: ServerConnection, request: Request) -> Response | None:
        assert isinstance(peer, Peer)
        try:
            path = request.path.partition("?")[0]
            if path == METRICS_PATH:
                self.gate.check_scrape(peer, request)
                self._scrape = await self.metrics.written()
            if path == SESSIONS_PATH:
                return await self._roster.answer(self.gate, peer, request)
            return self._route(peer, request)
        except Denied as denied:
            return upgrade.in_its_words(request, denied, self.gate.refuse(denied))

    def _route(self, peer: Peer, request: Request) -> Response | None:
        """None: the peer is let in. Raises :class:`Denied`."""
        path = request.path.partition("?")[0]
        if path == SESSION_PATH:
            self.gate.check_page(request)
            subprotocols.check(request)
            self.gate.let_in(peer, request)
            return None
        if path == TICKETS_PATH:
            return self.gate.ticket(peer, request)
        if is_viewer(request):
            self.gate.check_page(request)
            if (answer := self._gallery.answer(request)) is None:
                self.gate.let_in(peer, request)
            return answer
        route = upgrade.route_of(request)
        if route is None:
            return self._site.respond(request)
        upgrade.check_signature(route, request, self.settings)
        self.gate.let_in(peer, request, late=route.late)
        dialect = upgrade.open_dialect(route, request, self.hub.facts)
        if isinstance(dialect, Response):
            self.metrics.refused("request")
            return dialect
        peer.dialect = dialect
        return None

    def _closed(self) -> tuple[str, str] | None:
        if self.draining:
            return "draining", "the server is going down"
        if self.hub.engine.dead is not None:
            return "not_ready", "the speech engine has stopped"
        return None

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
            admit = partial(self.gate.let_in_late, peer)
            return DialectConnection(peer, self.hub, peer.dialect, self.settings, admit)
        encoding = str(peer.subprotocol).rpartition(".")[2]
        wire = Wire(cast(Literal["msgpack", "json"], encoding))
        return Connection(peer, self.hub, wire, self.settings)
