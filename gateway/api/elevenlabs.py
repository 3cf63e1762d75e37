"""ElevenLabs' ``POST /v1/text-to-speech/{voice_id}``, ``/stream`` and ``with-timestamps``. Pure.

Sound is a body as it is. With timestamps it is JSON: one object for all of it, or, streamed, one a
line; times are seconds from the beginning of the speech. What tunes the vendor's own models is not
looked at.

Source: elevenlabs.io/docs, API reference "Text to Speech"; elevenlabs 2.78.0,
text_to_speech/raw_client.py.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from playhead.gateway.api.body import Body, Mp3Body, PcmBody
from playhead.gateway.api.errors import ApiError, from_protocol
from playhead.gateway.api.order import Order, PlainWriter, Writer
from playhead.gateway.api.request import MOST_INPUT, json_object
from playhead.gateway.dialects.elevenlabs_alignment import Alignment
from playhead.gateway.dialects.elevenlabs_query import OutputFormat, read_query
from playhead.gateway.dialects.wire import bad_value, mapping, number, string
from playhead.gateway.messages import Audio, Ready
from playhead.gateway.protocol_parse import ProtocolError
from playhead.gateway.session_types import ServerFacts

MEDIA: Final = {"pcm_s16le": "audio/pcm", "mulaw": "audio/PCMU", "alaw": "audio/PCMA"}
MP3: Final = "audio/mpeg"
JSON: Final = "application/json"
WHOLE: Final = "with-timestamps"


class LineWriter:
    """``/stream/with-timestamps``: a JSON object a line."""

    def __init__(self, body: Body, rate: int) -> None:
        self._body = body
        self._alignment = Alignment(rate, absolute=True)

    def expect(self, text: str) -> None:
        """The text that is spoken."""
        self._alignment.add_text(text)

    def begin(self) -> bytes:
        return b""

    def add(self, audio: Audio) -> bytes:
        data, times = self.take(audio)
        if not data and times is None:
            return b""
        return json_line(data, times)

    def take(self, audio: Audio) -> tuple[bytes, dict[str, list[Any]] | None]:
        """The bytes of a message and the times of its characters."""
        end = audio.position + audio.samples
        times = self._alignment.align(audio.words, end, final=audio.final)
        return self._body.add(audio), times

    def end(self) -> bytes:
        return b""

    def fault(self, fault: ApiError) -> bytes | None:
        return None


class WholeWriter(LineWriter):
    """``/with-timestamps``: one object at the end."""

    def __init__(self, body: Body, rate: int) -> None:
        super().__init__(body, rate)
        self._data = bytearray()
        self._times: dict[str, list[Any]] = {}

    def add(self, audio: Audio) -> bytes:
        data, times = self.take(audio)
        self._data += data
        for name, values in (times or {}).items():
            self._times.setdefault(name, []).extend(values)
        return b""

    def end(self) -> bytes:
        return json_line(bytes(self._data), self._times or None)


def json_line(data: bytes, times: Mapping[str, list[Any]] | None) -> bytes:
    """The object for a piece of sound and its characters' times in milliseconds (``Alignment``)."""
    aligned = None if times is None else _in_seconds(times)
    told = {
        "audio_base64": base64.b64encode(data).decode("ascii"),
        "alignment": aligned,
        "normalized_alignment": aligned,
    }
    return json.dumps(told, ensure_ascii=False).encode() + b"\n"


def _in_seconds(times: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    starts, spans = times["charStartTimesMs"], times["charDurationsMs"]
    ends = [start + span for start, span in zip(starts, spans, strict=True)]
    return {
        "characters": times["chars"],
        "character_start_times_seconds": [start / 1_000 for start in starts],
        "character_end_times_seconds": [end / 1_000 for end in ends],
    }


def read_speech(
    body: bytes, voice: str, query: Mapping[str, str], facts: ServerFacts, kind: str
) -> Order:
    """``kind``: what stands behind the voice in the path: nothing, ``stream``,
    ``with-timestamps`` or ``stream/with-timestamps``.

    Raises ``ApiError`` naming the field and what would be right.
    """
    given = json_object(body)
    try:
        asked = {name: query[name] for name in ("output_format",) if name in query}
        for name in ("model_id", "language_code"):
            if value := string(given, name, ""):
                asked[name] = value
        checked = read_query({**asked, "voice_id": voice}, facts)
        speed = number(mapping(given, "voice_settings"), "speed", 0.5, 2.0, 1.0)
        text = _text(given, kind)
    except ProtocolError as fault:
        raise from_protocol(fault) from None
    form, timed = checked.format, kind.endswith(WHOLE)
    sound = MP3 if form.bit_rate is not None else MEDIA[form.codec]

    def open_writer(ready: Ready) -> Writer:
        made = _body(form, ready)
        if not timed:
            return PlainWriter(made)
        writer = (WholeWriter if kind == WHOLE else LineWriter)(made, form.sample_rate)
        writer.expect(text)
        return writer

    return Order(
        hello=replace(checked.hello, speed=speed),
        text=text,
        media_type=JSON if timed else sound,
        open=open_writer,
        heavy=form.bit_rate is not None,
    )


def _text(given: dict[str, Any], kind: str) -> str:
    text = string(given, "text")
    if not text.strip():
        raise bad_value("text", "empty", "text: something to speak")
    if kind == WHOLE and len(text) > MOST_INPUT:
        most = f"at most {MOST_INPUT} for one object, or /stream/{WHOLE}"
        raise ProtocolError("text_too_long", f"text has {len(text)} characters", most, "text")
    return text


def _body(form: OutputFormat, ready: Ready) -> Body:
    return PcmBody(ready) if form.bit_rate is None else Mp3Body(ready, form.bit_rate)
