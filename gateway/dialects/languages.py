"""Languages as vendors name them (ISO 639-1, perhaps with a region), and as the models here do."""

from collections.abc import Mapping
from typing import Any

from playhead.gateway.dialects.wire import string
from playhead.gateway.protocol_parse import ProtocolError, shorten
from playhead.gateway.session import ServerFacts

NAMES = {
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "ja": "japanese",
    "ko": "korean",
    "pt": "portuguese",
    "ru": "russian",
    "zh": "chinese",
}


def language_of(given: Mapping[str, Any], field: str, facts: ServerFacts) -> str | None:
    """The served language that a field names; None when it is absent or empty.

    Raises ``ProtocolError`` (``unknown_language``).
    """
    name = string(given, field, "").lower()
    if not name or name in facts.languages:
        return name or None
    found = NAMES.get(name.replace("_", "-").partition("-")[0])
    if found is not None and facts.languages == ("auto",):
        return None  # a model that does not say what it speaks
    if found not in facts.languages:
        known = [code for code, full in NAMES.items() if full in facts.languages]
        raise ProtocolError(
            "unknown_language",
            lambda: f"unknown language {shorten(name)}",
            f"{field}: one of " + ", ".join([*known, *facts.languages]),
            field,
        )
    return found
