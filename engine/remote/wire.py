"""What the engine's process and its gateways say to each other, and how it is framed. Pure.

A frame is four bytes of length (big endian) and a MessagePack array of messages. Each side trusts
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


FromGateway: TypeAlias = Submit | Text | Cancel | Reported | Held | Delay | Forget | Look
FromEngine: TypeAlias = Hello | Chunk | Warned | Ended | Stats | Tell | Picture | Dead


class WireError(ValueError):
    """What came is no frame of this protocol."""


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value, np.float32).tobytes()
    raise NotImplementedError(f"a {type(value).__name__} cannot cross")


def _array(kind: type, value: Any) -> Any:
    """PCM, the only type that MessagePack does not know: float32 [samples], read only."""
    return np.frombuffer(value, np.float32)


_encoder: Final = msgspec.msgpack.Encoder(enc_hook=_plain)
_from_gateway: Final = msgspec.msgpack.Decoder(list[FromGateway])
_from_engine: Final = msgspec.msgpack.Decoder(list[FromEngine], dec_hook=_array)


def encode(messages: Sequence[FromGateway | FromEngine]) -> bytes:
    """One frame of all ``messages``."""
    body = _encoder.encode(messages)
    return len(body).to_bytes(_PREFIX, "big") + body


def from_gateway(frame: bytes) -> list[FromGateway]:
    """The messages of a frame without its length. Raises :class:`WireError`."""
    try:
        return _from_gateway.decode(frame)
    except msgspec.MsgspecError as error:
        raise WireError(f"a gateway sent what is no message: {error}") from error


def from_engine(frame: bytes) -> list[FromEngine]:
    """The messages of a frame without its length. Raises :class:`WireError`."""
    try:
        return _from_engine.decode(frame)
    except msgspec.MsgspecError as error:
        raise WireError(f"the engine sent what is no message: {error}") from error


class Frames:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that ``data`` completes, without their lengths. Raises :class:`WireError`."""
        data = self._rest + data if self._rest else data
        frames = []
        at = 0
        while (end := _end(data, at)) is not None:
            frames.append(data[at + _PREFIX : end])
            at = end
        self._rest = data[at:]
        return frames


def _end(data: bytes, at: int) -> int | None:
    """Where the frame at ``at`` ends, if all of it is there."""
    if len(data) - at < _PREFIX:
        return None
    length = int.from_bytes(data[at : at + _PREFIX], "big")
    if length > MOST:
        raise WireError(f"a frame of {length} bytes: {MOST} are the most")
    end = at + _PREFIX + length
    return end if end <= len(data) else None
