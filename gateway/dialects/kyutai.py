"""Kyutai's ``/api/tts_streaming``: words in, msgpack maps or bare audio out, one text per socket.

The server says Ready, takes Text and Eos (or, as older clients do, text frames and a zero byte),
answers with Audio and with each word's time, and closes with 1000 after the last of it. There is
no interruption but to close the socket, and no playback feedback.

Source: kyutai-labs/moshi, rust/moshi-server/src/tts.rs and protocol.md; kyutai-labs/unmute,
unmute/tts/text_to_speech.py.
"""

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgpack
import numpy as np
from playhead.codecs.ogg import OggOpusWriter
from playhead.gateway.dialects.base import (
    INTERNAL,
    NORMAL,
    POLICY,
    Action,
    Actions,
    Dialect,
    Frame,
    Hangup,
    Native,
    Opening,
)
from playhead.gateway.dialects.wire import BOUNDS, choice, string, texts, voice_of
from playhead.gateway.messages import (
    Audio,
    End,
    ErrorEvent,
    Failed,
    Hello,
    Ready,
    ServerMessage,
    Start,
)
from playhead.gateway.protocol_parse import ProtocolError, bad_message, parse_msgpack
from playhead.gateway.session import ServerFacts

RATE = 24_000
CONTEXT = ""
VOICES = re.compile(r"(?!.*\.\.)(?=.*[/.])\w[\w.+-]*(/\w[\w.+-]*)*", re.ASCII)
"""Voices are files there, relative to a collection of voices."""
EOS = b"\0"
TRY_LATER = 1013
CLOSES = {"overloaded": TRY_LATER, "rate_limited": TRY_LATER, "engine_error": INTERNAL}
ARRAY_OF_FLOATS = np.dtype([("type", "u1"), ("value", ">f4")])
FLOAT32, ARRAY32 = 0xCA, 0xDD  # msgpack's type bytes


@dataclass(frozen=True, slots=True)
class Format:
    """``packed``: maps; otherwise bare audio, without Ready, words or faults."""

    codec: str
    packed: bool


FORMATS = {
    "PcmMessagePack": Format("pcm_f32le", packed=True),
    "Pcm": Format("pcm_f32le", packed=False),
    "OggOpusMessagePack": Format("opus", packed=True),
    "OggOpus": Format("opus", packed=False),
}
DEFAULT_FORMAT = "OggOpus"


@dataclass(frozen=True, slots=True)
class Query:
    """A good URL."""

    hello: Hello
    format: Format


