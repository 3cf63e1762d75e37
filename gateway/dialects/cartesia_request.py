"""What a request to Cartesia's ``/tts/websocket`` asks for, checked field by field.

Source: docs.cartesia.ai, "Text to Speech (WebSocket)"; cartesia 4.2.0,
types/generation_request_param.py.
"""

import re
from dataclasses import dataclass
from typing import Any

from playhead.gateway.dialects.languages import language_of
from playhead.gateway.dialects.wire import (
    PCM,
    boolean,
    choice,
    mapping,
    missing,
    number,
    rate_of,
    string,
    voice_of,
)
from playhead.gateway.messages import Hello
from playhead.gateway.protocol_parse import ProtocolError
from playhead.gateway.session import ServerFacts

MODELS = re.compile(r"sonic([-.][a-z0-9-]+)*")
VOICES = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ENCODINGS = {"pcm_s16le": PCM, "pcm_f32le": "pcm_f32le", "pcm_mulaw": "mulaw", "pcm_alaw": "alaw"}
SPEEDS = {"slowest": 0.6, "slow": 0.8, "normal": 1.0, "fast": 1.25, "fastest": 1.5}
MOST_DELAY = 5_000.0


@dataclass(frozen=True, slots=True)
class Generation:
    """A piece of transcript for a context, and the configuration that comes with each piece.

    ``more``: others will follow. ``flush``: what has come so far is to be told apart.
    """

    hello: Hello
    transcript: str
    more: bool
    flush: bool
    timestamps: bool


def read_generation(request: dict[str, Any], facts: ServerFacts) -> Generation:
    """Raises ``ProtocolError`` naming the field and what would be right."""
    if not string(request, "context_id", ""):
        raise missing("context_id", "context_id: a string")
    number(request, "max_buffer_delay_ms", 0, MOST_DELAY, 0)
    return Generation(
        hello=read_hello(request, facts, *read_samples(mapping(request, "output_format"))),
        transcript=string(request, "transcript"),
        more=boolean(request, "continue"),
        flush=boolean(request, "flush"),
        timestamps=boolean(request, "add_timestamps"),
    )


def read_hello(request: dict[str, Any], facts: ServerFacts, codec: str, rate: int) -> Hello:
    """Who speaks, and how, in any request for speech. Raises ``ProtocolError``."""
    model = string(request, "model_id")
    if model != facts.model and not MODELS.fullmatch(model):
        raise ProtocolError("unknown_model", "unknown model_id", f"{facts.model}, or a sonic model")
    if boolean(request, "add_phoneme_timestamps"):
        raise ProtocolError(
            "bad_value", "phonemes are not timed here", "add_phoneme_timestamps: false"
        )
    voice = _voice(request)
    return Hello(
        voice=voice_of(string(voice, "id"), facts, VOICES),
        codec=codec,
        sample_rate=rate,
        speed=_speed(request, voice),
        language=language_of(request, "locale" if request.get("locale") else "language", facts),
        start_threshold=0.0,
        reports=False,
    )


def _voice(request: dict[str, Any]) -> dict[str, Any]:
    """A voice's id by itself, or in an object whose mode says that it is one."""
    if isinstance(request.get("voice"), str):
        return {"id": string(request, "voice")}
    voice = mapping(request, "voice")
    choice(voice, "mode", ("id",), "id")
    return voice


def read_samples(given: dict[str, Any], containers: tuple[str, ...] = ("raw",)) -> tuple[str, int]:
    """Our codec and its rate in Hz, of an ``output_format`` in one of those containers.

    Raises ``ProtocolError``.
    """
    choice(given, "container", containers, "raw")
    encoding = choice(given, "encoding", tuple(ENCODINGS), "")
    codec = ENCODINGS[encoding]
    return codec, rate_of("sample_rate", number(given, "sample_rate", 0, 1e6), codec)


def _speed(request: dict[str, Any], voice: dict[str, Any]) -> float:
    """From any of the three places that versions of this protocol have had for it."""
    generation = mapping(request, "generation_config")
    if generation.get("speed") is not None:
        return number(generation, "speed", 0.5, 2.0)
    controls = mapping(voice, "__experimental_controls")
    named = request.get("speed") or controls.get("speed") or "normal"
    if isinstance(named, str):
        return SPEEDS[choice({"speed": named}, "speed", tuple(SPEEDS), "normal")]
    return 1.0 + number({"speed": named}, "speed", -1.0, 1.0) / 2
