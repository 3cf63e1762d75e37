"""Every place in which a client may send a secret to this server: the one table of them. Pure.

``access_offer`` takes keys and tickets from the places that the table says, ``redact`` blots out
what stands in any of them.

Sources: RFC 6750 and 9110; developers.deepgram.com, "Using the Sec-WebSocket-Protocol";
platform.openai.com, Realtime with WebSockets, and Azure's flavour of it (``api-key``);
docs.cartesia.ai, "Authenticate your Client Applications"; elevenlabs.io, "WebSockets" and
"Single use tokens"; kyutai-labs/moshi, rust/moshi-server (``kyutai-api-key``, ``auth_id``);
twilio.com/docs/usage/security and ``<Stream>``.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Where(StrEnum):
    """A part of what a client sends."""

    HEADER = "header"
    PROTOCOL = "subprotocol that begins with"
    PROTOCOL_NEXT = "subprotocol after"
    QUERY = "query"
    PATH = "end of the path"
    MESSAGE = "message"
    BODY = "HTTP body"
    URL = "URL"


class Use(StrEnum):
    """What becomes of a secret there."""

    KEY = "keys and tickets are taken"
    TICKET = "tickets are taken, keys refused"
    OTHER = "no key is read"


@dataclass(frozen=True, slots=True)
class Place:
    """``name``: as most clients write it; how else, see :func:`canonical`."""

    where: Where
    name: str
    use: Use


PLACES: Final = (
    Place(Where.HEADER, "Authorization", Use.KEY),
    Place(Where.HEADER, "X-API-Key", Use.KEY),
    Place(Where.HEADER, "xi-api-key", Use.KEY),
    Place(Where.HEADER, "kyutai-api-key", Use.KEY),
    Place(Where.HEADER, "api-key", Use.OTHER),
    Place(Where.HEADER, "X-Twilio-Signature", Use.OTHER),
    Place(Where.HEADER, "Proxy-Authorization", Use.OTHER),
    Place(Where.HEADER, "Cookie", Use.OTHER),
    Place(Where.PROTOCOL, "playhead.ticket.", Use.KEY),
    Place(Where.PROTOCOL, "openai-insecure-api-key.", Use.KEY),
    Place(Where.PROTOCOL_NEXT, "token", Use.KEY),
    Place(Where.PROTOCOL_NEXT, "bearer", Use.KEY),
    Place(Where.QUERY, "ticket", Use.TICKET),
    Place(Where.QUERY, "key", Use.TICKET),
    Place(Where.QUERY, "token", Use.TICKET),
    Place(Where.QUERY, "api_key", Use.TICKET),
    Place(Where.QUERY, "x-api-key", Use.TICKET),
    Place(Where.QUERY, "access_token", Use.TICKET),
    Place(Where.QUERY, "auth_token", Use.TICKET),
    Place(Where.QUERY, "xi-api-key", Use.TICKET),
    Place(Where.QUERY, "authorization", Use.TICKET),
    Place(Where.QUERY, "single_use_token", Use.TICKET),
    Place(Where.QUERY, "auth_id", Use.TICKET),
    Place(Where.PATH, "twilio/…", Use.TICKET),
    Place(Where.MESSAGE, "xi_api_key", Use.KEY),
    Place(Where.MESSAGE, "authorization", Use.KEY),
    Place(Where.MESSAGE, "ticket", Use.TICKET),
    Place(Where.MESSAGE, "token", Use.OTHER),  # of a session: hello.resume
    Place(Where.BODY, "api_key", Use.OTHER),
    Place(Where.URL, "userinfo", Use.OTHER),
)

PUBLIC_PROTOCOLS: Final = re.compile(
    r"playhead\.(?:v|observe)[\w.]*|realtime|token|bearer|openai-(?:beta|organization|project)\..*"
)
"""Subprotocols that are no secret. What else a client offers may be one."""


def canonical(name: str) -> str:
    """One spelling for all of a name: ``X-API-Key``, ``xApiKey`` and ``x_api_key`` are
    ``xapikey``."""
    lower = name.lower()
    return lower if lower.isalnum() else "".join(filter(str.isalnum, lower))


def names(where: Where, *uses: Use) -> frozenset[str]:
    """The names of the places in one part of a request, as the table writes them."""
    return frozenset(p.name for p in PLACES if p.where is where and p.use in (uses or tuple(Use)))
