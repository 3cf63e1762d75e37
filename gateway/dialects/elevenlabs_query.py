"""What the URL of ElevenLabs' sockets asks for, and formats in the vendor's names.

Source: elevenlabs.io/docs, "TTS WebSocket" and "Multi-Context WebSocket"; elevenlabs 2.78.0.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from playhead.gateway.dialects.languages import language_of
from playhead.gateway.dialects.wire import PCM, number, string, voice_of
from playhead.gateway.messages import Hello
from playhead.gateway.protocol_parse import ProtocolError, shorten
from playhead.gateway.session import ServerFacts

MODELS = re.compile(r"eleven_[a-z0-9_]+")
VOICES = re.compile(r"[A-Za-z0-9]{20}")
DEFAULT_FORMAT = "mp3_44100_128"
DEFAULT_TIMEOUT, MOST_TIMEOUT = 20.0, 180.0


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """``bit_rate`` in kbit/s: MP3 of the 16-bit samples; None: the codec's own bytes."""

    codec: str
    sample_rate: int
    bit_rate: int | None = None


FORMATS = {
    **{f"pcm_{r}": OutputFormat(PCM, r) for r in (8_000, 16_000, 22_050, 24_000, 44_100, 48_000)},
    "ulaw_8000": OutputFormat("mulaw", 8_000),
    "alaw_8000": OutputFormat("alaw", 8_000),
    "mp3_22050_32": OutputFormat(PCM, 22_050, 32),
    "mp3_24000_48": OutputFormat(PCM, 24_000, 48),
    **{f"mp3_44100_{rate}": OutputFormat(PCM, 44_100, rate) for rate in (32, 64, 96, 128, 192)},
}


@dataclass(frozen=True, slots=True)
class Query:
    """A good URL. ``hello`` is every context's, but for its speed."""

    hello: Hello
    format: OutputFormat
    timeout: float
    absolute: bool


def read_query(query: Mapping[str, str], facts: ServerFacts) -> Query:
    """Raises ``ProtocolError``. Parameters that tune the vendor's own buffering and billing are
    not looked at."""
    voice = string(query, "voice_id")
    model = string(query, "model_id", facts.model)
    if model != facts.model and not MODELS.fullmatch(model):
        raise ProtocolError(
            "unknown_model",
            f"A model with model ID {shorten(model)} does not exist",
            f"{facts.model}, or an eleven model",
        )
    name = string(query, "output_format", DEFAULT_FORMAT)
    if name not in FORMATS:
        raise ProtocolError(
            "unsupported_codec",
            f"output_format {shorten(name)} is not made here",
            "one of " + ", ".join(FORMATS),
        )
    form = FORMATS[name]
    return Query(
        hello=Hello(
            voice=voice_of(voice, facts, VOICES),
            codec=form.codec,
            sample_rate=form.sample_rate,
            language=language_of(query, "language_code", facts),
            start_threshold=0.0,
            reports=False,
        ),
        format=form,
        timeout=number(query, "inactivity_timeout", 1, MOST_TIMEOUT, DEFAULT_TIMEOUT),
        absolute=query.get("sync_alignment") == "true",
    )
