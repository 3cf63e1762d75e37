"""What a request shows, out of the places of ``access_places``. Pure.

Keys go into headers: ``Authorization: Bearer KEY`` (RFC 6750 section 2.1; ``Token KEY`` is the
same), ``X-API-Key``, ``xi-api-key``, ``kyutai-api-key``. A browser's WebSocket can send none of
them, only subprotocols and a URL; so tickets are also taken from the subprotocol
``playhead.ticket.TICKET``, from those in which clients of other services carry their key, from the
query, and from the end of the path, for clients that have no query either. A key in a URL ends up
in logs and histories: it is refused there even when it is right.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from urllib.parse import parse_qsl, unquote

from playhead.gateway.access_keys import KEY_PREFIX, TICKET_PREFIX
from playhead.gateway.access_places import Use, Where, canonical, names

SCHEMES: Final = ("bearer", "token")
KEY_HEADERS: Final = {name.lower() for name in names(Where.HEADER, Use.KEY)} - {"authorization"}
PROTOCOL_PREFIXES: Final = names(Where.PROTOCOL, Use.KEY)
PROTOCOL_BEFORE: Final = names(Where.PROTOCOL_NEXT, Use.KEY)
"""Subprotocols after which the next one is the secret (Deepgram's clients in browsers)."""
QUERY_FIELDS: Final = {canonical(name) for name in names(Where.QUERY, Use.TICKET)}
MAX_FIELDS: Final = 64


class Misplaced(ValueError):
    """A key stands where it must not, or two stand where one may."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a client shows at the door: a key, a ticket, or nothing. Never both."""

    key: str | None = None
    ticket: str | None = None

    def __repr__(self) -> str:
        # Whatever prints an offer must not print a secret.
        kind = "key" if self.key is not None else "ticket" if self.ticket is not None else "nothing"
        return f"Offer({kind})"


def read(headers: Iterable[tuple[str, str]], path: str) -> Offer:
    """What a request offers. Raises :class:`Misplaced`."""
    shown = [secret for name, value in headers for secret in _in_header(name.lower(), value)]
    resource, _, query = path.partition("?")
    shown += _in_path(resource) + _in_query(query)
    # The same one twice is what a client library does that knows several servers.
    if len(set(shown)) > 1:
        raise Misplaced("more than one key or ticket was sent")
    if not shown:
        return Offer()
    return Offer(ticket=shown[0]) if shown[0].startswith(TICKET_PREFIX) else Offer(key=shown[0])


def _in_header(name: str, value: str) -> list[str]:
    if name in KEY_HEADERS:
        return [value.strip()]
    if name == "authorization":
        scheme, _, secret = value.strip().partition(" ")
        return [secret.strip()] if scheme.lower() in SCHEMES else []
    return _in_protocols(value) if name == "sec-websocket-protocol" else []


def _in_protocols(value: str) -> list[str]:
    names = [name.strip() for name in value.split(",")]
    found = [
        name.removeprefix(prefix)
        for name in names
        for prefix in PROTOCOL_PREFIXES
        if name.startswith(prefix)
    ]
    pairs = pairwise(names)
    return found + [secret for before, secret in pairs if before.lower() in PROTOCOL_BEFORE]


def _in_path(path: str) -> list[str]:
    parts = unquote(path).split("/")
    if any(part.startswith(KEY_PREFIX) for part in parts):
        raise Misplaced("an API key must not stand in a URL")
    return [parts[-1]] if parts[-1].startswith(TICKET_PREFIX) else []


def _in_query(query: str) -> list[str]:
    try:
        fields = parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise Misplaced("the query has too many fields") from None
    named = [value for name, value in fields if canonical(name) in QUERY_FIELDS]
    if any(value and not value.startswith(TICKET_PREFIX) for value in named) or any(
        text.startswith(KEY_PREFIX) for field in fields for text in field
    ):
        raise Misplaced("an API key must not stand in a URL")
    return [value for value in named if value]
