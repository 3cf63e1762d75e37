"""``POST /v1/audio/speech``: what may be asked, checked field by field. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from playhead.gateway.api.errors import ApiError, invalid
from playhead.gateway.api.voices import MODELS, VOICES, find_voice
from playhead.gateway.protocol_parse import Bounds, ProtocolError, parse_json, shorten
from playhead.gateway.session_types import ServerFacts

MOST_BODY: Final = 128 * 1024
"""Bytes: 4,096 characters of input and of instructions, escaped in the longest way."""
MOST_INPUT: Final = 4096
SLOWEST, FASTEST = 0.5, 2.0
BOUNDS: Final = Bounds(MOST_BODY, 4, 64)

FORMATS: Final = ("mp3", "opus", "wav", "pcm")
UNSERVED: Final = ("aac", "flac")
"""Formats of OpenAI's API that no encoder here makes."""
STREAM_FORMATS: Final = ("audio", "sse")


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """A checked request. ``voice`` is one that is served."""

    text: str
    voice: str
    format: str
    stream_format: str
    speed: float
    instruct: str | None = None


def parse_speech(body: bytes, facts: ServerFacts) -> SpeechRequest:
    """Raises :class:`ApiError` naming the field, what was wrong and what would be right."""
    given = json_object(body)
    unknown = sorted(given.keys() - _FIELDS.keys())
    if unknown:
        known = ", ".join(_FIELDS)
        shown = shorten(unknown[0])
        raise invalid(f"unknown field {shown}: expected {known}", shown[1:-1])
    for name in ("model", "input", "voice"):
        if given.get(name) is None:
            raise invalid(f"{name} is missing", name, "missing_required_parameter")
    values = {name: check(given.get(name), facts) for name, check in _FIELDS.items()}
    if values["stream_format"] == "sse" and values["response_format"] == "wav":
        raise invalid("wav cannot be sent as sse: expected pcm, mp3 or opus", "response_format")
    return SpeechRequest(
        text=values["input"],
        voice=values["voice"],
        format=values["response_format"],
        stream_format=values["stream_format"],
        speed=values["speed"],
        instruct=values["instructions"],
    )


def json_object(body: bytes) -> dict[str, Any]:
    """The body of a request. Raises :class:`ApiError`."""
    try:
        return parse_json(body.decode("utf-8"), BOUNDS)
    except UnicodeDecodeError:
        raise invalid("the body is not UTF-8: expected one JSON object") from None
    except ProtocolError as fault:
        raise invalid(f"{fault.message}: expected one JSON object") from None


def _model(value: Any, facts: ServerFacts) -> str:
    known = (facts.model, *MODELS)
    if value not in known:
        shown = shorten(value) if isinstance(value, str) else "of that type"
        raise ApiError(
            HTTPStatus.NOT_FOUND,
            f"the model {shown} does not exist: expected {', '.join(known)}",
            param="model",
            code="model_not_found",
        )
    return str(value)


def _input(value: Any, facts: ServerFacts) -> str:
    if not isinstance(value, str) or not value.strip():
        raise invalid("input is no text that could be spoken: expected a string", "input")
    if len(value) > MOST_INPUT:
        wrong = f"input has {len(value)} characters: expected at most {MOST_INPUT}"
        raise invalid(wrong, "input", "string_above_max_length")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise invalid("input holds half a surrogate pair: expected Unicode text", "input") from None
    return value


def _voice(value: Any, facts: ServerFacts) -> str:
    # OpenAI's custom voices are given as an object with their id.
    name = value.get("id") if isinstance(value, dict) and len(value) == 1 else value
    found = find_voice(name, facts.voices) if isinstance(name, str) else None
    if found is None:
        shown = shorten(name) if isinstance(name, str) else "of that type"
        known = ", ".join(dict.fromkeys([*facts.voices, *VOICES]))
        raise invalid(f"the voice {shown} does not exist: expected {known}", "voice")
    return found


def _instructions(value: Any, facts: ServerFacts) -> str | None:
    """For a model that takes directions; others do not heed them, as OpenAI's tts-1 does not."""
    most = facts.limits.instruct if facts.takes_instruct else MOST_INPUT
    if value is not None and not (isinstance(value, str) and len(value) <= most):
        raise invalid(f"expected a string of at most {most} characters", "instructions")
    return value if value and facts.takes_instruct else None


def _response_format(value: Any, facts: ServerFacts) -> str:
    if value is None:
        value = FORMATS[0]
    if value in FORMATS and (value != "opus" or _has_opus(facts)):
        return str(value)
    served = ", ".join(name for name in FORMATS if name != "opus" or _has_opus(facts))
    shown = shorten(value) if isinstance(value, str) else "of that type"
    known = value in (*UNSERVED, "opus") if isinstance(value, str) else False
    wrong = "is not made by this server" if known else "is not known"
    raise invalid(f"response_format {shown} {wrong}: expected {served}", "response_format")


def _has_opus(facts: ServerFacts) -> bool:
    return any(entry["codec"] == "opus" for entry in facts.formats)


def _stream_format(value: Any, facts: ServerFacts) -> str:
    if value is None:
        return STREAM_FORMATS[0]
    if value not in STREAM_FORMATS:
        raise invalid("stream_format is not known: expected audio or sse", "stream_format")
    return str(value)


def _speed(value: Any, facts: ServerFacts) -> float:
    if value is None:
        return 1.0
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not SLOWEST <= value <= FASTEST:
        expected = f"expected a number from {SLOWEST:g} to {FASTEST:g}"
        raise invalid(f"speed {shorten(str(value))} is not possible: {expected}", "speed")
    return float(value)


_FIELDS: Final[dict[str, Callable[[Any, ServerFacts], Any]]] = {
    "model": _model,
    "input": _input,
    "voice": _voice,
    "instructions": _instructions,
    "response_format": _response_format,
    "speed": _speed,
    "stream_format": _stream_format,
}