class Kyutai(Dialect):
    """One socket, one session, one utterance. ``query`` is the fault of a bad URL."""

    def __init__(self, query: Query | ProtocolError) -> None:
        self._query = query
        self._packed = isinstance(query, ProtocolError) or query.format.packed
        self._text = ""
        self._begun = False
        self._ended = False
        self._played = 0
        self._ogg: OggOpusWriter | None = None
        self._packet_samples = 0

    def opened(self, now: float) -> Actions:
        if isinstance(self._query, ProtocolError):
            return self._fault(self._query)
        return [Native(CONTEXT, self._query.hello)]

    # ------------------------------------------------------------ from the client

    def receive(self, frame: bytes | str, now: float) -> Actions:
        try:
            return self._receive(frame)
        except ProtocolError as fault:
            return self._fault(fault)

    def _receive(self, frame: bytes | str) -> list[Action]:
        if isinstance(frame, str):
            return self._speak(string({"text": frame}, "text"))
        if frame == EOS:
            return self._end()
        message = parse_msgpack(frame, BOUNDS)
        act = self._ACTS.get(string(message, "type"))
        if act is None:
            raise bad_message("unknown message type", "Text, Eos or Voice")
        return act(self, message)

    def _speak(self, text: str) -> list[Action]:
        if not text.strip():
            return []
        if self._ended:
            raise ProtocolError("invalid_state", "text after Eos", "a new connection")
        actions: list[Action] = []
        if not self._begun:
            self._begun = True
            actions.append(Native(CONTEXT, Start()))
        elif not (self._text[-1].isspace() or text[0].isspace()):
            text = " " + text  # every message holds whole words
        self._text = text
        return actions + [Native(CONTEXT, piece) for piece in texts(text)]

    def _end(self) -> list[Action]:
        if self._ended:
            return []
        self._ended = True
        return [Native(CONTEXT, End())] if self._begun else [Hangup(NORMAL)]

    # ------------------------------------------------------------ from the session

    def tell(self, context: str, message: ServerMessage, now: float) -> Actions:
        match message:
            case Ready():
                return self._ready(message)
            case Audio():
                return self._audio(message)
            case Failed() | ErrorEvent():
                return self._fault(ProtocolError(message.code, message.message, message.expected))
        return []

    def _ready(self, message: Ready) -> list[Action]:
        actions = self._map({"type": "Ready"})
        if message.codec == "opus":
            self._packet_samples = message.packet_samples
            self._ogg = OggOpusWriter(RATE, message.pre_skip, serial=1, vendor=message.server)
            actions += self._sound(self._ogg.head())
        return actions

    def _audio(self, message: Audio) -> list[Action]:
        actions: list[Action] = []
        end = message.position + message.samples
        stops = [*(word.position for word in message.words[1:]), end]
        for word, stop in zip(message.words, stops, strict=False):
            times = {"start_s": word.position / RATE, "stop_s": max(word.position, stop) / RATE}
            actions += self._map({"type": "Text", "text": word.text, **times})
        self._played += message.samples
        data = message.data
        if self._ogg is not None:
            last = self._played if message.final else None
            lengths = message.packets or ()
            data = self._ogg.packets(data, lengths, self._packet_samples, last=last)
        actions += self._sound(data)
        return [*actions, Hangup(NORMAL)] if message.final else actions

    def _sound(self, data: bytes) -> list[Action]:
        if not data:
            return []
        if not self._packed:
            return [Frame(data)]
        if self._ogg is None:
            return [Frame(pack_audio(data))]
        return self._map({"type": "OggOpus", "data": data})

    def _map(self, message: dict[str, Any]) -> list[Action]:
        return [Frame(msgpack.packb(message))] if self._packed else []

    def _fault(self, fault: ProtocolError) -> list[Action]:
        text = f"{fault.message}; expected {fault.expected}"
        reason = text.encode("ascii", "replace")[:120].decode()
        told = self._map({"type": "Error", "message": text})
        return [*told, Hangup(CLOSES.get(fault.code, POLICY), reason)]

    _ACTS: ClassVar[dict[str, Callable[["Kyutai", dict[str, Any]], list[Action]]]] = {
        "Text": lambda self, message: self._speak(string(message, "text")),
        "Eos": lambda self, message: self._end(),
        "Voice": lambda self, message: _refuse_voice(),
    }


def pack_audio(data: bytes) -> bytes:
    """``{"type": "Audio", "pcm": [...]}`` of little-endian float32 samples, each a msgpack
    float 32."""
    samples = np.frombuffer(data, "<f4")
    packed = np.empty(len(samples), ARRAY_OF_FLOATS)
    packed["type"], packed["value"] = FLOAT32, samples
    head = msgpack.packb({"type": "Audio", "pcm": None})[:-1]
    return bytes(head) + struct.pack(">BI", ARRAY32, len(samples)) + packed.tobytes()


def _refuse_voice() -> list[Action]:
    raise ProtocolError("bad_value", "voices are not made from embeddings here", "voice in the URL")


def _read_query(query: Mapping[str, str], facts: ServerFacts) -> Query:
    form = FORMATS[choice(query, "format", tuple(FORMATS), DEFAULT_FORMAT)]
    if form.codec not in {entry["codec"] for entry in facts.formats}:
        raise ProtocolError("unsupported_codec", "Opus is not made here", "format: PcmMessagePack")
    voice = voice_of(string(query, "voice", facts.default_voice), facts, VOICES)
    hello = Hello(
        voice=voice, codec=form.codec, sample_rate=RATE, start_threshold=0.0, reports=False
    )
    return Query(hello, form)


def open_kyutai(opening: Opening, facts: ServerFacts, request_id: str) -> Kyutai:
    """A bad URL is told in an Error, as at the vendor. Sampling parameters are not looked at."""
    try:
        return Kyutai(_read_query(opening.query, facts))
    except ProtocolError as fault:
        return Kyutai(fault.with_traceback(None))  # kept: its frames would hold the connection
