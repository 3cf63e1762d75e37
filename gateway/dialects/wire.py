"""What the dialects read and write alike: JSON frames, checked fields, texts, voices, formats.

Every fault of a client is a :class:`ProtocolError`; a dialect gives it its vendor's shape.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from playhead.gateway.limits import Limits
from playhead.gateway.messages import Text
from playhead.gateway.protocol_parse import (
    Bounds,
    ProtocolError,
    bad_message,
    parse_json,
    shorten,
    wrong,
)
from playhead.gateway.session import ServerFacts

_LIMITS = Limits()
BOUNDS = Bounds(_LIMITS.message_bytes, _LIMITS.message_depth, _LIMITS.message_items)

MOST_NAME = 128
"""Characters. It is said with every message of sound: a long one would be said a thousand times."""

_CONTROLS = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, line and paragraph separators, and those of Unicode's Bidi_Control. Not all
that ``str.isprintable`` refuses: emoji of several people are joined by one, Persian and French
hold others, and whatever is newer than the interpreter counts as well."""

PCM = "pcm_s16le"
PCM_RATES = (8_000, 16_000, 22_050, 24_000, 44_100, 48_000)
G711_RATES = (8_000,)


def read_object(frame: bytes | str) -> dict[str, Any]:
    """A text frame that holds one JSON object. Raises ``ProtocolError`` (``bad_message``)."""
    if isinstance(frame, bytes):
        raise bad_message("a binary frame", "text frames, one JSON object each")
    return parse_json(frame, BOUNDS)


def write_object(value: Mapping[str, Any]) -> str:
    """One JSON object as a text frame."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def missing(field: str, expected: str) -> ProtocolError:
    """A required field is absent."""
    return ProtocolError("missing_field", f"{field} is missing", expected, field)


def bad_value(field: str, given: object, expected: str) -> ProtocolError:
    """A field has a value that cannot be used."""
    return ProtocolError("bad_value", wrong(field, lambda: shorten(str(given))), expected, field)


def string(given: Mapping[str, Any], field: str, default: str | None = None) -> str:
    """A string field; ``default`` None makes it required. ``null`` counts as absent.

    Raises ``ProtocolError``, also for unpaired surrogates, which no encoding can carry.
    """
    value = given.get(field)
    if value is None:
        if default is None:
            raise missing(field, f"{field}: a string")
        return default
    if not isinstance(value, str) or re.search("[\ud800-\udfff]", value):
        raise bad_value(field, value, f"{field}: a string")
    return value


def label(given: Mapping[str, Any], field: str, default: str | None = None) -> str:
    """What a client calls something of its own, and is told back with every piece of it: a string
    of at most ``MOST_NAME`` characters, none of which breaks a line, controls a terminal or turns
    the text about it round. Raises ``ProtocolError``."""
    value = string(given, field, default)
    if len(value) > MOST_NAME or _CONTROLS.search(value):
        expected = f"{field}: at most {MOST_NAME} characters, no control characters"
        raise bad_value(field, value, expected)
    return value


def number(
    given: Mapping[str, Any], field: str, low: float, high: float, default: float | None = None
) -> float:
    """A number field within bounds; ``default`` None makes it required. Raises ``ProtocolError``.

    Numeric strings are taken too: query parameters are nothing else.
    """
    value = given.get(field)
    expected = f"{field}: a number from {low:g} to {high:g}"
    if value is None:
        if default is None:
            raise missing(field, expected)
        return default
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not low <= number <= high:
        raise bad_value(field, value, expected)
    return number


def boolean(given: Mapping[str, Any], field: str, default: bool = False) -> bool:
    """A boolean field. Raises ``ProtocolError``."""
    value = given.get(field)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise bad_value(field, value, f"{field}: true or false")
    return value


def mapping(given: Mapping[str, Any], field: str) -> dict[str, Any]:
    """An object field, empty when absent. Raises ``ProtocolError``."""
    value = given.get(field)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bad_value(field, value, f"{field}: an object")
    return value


def choice(given: Mapping[str, Any], field: str, options: Sequence[str], default: str) -> str:
    """A string field with a known set of values. Raises ``ProtocolError``."""
    value = string(given, field, default)
    if value not in options:
        raise bad_value(field, value, f"{field}: one of " + ", ".join(options))
    return value


def texts(text: str, most: int = _LIMITS.text_message) -> Iterator[Text]:
    """A text of any length as native messages, none above the limit of one."""
    for start in range(0, len(text), most):
        yield Text(text[start : start + most])


def voice_of(name: str, facts: ServerFacts, alias: re.Pattern[str] | None = None) -> str:
    """Our voice for a vendor's name: a voice of that name, or the default one for every name that
    ``alias`` matches in full (clients must name one of their vendor's voices and mean any).

    Raises ``ProtocolError`` (``unknown_voice``).
    """
    if name in facts.voices:
        return name
    if alias is not None and alias.fullmatch(name):
        return facts.default_voice
    expected = "one of " + ", ".join(facts.voices)
    raise ProtocolError(
        "unknown_voice", lambda: f"unknown voice {shorten(name)}", expected, "voice"
    )


def rate_of(field: str, rate: float, codec: str) -> int:
    """A sample rate in Hz that ``codec`` has here. Raises ``ProtocolError``
    (``unsupported_rate``)."""
    rates = PCM_RATES if codec.startswith("pcm") else G711_RATES
    if rate not in rates:
        expected = f"{field}: one of " + ", ".join(map(str, rates))
        raise ProtocolError("unsupported_rate", f"{field} is {rate:g}", expected, field)
    return int(rate)
