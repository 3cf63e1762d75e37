"""Every place in which a client may send a secret to this server: the one table of them. Pure.

``access_offer`` takes keys and tickets from the places that the table says, ``redact`` blots out
what stands in any of them. Where our own protocol is meant, ``who`` says playhead.

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
    """``name``: as the clients of ``who`` write it. Others may write it otherwise: see
    :func:`canonical`."""

    where: Where
    name: str
    use: Use
    who: tuple[str, ...]


ALL: Final = ("playhead", "openai", "deepgram", "elevenlabs", "cartesia", "kyutai")

PLACES: Final = (
    Place(Where.HEADER, "Authorization", Use.KEY, ALL),
    Place(Where.HEADER, "X-API-Key", Use.KEY, ("playhead", "cartesia")),
    Place(Where.HEADER, "xi-api-key", Use.KEY, ("elevenlabs",)),
    Place(Where.HEADER, "kyutai-api-key", Use.KEY, ("kyutai",)),
    Place(Where.HEADER, "api-key", Use.OTHER, ("openai",)),
    Place(Where.HEADER, "X-Twilio-Signature", Use.OTHER, ("twilio",)),
    Place(Where.HEADER, "Proxy-Authorization", Use.OTHER, ALL),
    Place(Where.HEADER, "Cookie", Use.OTHER, ALL),
    Place(Where.PROTOCOL, "playhead.ticket.", Use.KEY, ("playhead",)),
    Place(Where.PROTOCOL, "openai-insecure-api-key.", Use.KEY, ("openai",)),
    Place(Where.PROTOCOL_NEXT, "token", Use.KEY, ("deepgram",)),
    Place(Where.PROTOCOL_NEXT, "bearer", Use.KEY, ("deepgram",)),
    Place(Where.QUERY, "ticket", Use.TICKET, ("playhead",)),
    Place(Where.QUERY, "key", Use.TICKET, ("playhead",)),
    Place(Where.QUERY, "token", Use.TICKET, ("playhead", "deepgram")),
    Place(Where.QUERY, "api_key", Use.TICKET, ("cartesia", "openai")),
    Place(Where.QUERY, "x-api-key", Use.TICKET, ("cartesia",)),
    Place(Where.QUERY, "access_token", Use.TICKET, ("cartesia",)),
    Place(Where.QUERY, "auth_token", Use.TICKET, ("playhead",)),
    Place(Where.QUERY, "xi-api-key", Use.TICKET, ("elevenlabs",)),
    Place(Where.QUERY, "authorization", Use.TICKET, ("elevenlabs",)),
    Place(Where.QUERY, "single_use_token", Use.TICKET, ("elevenlabs",)),
    Place(Where.QUERY, "auth_id", Use.TICKET, ("kyutai",)),
    Place(Where.PATH, "twilio/…", Use.TICKET, ("twilio",)),
    Place(Where.MESSAGE, "xi_api_key", Use.KEY, ("elevenlabs",)),
    Place(Where.MESSAGE, "authorization", Use.KEY, ("elevenlabs",)),
    Place(Where.MESSAGE, "ticket", Use.TICKET, ("twilio",)),
    Place(Where.MESSAGE, "token", Use.OTHER, ("playhead",)),  # of a session: hello.resume
    Place(Where.BODY, "api_key", Use.OTHER, ALL),
    Place(Where.URL, "userinfo", Use.OTHER, ALL),
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
