"""The upgrade request of a dialect's client: what it asks for, and the refusal in its own terms."""

import uuid
from collections.abc import Sequence
from http import HTTPStatus

from playhead.gateway.access import Denied
from playhead.gateway.access_gate import refusal_headers
from playhead.gateway.dialects import table, twilio_signature
from playhead.gateway.dialects.base import Dialect, Refused
from playhead.gateway.dialects.twilio import open_twilio
from playhead.gateway.http import response
from playhead.gateway.session import ServerFacts
from playhead.gateway.settings import Settings
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


def check_signature(route: table.Route, request: Request, settings: Settings) -> None:
    """Whether it is Twilio that calls, where the server knows the account's token.

    Raises ``Denied``.
    """
    if settings.twilio_token is None or route.open is not open_twilio:
        return
    base = settings.twilio_url or "wss://" + (request.headers.get_all("Host") or [""])[0]
    shown = (request.headers.get_all(twilio_signature.HEADER) or [""])[0]
    if not twilio_signature.signed(settings.twilio_token, base, request.path, shown):
        raise Denied(
            403,
            "signature",
            f"{twilio_signature.HEADER} is missing or does not fit this URL",
            "a request that Twilio has signed with the account's token",
        )


def in_its_words(request: Request, denied: Denied, answer: Response) -> Response:
    """``answer``, which turns a client away, as the client's own vendor would put it."""
    route = route_of(request)
    if route is None or route.refuse is None:
        return answer
    text = f"{denied.message}; expected {denied.expected}"
    body, more = route.refuse(denied.status, denied.code, text, str(uuid.uuid4()))
    return response(
        HTTPStatus(denied.status),
        body,
        content_type="application/json",
        headers={**refusal_headers(denied), **more},
    )


def offered(request: Request) -> tuple[str, ...]:
    """The subprotocols that the client offers."""
    values = request.headers.get_all("Sec-WebSocket-Protocol")
    return tuple(name.strip() for value in values for name in value.split(","))


def select(dialect: Dialect, subprotocols: Sequence[Subprotocol]) -> Subprotocol | None:
    """The dialect's subprotocol when it is offered."""
    return next((name for name in subprotocols if name == dialect.subprotocol), None)
