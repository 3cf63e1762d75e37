"""The last look at the answer to each handshake."""

import re
from collections.abc import Callable
from typing import Final

from playhead.gateway.agent import node_header
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

_REPEATED: Final = re.compile(rb"(Sec-WebSocket-Protocol header): [^\n]*")
"""What the WebSocket library says of a header that it cannot read: all of it, and Deepgram's
clients put their key there (``token, KEY``)."""

Answered = Callable[[ServerConnection, Request, Response], Response | None]


def answered(node: str | None) -> Answered:
    """For ``process_response`` of the WebSocket library: names this process, and does not repeat
    what may be a key."""
    name = node_header(node)

    def answer(peer: ServerConnection, request: Request, response: Response) -> Response | None:
        body = bytes(response.body or b"")
        told = _REPEATED.sub(rb"\1 that cannot be read", body)
        if told != body:
            response.body = told
            del response.headers["Content-Length"]
            response.headers["Content-Length"] = str(len(told))
        return name(peer, request, response)

    return answer
