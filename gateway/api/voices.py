"""Names that OpenAI's clients know, and what they mean here."""

from collections.abc import Sequence
from typing import Any, Final

VOICES: Final = (
    *("alloy", "ash", "ballad", "cedar", "coral", "echo", "fable"),
    *("marin", "nova", "onyx", "sage", "shimmer", "verse"),
)
"""The voices of OpenAI's speech API. Some clients refuse every other name before they send."""

MODELS: Final = ("gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-12-15", "tts-1", "tts-1-hd")
"""Models that clients ask for by default. Whatever is asked, the loaded model speaks."""


def find_voice(name: str, voices: Sequence[str]) -> str | None:
    """The served voice of that name, or the one that stands in for an OpenAI voice.

    The stand-ins go round the served voices in order, so that different names differ where they
    can. None: not known.
    """
    if name in voices:
        return name
    if name in VOICES:
        return voices[VOICES.index(name) % len(voices)]
    return None


def voice_list(voices: Sequence[str], default: str) -> dict[str, Any]:
    """The body of ``GET /v1/voices``."""
    listed = [
        {
            "id": voice,
            "object": "voice",
            "default": voice == default,
            "aliases": [name for name in VOICES if find_voice(name, voices) == voice != name],
        }
        for voice in voices
    ]
    return {"object": "list", "data": listed, "voices": list(voices)}


def model_list(model: str, since: int) -> dict[str, Any]:
    """The body of ``GET /v1/models``. ``since``: Unix time in whole seconds."""
    return {"object": "list", "data": [model_entry(name, since) for name in (model, *MODELS)]}


def model_entry(name: str, since: int) -> dict[str, Any]:
    """One model of that list."""
    return {"id": name, "object": "model", "created": since, "owned_by": "playhead"}
