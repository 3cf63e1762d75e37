"""Cartesia's ``POST /tts/bytes`` and ``/tts/sse``: what may be asked, and the events. Pure.

``wav`` and ``raw`` hold the same samples; MP3 takes its bit rate in bits a second. Events are raw
samples only, as at the vendor.

Source: docs.cartesia.ai, "Text to Speech (Bytes)" and "(SSE)"; cartesia 4.2.0,
types/tts_generate_params.py, tts_generate_sse_params.py and tts_sse_event.py.
"""

import base64
import json
from functools import partial
from typing import Any, Final

from playhead.codecs.mp3 import SAMPLE_RATES
from playhead.gateway.api.body import EVENTS, Mp3Body, PcmBody, WavBody
from playhead.gateway.api.errors import ApiError, from_protocol
from playhead.gateway.api.order import Order, PlainWriter
from playhead.gateway.api.request import json_object
from playhead.gateway.dialects.cartesia_request import read_hello, read_samples
from playhead.gateway.dialects.cartesia_times import word_times
from playhead.gateway.dialects.wire import PCM, bad_value, boolean, label, mapping, number, string
from playhead.gateway.messages import Audio, Ready
from playhead.gateway.protocol_parse import ProtocolError
from playhead.gateway.session_types import ServerFacts

BIT_RATES: Final = (32_000, 64_000, 96_000, 128_000, 192_000)
MP3: Final = "mp3"
CONTAINERS: Final = ("raw", "wav", MP3)
MEDIA: Final = {"raw": "audio/pcm", "wav": "audio/wav", MP3: "audio/mpeg"}
BODIES: Final = {"raw": PcmBody, "wav": WavBody}


class SseWriter:
    """``chunk`` and ``timestamps`` events, then ``done`` or ``error``."""

    def __init__(self, ready: Ready, context: str | None, *, timestamps: bool) -> None:
        self._rate = ready.sample_rate
        self._timestamps = timestamps
        self._context: dict[str, Any] = {} if context is None else {"context_id": context}

    def begin(self) -> bytes:
        return b""

    def add(self, audio: Audio) -> bytes:
        told = b""
        if audio.data:
            data = base64.b64encode(audio.data).decode("ascii")
            told = self._event("chunk", {"data": data, "step_time": 0.0})
        if self._timestamps and audio.words:
            times = word_times(audio, self._rate)
            told += self._event("timestamps", {"word_timestamps": times})
        return told

    def end(self) -> bytes:
        return self._event("done", {}, status=200, done=True)

    def fault(self, fault: ApiError) -> bytes | None:
        code = fault.code or fault.type
        told = {
            "error": fault.message,
            "error_code": code,
            "title": code.replace("_", " "),
            "message": fault.message,
        }
        return self._event("error", told, status=int(fault.status), done=True)

    def _event(
        self, kind: str, fields: dict[str, Any], *, status: int = 206, done: bool = False
    ) -> bytes:
        head = {"type": kind, "status_code": status, "done": done}
        text = json.dumps(head | self._context | fields, ensure_ascii=False)
        return f"event: {kind}\ndata: {text}\n\n".encode()


def read_bytes(body: bytes, facts: ServerFacts) -> Order:
    """``/tts/bytes``. Raises ``ApiError`` naming the field and what would be right."""
    given = json_object(body)
    try:
        output = mapping(given, "output_format")
        container = string(output, "container", "raw")
        if container == MP3:
            return _mp3(given, output, facts)
        codec, rate = read_samples(output, CONTAINERS)
        return Order(
            hello=read_hello(given, facts, codec, rate),
            text=_text(given),
            media_type=MEDIA[container],
            open=lambda ready: PlainWriter(BODIES[container](ready)),
        )
    except ProtocolError as fault:
        raise from_protocol(fault) from None


def read_sse(body: bytes, facts: ServerFacts) -> Order:
    """``/tts/sse``. Raises ``ApiError``."""
    given = json_object(body)
    try:
        context = label(given, "context_id", "") or None
        return Order(
            hello=read_hello(given, facts, *read_samples(mapping(given, "output_format"))),
            text=_text(given),
            media_type=EVENTS,
            open=partial(SseWriter, context=context, timestamps=boolean(given, "add_timestamps")),
        )
    except ProtocolError as fault:
        raise from_protocol(fault) from None


def _mp3(given: dict[str, Any], output: dict[str, Any], facts: ServerFacts) -> Order:
    rate = _listed(output, "sample_rate", SAMPLE_RATES)
    bits = _listed(output, "bit_rate", BIT_RATES)
    return Order(
        hello=read_hello(given, facts, PCM, rate),
        text=_text(given),
        media_type=MEDIA[MP3],
        open=lambda ready: PlainWriter(Mp3Body(ready, bits // 1_000)),
        heavy=True,
    )


def _listed(output: dict[str, Any], field: str, known: tuple[int, ...]) -> int:
    value = number(output, field, 0, 1e6)
    if value not in known:
        raise bad_value(field, value, f"{field}: one of " + ", ".join(map(str, known)))
    return int(value)


def _text(given: dict[str, Any]) -> str:
    text = string(given, "transcript")
    if not text.strip():
        raise bad_value("transcript", "empty", "transcript: a text to speak")
    return text
