"""Audio messages of a session as the bytes of a response. Pure: one writer per response."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from playhead.codecs.mp3 import BIT_RATE, Mp3Writer
from playhead.codecs.ogg import OggOpusWriter
from playhead.codecs.wav import endless_header
from playhead.gateway.messages import Audio, Ready

RATE: Final = 24_000
"""Hz, of every format: what OpenAI's ``pcm`` means to its clients."""
TOKENS_PER_SECOND: Final = 20
"""OpenAI counts one token for 50 ms of speech that it makes."""


class Body(Protocol):
    """Turns a session's audio into a file that is still being written."""

    def begin(self) -> bytes:
        """What stands before the audio."""

    def add(self, audio: Audio) -> bytes:
        """One message, in order; the last one is ``final``."""


class PcmBody:
    """The samples and nothing else."""

    def __init__(self, ready: Ready) -> None:
        """Every format starts from the same facts; this one needs none of them."""

    def begin(self) -> bytes:
        return b""

    def add(self, audio: Audio) -> bytes:
        return audio.data


class WavBody(PcmBody):
    """Samples behind one RIFF header that leaves the length open."""

    def __init__(self, ready: Ready) -> None:
        self._head = endless_header(ready.sample_rate, ready.codec)

    def begin(self) -> bytes:
        return self._head


class Mp3Body:
    """Whole MP3 frames. ``bit_rate`` in kbit/s."""

    def __init__(self, ready: Ready, bit_rate: int = BIT_RATE) -> None:
        self._writer = Mp3Writer(ready.sample_rate, bit_rate)

    def begin(self) -> bytes:
        return b""

    def add(self, audio: Audio) -> bytes:
        data = self._writer.write(audio.data)
        return data + self._writer.finish() if audio.final else data


class OpusBody:
    """Opus in Ogg."""

    def __init__(self, ready: Ready) -> None:
        self._packet = ready.packet_samples
        self._played = 0
        # Any number will do while a file holds one logical stream (RFC 3533, section 4).
        self._writer = OggOpusWriter(
            ready.sample_rate, ready.pre_skip, serial=1, vendor=ready.server
        )

    def begin(self) -> bytes:
        return self._writer.head()

    def add(self, audio: Audio) -> bytes:
        self._played += audio.samples
        last = self._played if audio.final else None
        return self._writer.packets(audio.data, audio.packets or (), self._packet, last=last)


@dataclass(frozen=True, slots=True)
class Format:
    """How a ``response_format`` is made. ``heavy``: not on the event loop."""

    codec: str
    media_type: str
    open: Callable[[Ready], Body]
    heavy: bool = False


FORMATS: Final = {
    "pcm": Format("pcm_s16le", "audio/pcm", PcmBody),
    "wav": Format("pcm_s16le", "audio/wav", WavBody),
    "opus": Format("opus", "audio/ogg", OpusBody),
    "mp3": Format("pcm_s16le", "audio/mpeg", Mp3Body, heavy=True),
}
EVENTS: Final = "text/event-stream"


def event(fields: dict[str, Any]) -> bytes:
    """One server-sent event (WHATWG HTML, 9.2); its ``type`` is inside the data, as OpenAI's is."""
    return b"data: " + json.dumps(fields, separators=(",", ":")).encode() + b"\n\n"


def audio_event(data: bytes) -> bytes:
    """``speech.audio.delta``; nothing for no audio."""
    if not data:
        return b""
    return event({"type": "speech.audio.delta", "audio": base64.b64encode(data).decode("ascii")})


def done_event(characters: int, samples: int) -> bytes:
    """``speech.audio.done``. No tokens are counted here: characters stand for those of the text,
    and 50 ms of speech for one of the audio."""
    spoken = -(-samples * TOKENS_PER_SECOND // RATE)
    usage = {
        "input_tokens": characters,
        "output_tokens": spoken,
        "total_tokens": characters + spoken,
    }
    return event({"type": "speech.audio.done", "usage": usage})
