"""The endpoint for viewers: pictures of the engine out, orders for the crowd in.

Opened to viewers on a loopback address, or with ``--demo on``; event loop only.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from playhead.engine import clock
from playhead.engine.picture import EnginePicture
from playhead.gateway import observe
from playhead.gateway.crowd_run import CrowdRun
from playhead.gateway.dialects import upgrade
from playhead.gateway.http import response
from playhead.gateway.hub import Hub
from playhead.gateway.observe import CrowdOrder, Throttle, Watch
from playhead.gateway.peer import Peer
from playhead.gateway.protocol import ProtocolError
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

log: Final = logging.getLogger("playhead.gateway.observe")

OBSERVE_PATH: Final = "/v1/observe"
MOST_VIEWERS: Final = 8
TRY_AGAIN: Final = 1013
POLICY_VIOLATION: Final = 1008
BAD_ORDERS: Final = 20
ORDER_PAUSE: Final = 0.05
"""Seconds between two orders that are read: an order restarts a crowd of sessions."""


def is_viewer(request: Request | None) -> bool:
    """Whether a request is for this endpoint."""
    return request is not None and request.path.partition("?")[0] == OBSERVE_PATH


def viewer_subprotocol(offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """The endpoint's own, when it is offered."""
    return next((name for name in offered if name == observe.SUBPROTOCOL), None)


class Gallery:
    """All viewers of one server."""

    def __init__(self, hub: Hub, *, permitted: bool) -> None:
        self._hub = hub
        self._permitted = permitted
        self._crowd = CrowdRun(hub)
        self._viewers: set[Viewing] = set()

    def answer(self, request: Request) -> Response | None:
        """For a request that may not, or does not want to, become a WebSocket."""
        wanted = bool(request.headers.get("Upgrade"))
        status = HTTPStatus.OK
        if wanted and not self._permitted:
            status = HTTPStatus.FORBIDDEN
        elif wanted and observe.SUBPROTOCOL not in upgrade.offered(request):
            status = HTTPStatus.BAD_REQUEST
        elif wanted:
            return None
        return response(status, observe.offer(self._permitted), content_type="application/json")

    def viewer(self, peer: Peer) -> "Viewing":
        """Somebody who was let in."""
        return Viewing(peer, self._hub, self._crowd, self._viewers)

    def close(self, code: int) -> None:
        """The server is going down: end the crowd, and send the viewers away."""
        self._crowd.close()
        for viewer in self._viewers:
            viewer.peer.fail(code, "server is shutting down")


class Viewing:
    """One of them. A viewer that does not read gets fewer pictures, never a longer queue."""

    def __init__(self, peer: Peer, hub: Hub, crowd: CrowdRun, viewers: "set[Viewing]") -> None:
        self.peer = peer
        self._viewers = viewers
        self._hub = hub
        self._crowd = crowd
        self._session: str | None = None
        self._throttle = Throttle(clock.monotonic())
        self._picture: asyncio.Queue[EnginePicture] = asyncio.Queue(1)

    async def run(self) -> None:
        """Serve until either side is done. Raises nothing for a viewer that vanishes."""
        if len(self._viewers) >= MOST_VIEWERS:
            await self.peer.close(TRY_AGAIN, "too many viewers")
            return
        self._viewers.add(self)
        try:
            await self._show()
        finally:
            self._viewers.discard(self)
            self._crowd.left(self)

    async def _show(self) -> None:
        pictures = asyncio.create_task(self._tell())
        try:
            with contextlib.suppress(ConnectionClosed):
                await self._listen()
        finally:
            pictures.cancel()
            results = await asyncio.gather(pictures, return_exceptions=True)
            for fault in results:
                if isinstance(fault, Exception) and not isinstance(fault, ConnectionClosed):
                    log.error("a viewer's pictures failed", exc_info=fault)

    async def _listen(self) -> None:
        patience = BAD_ORDERS
        async for frame in self.peer:
            try:
                self._obey(observe.parse(frame))
            except ProtocolError as fault:
                patience -= 1
                await self.peer.send(observe.error(fault))
                if not patience:
                    await self.peer.close(POLICY_VIOLATION, "bad orders")
            await asyncio.sleep(ORDER_PAUSE)

    def _obey(self, order: observe.Order) -> None:
        match order:
            case Watch(session):
                self._session = session
            case CrowdOrder():
                assert self.peer.grant is not None, "nobody gets here without passing the gate"
                self._crowd.obey(order, self, self.peer.grant)

    async def _tell(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._throttle.wait(clock.monotonic()))
            if not self._throttle.ask(clock.monotonic()):
                continue
            own = self._hub.utterance_of(self._session)
            wanted = () if own is None else (own,)
            self._hub.engine.look(wanted, lambda seen: self._seen(loop, seen))
            picture = await self._picture.get()
            self._throttle.answered()
            text = observe.stats(picture, own, len(self._hub.registry), self._crowd.public())
            await self.peer.send(text)  # waits while the viewer does not read

    def _seen(self, loop: asyncio.AbstractEventLoop, picture: EnginePicture) -> None:
        """On the engine's thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody looks any more
            loop.call_soon_threadsafe(self._picture.put_nowait, picture)
