"""The roster of sessions over HTTP: looked at in the engine, at most a few times a second.

Event loop only.
"""

import asyncio
import contextlib
from http import HTTPStatus
from typing import Final

from playhead.engine import clock
from playhead.engine.picture import Belief, EnginePicture
from playhead.gateway.access_gate import Gate
from playhead.gateway.http import response
from playhead.gateway.hub import Hub
from playhead.gateway.peer import Peer
from playhead.gateway.roster import roster
from websockets.http11 import Request, Response

SESSIONS_PATH: Final = "/v1/sessions"
AS_NEW_AS: Final = 0.25
"""Seconds that an answer serves everybody who asks."""
PATIENCE: Final = 1.0
"""Seconds for the engine to be looked at; a dead one does not answer."""
CLOSED: Final = "this server shows its sessions to nobody (see --demo)\n"


class Roster:
    """Answers who is being spoken to, where viewers are permitted."""

    def __init__(self, hub: Hub, *, permitted: bool) -> None:
        self._hub = hub
        self._permitted = permitted
        self._asking = asyncio.Lock()
        self._text = ""
        self._until = 0.0

    async def answer(self, gate: Gate, peer: Peer, request: Request) -> Response:
        """The rows, or 403. Raises ``Denied`` for a page that is not known and a missing key."""
        gate.check_page(request)
        gate.admit(request.headers.raw_items(), request.path, peer.address)
        if not self._permitted:
            return response(HTTPStatus.FORBIDDEN, CLOSED)
        async with self._asking:
            if clock.monotonic() >= self._until:
                self._text = await self._look()
                self._until = clock.monotonic() + AS_NEW_AS
        return response(HTTPStatus.OK, self._text, content_type="application/json")

    async def _look(self) -> str:
        listeners = self._hub.listeners()
        wanted = [each.utterance for each in listeners if each.utterance is not None]
        beliefs: dict[int, Belief] = {}
        if wanted:
            with contextlib.suppress(TimeoutError):
                beliefs = (await asyncio.wait_for(self._picture(wanted), PATIENCE)).beliefs
        return roster(listeners, beliefs)

    async def _picture(self, utterances: list[int]) -> EnginePicture:
        loop = asyncio.get_running_loop()
        seen: asyncio.Future[EnginePicture] = loop.create_future()

        def keep(picture: EnginePicture) -> None:
            if not seen.done():
                seen.set_result(picture)

        def see(picture: EnginePicture) -> None:  # on the engine's thread
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(keep, picture)

        self._hub.engine.look(utterances, see)
        return await seen
