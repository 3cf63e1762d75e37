"""Whether the other machine is there: told apart from what its server says, and when.

A machine is there when its kernel has taken the connection, which needs nothing of a server that is
busy, and as long as bytes come, whatever they are part of.
"""

import asyncio
import ssl
from typing import Any, Final

from playhead.engine.clock import monotonic
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidURI
from websockets.proxy import get_proxy
from websockets.uri import parse_uri

_SLICES: Final = 10


async def came(awaited: asyncio.Future[Any], seconds: float | None) -> bool:
    """Whether ``awaited`` is done within ``seconds``. It is left alone otherwise.

    Counted in tenths: a process that stands still meanwhile loses one of them, whatever time it is
    then, and reads what has come to its kernel in the others.
    """
    for _ in range(_SLICES):
        tenth = None if seconds is None else seconds / _SLICES
        if (await asyncio.wait({awaited}, timeout=tenth))[0]:
            return True
    return False


class Reached(ClientConnection):
    """Sets ``there`` when the other machine has taken the connection. ``came``: monotonic seconds
    at which bytes came last."""

    def __init__(self, *args: Any, there: asyncio.Event, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.came = monotonic()
        self._there = there

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It has; with TLS, it had long ago."""
        super().connection_made(transport)
        self._there.set()

    def data_received(self, data: bytes) -> None:
        """Something has come: a message, a part of one, an answer to a ping."""
        self.came = monotonic()
        super().data_received(data)


def secured(url: str, there: asyncio.Event) -> ssl.SSLContext | None:
    """For a URL with TLS the usual context, which sets ``there`` as soon as bytes can be exchanged:
    the handshake that follows is the server's work."""
    if not url.startswith("wss:"):
        return None

    class Told(ssl.SSLObject):
        def do_handshake(self) -> None:
            there.set()
            super().do_handshake()

    context = ssl.create_default_context()
    context.sslobject_class = Told
    return context


def direct(url: str) -> bool:
    """Whether the connection is made to the server's machine, not to a proxy that answers when it
    has reached it: that one may be busy too."""
    try:
        return get_proxy(parse_uri(url)) is None
    except InvalidURI:
        return True
