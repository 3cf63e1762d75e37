"""What the engine's process and its model's process say to each other, and how it is framed. Pure.

Two kinds of line. On the *control* line frames are those of ``wire``: a length and a MessagePack
array of messages. On a *lane's* line one message goes each way at a time, as a head of two lengths,
MessagePack, and sound as it lies in memory (float32), which is neither encoded nor copied here.
Each side trusts the other: it started it, or was started by it, with the lines in hand.
"""

import struct
from collections.abc import Sequence
from typing import Final, TypeAlias, TypeVar

import msgspec
import numpy as np
from playhead.engine.answers import Answer
from playhead.engine.policy import LaneLimits
from playhead.engine.remote.wire import MOST, WireError
from playhead.engine.types import (
    ChunkWork,
    ModelCounts,
    ModelInfo,
    Pcm,
    Request,
    StepResult,
)

HEAD: Final = struct.Struct("<II")
"""Bytes of MessagePack, bytes of sound."""

_SAMPLE: Final = np.dtype(np.float32).itemsize


class Begin(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """Load the model that ``settings`` (for the model's side to read) name."""

    settings: bytes


class Open(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Make room for an utterance."""

    request: Request


class Text(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """More text of an utterance."""

    utterance: int
    delta: str
    flush: bool
    end: bool


class Close(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Forget an utterance."""

    utterance: int


class Loading(msgspec.Struct, frozen=True, array_like=True, tag=16):
    """How far the model's loading is."""

    stage: str
    done: float


class Refused(msgspec.Struct, frozen=True, array_like=True, tag=17):
    """The model cannot be served."""

    why: str


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=18):
    """The model can be asked."""

    info: ModelInfo
    limits: LaneLimits


class Answered(msgspec.Struct, frozen=True, array_like=True, tag=19):
    """What was to be said of requests and texts, in the order in which they came, and how many of
    these have been taken so far."""

    answers: list[Answer]
    taken: int


class Step(msgspec.Struct, frozen=True, array_like=True, tag=32):
    """One backbone step of each stream."""

    utterances: list[int]


class Decode(msgspec.Struct, frozen=True, array_like=True, tag=33):
    """Decode each chunk."""

    chunks: list[ChunkWork]


class Fault(msgspec.Struct, frozen=True, array_like=True):
    """An exception: the name of its type, and what it says."""

    kind: str
    text: str


class Stepped(msgspec.Struct, frozen=True, array_like=True, tag=48):
    """``frames``: a byte for each stream of the batch. ``told``: the results of those that have
    more to say than that, by their place in it. ``counts``: of the model, so far."""

    frames: bytes
    told: dict[int, StepResult]
    counts: ModelCounts


class Decoded(msgspec.Struct, frozen=True, array_like=True, tag=49):
    """``samples`` of each chunk, which follow one after the other; ``faults`` of those that have
    none, by their place."""

    samples: list[int]
    faults: dict[int, Fault]


class Failed(msgspec.Struct, frozen=True, array_like=True, tag=50):
    """The whole batch failed."""

    fault: Fault


FromEngine: TypeAlias = Begin | Open | Text | Close
FromModel: TypeAlias = Loading | Refused | Ready | Answered
Work: TypeAlias = Step | Decode
Done: TypeAlias = Stepped | Decoded | Failed

T = TypeVar("T")

_encoder: Final = msgspec.msgpack.Encoder()
_from_engine: Final = msgspec.msgpack.Decoder(list[FromEngine])
_from_model: Final = msgspec.msgpack.Decoder(list[FromModel])
_work: Final = msgspec.msgpack.Decoder(Work)
_done: Final = msgspec.msgpack.Decoder(Done)


def encode(messages: Sequence[FromEngine | FromModel]) -> bytes:
    """One frame of the control line."""
    body = _encoder.encode(messages)
    return len(body).to_bytes(4, "big") + body


def from_engine(frame: bytes) -> list[FromEngine]:
    """The messages of a frame without its length. Raises :class:`WireError`."""
    return _decoded(_from_engine, frame)


def from_model(frame: bytes) -> list[FromModel]:
    """The messages of a frame without its length. Raises :class:`WireError`."""
    return _decoded(_from_model, frame)


def work(body: bytes | memoryview) -> Work:
    """What a lane is to do. Raises :class:`WireError`."""
    return _decoded(_work, body)


def done(body: bytes | memoryview) -> Done:
    """What a lane has done. Raises :class:`WireError`."""
    return _decoded(_done, body)


def _decoded(decoder: "msgspec.msgpack.Decoder[T]", data: bytes | memoryview) -> T:
    try:
        return decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise WireError(f"between the engine and its model came no message: {error}") from error


# -- a lane's line ----------------------------------------------------------------------------


def letter(message: Work | Done, sound: Sequence[Pcm] = ()) -> list[memoryview]:
    """What to send, piece by piece, in bytes; ``sound`` arrays must be contiguous."""
    body = _encoder.encode(message)
    head = HEAD.pack(len(body), sum(pcm.nbytes for pcm in sound)) + body
    return [memoryview(head), *(pcm.data.cast("B") for pcm in sound)]


def lengths(head: bytes | bytearray | memoryview) -> tuple[int, int]:
    """Bytes of MessagePack and of sound that follow. Raises :class:`WireError`."""
    body, sound = HEAD.unpack(head)
    if body > MOST or sound % _SAMPLE:
        raise WireError(f"a message of {body} bytes with {sound} of sound: there is none such")
    return body, sound
