"""Which path speaks which dialect."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from playhead.gateway.dialects.aura import open_aura
from playhead.gateway.dialects.base import Dialect, Opening
from playhead.gateway.dialects.cartesia import open_cartesia
from playhead.gateway.dialects.elevenlabs import open_multi_stream_input, open_stream_input
from playhead.gateway.dialects.flux import open_flux
from playhead.gateway.dialects.kyutai import open_kyutai
from playhead.gateway.dialects.realtime import open_realtime
from playhead.gateway.dialects.refusals import Shape, cartesia, deepgram, elevenlabs, kyutai, openai
from playhead.gateway.dialects.twilio import open_twilio
from playhead.gateway.session import ServerFacts


@dataclass(frozen=True, slots=True)
class Route:
    """``path`` is matched in full; its named groups become part of the query.

    ``open`` gets the upgrade request and a fresh id for it. It raises ``Refused``.
    """

    name: str
    path: re.Pattern[str]
    open: Callable[[Opening, ServerFacts, str], Dialect]
    refuse: Shape | None = None  # how the vendor says no; None: in our own words
    late: bool = False  # its clients may show their key in their first message


ROUTES = (
    Route("deepgram-v1", re.compile("/v1/speak"), open_aura, deepgram),
    Route(
        "elevenlabs",
        re.compile("/v1/text-to-speech/(?P<voice_id>[^/]+)/stream-input"),
        open_stream_input,
        elevenlabs,
        late=True,
    ),
    Route(
        "elevenlabs-multi",
        re.compile("/v1/text-to-speech/(?P<voice_id>[^/]+)/multi-stream-input"),
        open_multi_stream_input,
        elevenlabs,
        late=True,
    ),
    Route("kyutai", re.compile("/api/tts_streaming"), open_kyutai, kyutai),
    Route("cartesia", re.compile("/tts/websocket"), open_cartesia, cartesia),
    Route("realtime", re.compile("/v1/realtime"), open_realtime, openai),
    # Twilio reads no answer: whatever is not 101 is its error 31920.
    Route("twilio", re.compile("/v1/twilio(/[^/]+)?"), open_twilio, late=True),
    Route("deepgram-v2", re.compile("/v2/speak"), open_flux, deepgram),
)


def find(target: str) -> Route | None:
    """The route of a request target (path and query)."""
    path = urlsplit(target).path
    return next((route for route in ROUTES if route.path.fullmatch(path)), None)


def opening_of(
    route: Route, target: str, headers: dict[str, str], subprotocols: tuple[str, ...]
) -> Opening:
    """What a dialect is told of the upgrade request. Of repeated parameters the last counts."""
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    match = route.path.fullmatch(parts.path)
    named = match.groupdict() if match is not None else {}
    return Opening(parts.path, {**query, **named}, headers, subprotocols)
