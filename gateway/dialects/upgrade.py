"""The upgrade request of a dialect's client: what it asks for, and the refusal in its own terms."""

import uuid
from collections.abc import Sequence

from playhead.gateway.dialects import table
from playhead.gateway.dialects.base import Dialect, Refused
from playhead.gateway.http import response
from playhead.gateway.session import ServerFacts
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol


def route_of(request: Request) -> table.Route | None:
    """The dialect that ``request`` wants to be upgraded to."""
    return table.find(request.path) if request.headers.get("Upgrade") else None


def open_dialect(route: table.Route, request: Request, facts: ServerFacts) -> Dialect | Response:
    """A dialect for the connection, or the response that says why not."""
    headers = {name.lower(): value for name, value in request.headers.raw_items()}
    opening = table.opening_of(route, request.path, headers, offered(request))
    try:
        return route.open(opening, facts, str(uuid.uuid4()))
    except Refused as refusal:
        return response(
            refusal.status,
            refusal.body,
            content_type="application/json",
            headers=refusal.headers,
        )


def offered(request: Request) -> tuple[str, ...]:
    """The subprotocols that the client offers."""
    values = request.headers.get_all("Sec-WebSocket-Protocol")
    return tuple(name.strip() for value in values for name in value.split(","))


def select(dialect: Dialect, subprotocols: Sequence[Subprotocol]) -> Subprotocol | None:
    """The dialect's subprotocol when it is offered."""
    return next((name for name in subprotocols if name == dialect.subprotocol), None)
