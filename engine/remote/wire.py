"""What the engine's process and its gateways say to each other, and how it is framed. Pure.

A frame is four bytes of length (big endian), four bytes of length of the messages, a MessagePack
array of these, and the PCM of their chunks, as it lay in memory: a second of a busy engine is a
hundred megabytes, and whoever copies them holds up all that share its interpreter. Each side trusts
the other: both are ours, and the socket lies in a folder that only their user can enter.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
from playhead.engine.picture import EnginePicture
from playhead.engine.stats import EngineStats
from playhead.engine.types import (
    AudioChunk,
    Finished,
    ListenerState,
    ModelInfo,
    Report,
    Request,
    TextWarning,
)

STRIDE: Final = 128
"""Utterances of gateway ``k`` have numbers that are ``k`` modulo this: most gateways at once."""

MOST: Final = 64 * 2**20
"""Bytes of the longest frame: more is a fault, not a message."""

_PREFIX: Final = 4


class Submit(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """Speak an utterance."""

    request: Request


class Text(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """More text of an utterance."""

    utterance: int
    delta: str
    flush: bool
    end: bool


class Cancel(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """End an utterance at once."""

    utterance: int


class Reported(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """A listener's report that arrived at ``now``."""

    report: Report
    now: float


class Held(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Freeze an utterance's listener, or let it go on."""

    utterance: int
    state: ListenerState | None
    now: float


class Delay(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """The one-way delay to a client, seconds."""

    client: str
    one_way: float


class Forget(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """A client is gone for good."""

    client: str


class Look(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """A picture is wanted; ``number`` comes back with it."""

    number: int
    utterances: list[int]


class Paused(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """The gateway's event loop stood still for so many seconds until ``now``."""

    seconds: float
    now: float


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=16):
    """The engine's first message. The gateway's utterances are ``first``, ``first + STRIDE``, …"""

    info: ModelInfo
    stats: EngineStats
    first: int


class Chunk(msgspec.Struct, frozen=True, array_like=True, tag=17):
    """Audio."""

    event: AudioChunk


class Warned(msgspec.Struct, frozen=True, array_like=True, tag=18):
    """Something could not be spoken as written."""

    event: TextWarning


class Ended(msgspec.Struct, frozen=True, array_like=True, tag=19):
    """An utterance's terminal event."""

    event: Finished


class Stats(msgspec.Struct, frozen=True, array_like=True, tag=20):
    """The engine after its last turn."""

    stats: EngineStats


class Picture(msgspec.Struct, frozen=True, array_like=True, tag=21):
    """What an onlooker asked for."""

    number: int
    picture: EnginePicture


class Tell(msgspec.Struct, frozen=True, array_like=True, tag=23):
    """It is this gateway that shows the engine's figures: one does, for as long as it is there."""


class Dead(msgspec.Struct, frozen=True, array_like=True, tag=22):
    """The engine has stopped for good."""

    reason: str


FromGateway: TypeAlias = Submit | Text | Cancel | Reported | Held | Delay | Forget | Look | Paused
FromEngine: TypeAlias = Hello | Chunk | Warned | Ended | Stats | Tell | Picture | Dead


class WireError(ValueError):
    """What came is no frame of this protocol."""


Part: TypeAlias = bytes | memoryview


class Packer:
    """Makes frames of messages. One thread at a time."""

    def __init__(self) -> None:
        self._encoder = msgspec.msgpack.Encoder(enc_hook=self._set_aside)
        self._audio: list[memoryview] = []

    def pack(self, messages: Sequence[FromGateway | FromEngine]) -> list[Part]:
        """One frame of all ``messages``, in parts to be written one after the other. PCM is not
        copied: it must not change until it is written."""
        self._audio = []
        body = self._encoder.encode(messages)
        at = _audio_at(len(body))
        lengths = (at + sum(part.nbytes for part in self._audio), len(body))
        head = b"".join(length.to_bytes(_PREFIX, "big") for length in lengths)
        return [(head + body).ljust(_PREFIX + at, b"\0"), *self._audio]

    def _set_aside(self, value: Any) -> int:
        if not isinstance(value, np.ndarray):
            raise NotImplementedError(f"a {type(value).__name__} cannot cross")
        if value.size:  # an empty array has no bytes to look at
            self._audio.append(np.ascontiguousarray(value, np.float32).data.cast("B"))
        return value.size


class Unpacker:
    """Reads frames. One thread at a time."""

    def __init__(self) -> None:
        self._from_engine = msgspec.msgpack.Decoder(list[FromEngine], dec_hook=self._next)
        self._frame, self._at = b"", 0

    def from_gateway(self, frame: bytes) -> list[FromGateway]:
        """The messages of a frame without its length. Raises :class:`WireError`."""
        try:
            return _from_gateway.decode(_body(frame))
        except msgspec.MsgspecError as error:
            raise WireError(f"a gateway sent what is no message: {error}") from error

    def from_engine(self, frame: bytes) -> list[FromEngine]:
        """The messages of a frame without its length; PCM float32 [samples], views of the frame,
        read only. Raises :class:`WireError`."""
        body = _body(frame)
        self._frame, self._at = frame, _audio_at(len(body))
        try:
            return self._from_engine.decode(body)
        except msgspec.MsgspecError as error:
            raise WireError(f"the engine sent what is no message: {error}") from error
        finally:
            self._frame = b""

    def _next(self, kind: type, samples: Any) -> Any:
        """The next PCM, the only type that MessagePack does not know."""
        pcm = np.frombuffer(self._frame, np.float32, samples, self._at)
        self._at += pcm.nbytes
        return pcm


_from_gateway: Final = msgspec.msgpack.Decoder(list[FromGateway])


def _audio_at(length: int) -> int:
    """Where in a frame the audio begins, behind ``length`` bytes of messages: numbers lie where
    processors like them to."""
    return -(-(_PREFIX + length) // 4) * 4


def _body(frame: bytes) -> memoryview:
    """The messages of a frame, without its PCM."""
    return memoryview(frame)[_PREFIX : _PREFIX + int.from_bytes(frame[:_PREFIX], "big")]


class Frames:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that ``data`` completes, without their lengths. Raises :class:`WireError`."""
        whole: bytes | bytearray = data
        if self._rest:
            self._rest += data
            whole = self._rest
        frames = []
        at = 0
        while (end := _end(whole, at)) is not None:
            frames.append(bytes(whole[at + _PREFIX : end]))
            at = end
        if whole is data:
            self._rest += data[at:]
        else:
            del self._rest[:at]
        return frames


def _end(data: bytes | bytearray, at: int) -> int | None:
    """Where the frame at ``at`` ends, if all of it is there."""
    if len(data) - at < _PREFIX:
        return None
    length = int.from_bytes(data[at : at + _PREFIX], "big")
    if length > MOST:
        raise WireError(f"a frame of {length} bytes: {MOST} are the most")
    end = at + _PREFIX + length
    return end if end <= len(data) else None
