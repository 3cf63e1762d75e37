"""Which WebSocket subprotocol a connection speaks."""

from collections.abc import Sequence
from typing import Final

from playhead.gateway.access import Denied
from playhead.gateway.dialects import upgrade
from playhead.gateway.observe_server import is_viewer, viewer_subprotocol
from playhead.gateway.peer import Peer
from playhead.gateway.protocol import SUBPROTOCOLS
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request
from websockets.typing import Subprotocol

NATIVE: Final = [Subprotocol(name) for name in SUBPROTOCOLS]


def check(request: Request) -> None:
    """Raises :class:`Denied` for a handshake at our own path that names no protocol of ours."""
    if request.headers.get("Upgrade") and not set(upgrade.offered(request)) & set(SUBPROTOCOLS):
        raise Denied(
            400,
            "subprotocol",
            "no known WebSocket subprotocol was offered",
            "Sec-WebSocket-Protocol: " + " or ".join(SUBPROTOCOLS),
        )


def select(peer: ServerConnection, subprotocols: Sequence[Subprotocol]) -> Subprotocol | None:
    """The native protocol must be named; others need no name."""
    assert isinstance(peer, Peer)
    if is_viewer(peer.request):
        return viewer_subprotocol(subprotocols)
    if peer.dialect is not None:
        return upgrade.select(peer.dialect, subprotocols)
    return next((name for name in NATIVE if name in subprotocols), None)
