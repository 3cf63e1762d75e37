"""Whose clients send a secret where: the services, and ourselves, for each of ``PLACES``."""

from typing import Final

from playhead.gateway.access_places import Place, Where

ALL: Final = ("playhead", "openai", "deepgram", "elevenlabs", "cartesia", "kyutai")

_WHO: Final[dict[tuple[Where, str], tuple[str, ...]]] = {
    (Where.HEADER, "Authorization"): ALL,
    (Where.HEADER, "X-API-Key"): ("playhead", "cartesia"),
    (Where.HEADER, "xi-api-key"): ("elevenlabs",),
    (Where.HEADER, "kyutai-api-key"): ("kyutai",),
    (Where.HEADER, "api-key"): ("openai",),
    (Where.HEADER, "X-Twilio-Signature"): ("twilio",),
    (Where.HEADER, "Proxy-Authorization"): ALL,
    (Where.HEADER, "Cookie"): ALL,
    (Where.PROTOCOL, "playhead.ticket."): ("playhead",),
    (Where.PROTOCOL, "openai-insecure-api-key."): ("openai",),
    (Where.PROTOCOL_NEXT, "token"): ("deepgram",),
    (Where.PROTOCOL_NEXT, "bearer"): ("deepgram",),
    (Where.QUERY, "ticket"): ("playhead",),
    (Where.QUERY, "key"): ("playhead",),
    (Where.QUERY, "token"): ("playhead", "deepgram"),
    (Where.QUERY, "api_key"): ("cartesia", "openai"),
    (Where.QUERY, "x-api-key"): ("cartesia",),
    (Where.QUERY, "access_token"): ("cartesia",),
    (Where.QUERY, "auth_token"): ("playhead",),
    (Where.QUERY, "xi-api-key"): ("elevenlabs",),
    (Where.QUERY, "authorization"): ("elevenlabs",),
    (Where.QUERY, "single_use_token"): ("elevenlabs",),
    (Where.QUERY, "auth_id"): ("kyutai",),
    (Where.PATH, "twilio/…"): ("twilio",),
    (Where.MESSAGE, "xi_api_key"): ("elevenlabs",),
    (Where.MESSAGE, "authorization"): ("elevenlabs",),
    (Where.MESSAGE, "ticket"): ("twilio",),
    (Where.MESSAGE, "token"): ("playhead",),
    (Where.BODY, "api_key"): ALL,
    (Where.URL, "userinfo"): ALL,
}


def who(place: Place) -> tuple[str, ...]:
    """Raises ``KeyError`` for a place that nobody is known to use."""
    return _WHO[place.where, place.name]
