"""Deepgram's ``POST /v1/speak``: what may be asked. Pure.

Without a word about it the vendor makes MP3; raw encodings stand in a WAV file unless
``container=none``. What concerns billing, logs and callbacks is not looked at.

Source: developers.deepgram.com, reference of /v1/speak (REST); deepgram-sdk 7.17.0,
speak/v1/audio/raw_client.py.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from playhead.gateway.api.body import Mp3Body, PcmBody, WavBody
from playhead.gateway.api.errors import from_protocol
from playhead.gateway.api.order import Order, PlainWriter
from playhead.gateway.api.request import json_object
from playhead.gateway.dialects.aura import DEFAULT_MODEL, MODELS, MOST_CHARACTERS
from playhead.gateway.dialects.deepgram import DEFAULT_RATES, ENCODINGS, FASTEST, SLOWEST
from playhead.gateway.dialects.wire import (
    PCM,
    bad_value,
    choice,
    number,
    rate_of,
    string,
    voice_of,
)
from playhead.gateway.messages import Hello
from playhead.gateway.protocol_parse import ProtocolError
from playhead.gateway.session_types import ServerFacts

MP3: Final = "mp3"
MP3_RATE: Final = 22_050
"""Hz: the only one that the vendor has for MP3."""
BIT_RATES: Final = (32_000, 48_000)
BODIES: Final = {"wav": WavBody, "none": PcmBody}
RAW: Final = {PCM: "audio/l16", "mulaw": "audio/mulaw", "alaw": "audio/alaw"}


def read_speech(body: bytes, query: Mapping[str, str], facts: ServerFacts) -> Order:
    """Raises ``ApiError`` naming the field and what would be right."""
    given = json_object(body)
    try:
        text = _text(string(given, "text"))
        hello = Hello(
            voice=voice_of(string(query, "model", DEFAULT_MODEL), facts, MODELS),
            speed=number(query, "speed", SLOWEST, FASTEST, 1.0),
            reports=False,
        )
        encoding = choice(query, "encoding", (MP3, *ENCODINGS), MP3)
        if encoding == MP3:
            return _mp3(text, query, hello)
        return _samples(text, encoding, query, hello)
    except ProtocolError as fault:
        raise from_protocol(fault) from None


def _text(text: str) -> str:
    if not text.strip() or len(text) > MOST_CHARACTERS:
        most = f"text: from 1 to {MOST_CHARACTERS} characters to speak"
        raise bad_value("text", f"{len(text)} characters", most)
    return text


def _mp3(text: str, query: Mapping[str, str], hello: Hello) -> Order:
    choice(query, "container", ("none",), "none")
    _only(query, "sample_rate", (MP3_RATE,))
    bits = _only(query, "bit_rate", BIT_RATES)
    return Order(
        hello=replace(hello, codec=PCM, sample_rate=MP3_RATE),
        text=text,
        media_type="audio/mpeg",
        open=lambda ready: PlainWriter(Mp3Body(ready, bits // 1_000)),
        heavy=True,
    )


def _samples(text: str, encoding: str, query: Mapping[str, str], hello: Hello) -> Order:
    codec = ENCODINGS[encoding]
    rate = number(query, "sample_rate", 0, 1e6, DEFAULT_RATES[encoding])
    container = choice(query, "container", tuple(BODIES), "wav")
    return Order(
        hello=replace(hello, codec=codec, sample_rate=rate_of("sample_rate", rate, codec)),
        text=text,
        media_type="audio/wav" if container == "wav" else RAW[codec],
        open=lambda ready: PlainWriter(BODIES[container](ready)),
    )


def _only(query: Mapping[str, str], field: str, known: tuple[int, ...]) -> int:
    """One of those, the last by default."""
    value = number(query, field, 0, 1e6, known[-1])
    if value not in known:
        raise bad_value(field, value, f"{field}: one of " + ", ".join(map(str, known)))
    return int(value)
