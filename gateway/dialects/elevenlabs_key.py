"""The key in ElevenLabs' messages, for clients whose WebSocket sends no headers.

Source: elevenlabs.io/docs, "TTS WebSocket": ``xi_api_key`` and ``authorization`` of the message
that initialises the connection; elevenlabs 2.78.0, types/initialize_connection.py.
"""

from typing import Any

from playhead.gateway.access_offer import SCHEMES, Misplaced, read
from playhead.gateway.dialects.base import Show
from playhead.gateway.dialects.wire import string
from playhead.gateway.protocol_parse import ProtocolError


def shown_in(message: dict[str, Any]) -> Show | None:
    """The key or ticket of a message. Raises ``ProtocolError`` for two different ones."""
    key, bearer = string(message, "xi_api_key", ""), string(message, "authorization", "")
    if bearer and bearer.partition(" ")[0].lower() not in SCHEMES:
        bearer = f"{SCHEMES[0]} {bearer}"
    headers = [("xi-api-key", key), ("authorization", bearer)]
    try:
        offer = read([(name, value) for name, value in headers if value], "")
    except Misplaced as fault:
        raise ProtocolError(
            "bad_value", str(fault), "xi_api_key or authorization", "xi_api_key"
        ) from None
    return Show(offer) if offer.key or offer.ticket else None
