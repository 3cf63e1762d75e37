"""What Deepgram's two streaming protocols have in common: the query, and how it is refused.

Source: developers.deepgram.com, reference of /v1/speak and /v2/speak; deepgram-sdk 7.17.0.
"""

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from playhead.gateway.dialects.base import Action, Frame, Hangup, Opening, Refused
from playhead.gateway.dialects.refusals import header_text
from playhead.gateway.dialects.wire import (
    PCM,
    choice,
    number,
    rate_of,
    string,
    voice_of,
    write_object,
)
from playhead.gateway.messages import Hello
from playhead.gateway.protocol_parse import ProtocolError
from playhead.gateway.session import ServerFacts

ENCODINGS = {"linear16": PCM, "mulaw": "mulaw", "alaw": "alaw"}
DEFAULT_RATES = {"linear16": 24_000.0, "mulaw": 8_000.0, "alaw": 8_000.0}
SLOWEST, FASTEST = 0.7, 1.5
SPEED_STEP = 0.05
NO_CONTROLS = {"pronunciations_applied": 0, "breaks_applied": 0, "pronunciation_warnings": 0}


@dataclass(frozen=True, slots=True)
class Query:
    """A good query: the session it asks for, and the model's name as given."""

    hello: Hello
    model: str


def read_query(
    opening: Opening, facts: ServerFacts, models: re.Pattern[str], default_model: str | None
) -> Query:
    """Raises :class:`Refused`: HTTP 400 with ``err_code`` and ``err_msg``.

    ``models`` match the vendor's voices, all of which are the default voice here; a voice of ours
    may be named too. Parameters that concern billing and logs are not looked at.
    """
    query = opening.query
    try:
        model = string(query, "model", default_model)
        voice = voice_of(model, facts, models)
        encoding = choice(query, "encoding", tuple(ENCODINGS), "linear16")
        choice(query, "container", ("none",), "none")
        rate = number(query, "sample_rate", 0, 1e6, DEFAULT_RATES[encoding])
        hello = Hello(
            voice=voice,
            codec=ENCODINGS[encoding],
            sample_rate=rate_of("sample_rate", rate, ENCODINGS[encoding]),
            speed=number(query, "speed", SLOWEST, FASTEST, 1.0),
            start_threshold=0.0,
            reports=False,
        )
    except ProtocolError as fault:
        raise refused(fault) from None
    return Query(hello, model)


def flux_warning(code: str, description: str) -> Frame:
    """Something was not acted upon; the socket lives."""
    return Frame(write_object({"type": "Warning", "code": code, "description": description}))


def flux_fatal(code: str, description: str, close: int) -> list[Action]:
    """An error, and the close that comes with every one."""
    told = {"type": "Error", "code": code, "description": description}
    return [Frame(write_object(told)), Hangup(close, code)]


def flux_speed(message: dict[str, Any]) -> tuple[float | None, Frame]:
    """The speed that a Configure asks for, and the answer; None: the old one stays."""
    if message.get("speed") is None:
        return None, _configured({})
    try:
        speed = number(message, "speed", SLOWEST, FASTEST)
    except ProtocolError as fault:
        return None, _not_configured("SPEED_OUT_OF_RANGE", message["speed"], fault.expected)
    steps = speed / SPEED_STEP
    if abs(steps - round(steps)) > 1e-6:
        expected = f"steps of {SPEED_STEP}"
        return None, _not_configured("SPEED_INCREMENT_INVALID", speed, expected)
    return speed, _configured({"speed": speed})


def _configured(applied: dict[str, float]) -> Frame:
    return Frame(write_object({"type": "ConfigureSuccess", "applied": applied}))


def _not_configured(code: str, value: object, expected: str) -> Frame:
    told = {"type": "ConfigureFailure", "code": code, "field": "speed", "value": value}
    return Frame(write_object({**told, "description": f"speed is {value}; expected {expected}"}))


def refused(
    fault: ProtocolError,
    status: HTTPStatus = HTTPStatus.BAD_REQUEST,
    code: str = "INVALID_QUERY_PARAMETER",
) -> Refused:
    """The response that refuses an upgrade. The header says the same as the body."""
    text = f"{fault.message}; expected {fault.expected}"
    body = write_object({"err_code": code, "err_msg": text})
    return Refused(status, body, {"dg-error": header_text(text)})
