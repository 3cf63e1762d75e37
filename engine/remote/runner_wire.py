"""What the engine's process and its model's process say to each other, and how it is framed. Pure.

Two kinds of line. On the *control* line frames are those of ``wire``: a length and a MessagePack
array of messages. On a *lane's* line one message goes each way at a time, as a head of two lengths,
MessagePack, and sound as it lies in memory (float32), which is neither encoded nor copied here.
Each side trusts the other: it started it, or was started by it, with the lines in hand.
"""

import struct
from collections.abc import Sequence
from functools import cache
from typing import Final, TypeAlias, TypeVar

import msgspec
import numpy as np
from playhead.engine.answers import Answer
from playhead.engine.policy import LaneLimits
from playhead.engine.remote.wire import MOST, WireError
from playhead.engine.types import (
    ChunkWork,
    ModelInfo,
    Pcm,
    Request,
    RunnerDead,
    StepResult,
)

HEAD: Final = struct.Struct("<II")
"""Bytes of MessagePack, bytes of sound."""

_SAMPLE: Final = np.dtype(np.float32).itemsize
_MOST_FRAMES: Final = 255
"""Frames of a stream and step that are told as one byte."""


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
    """What was to be said of requests and texts, in the order in which they came."""

    answers: list[Answer]


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
    more to say than that, by their place in it. ``uncaptured``: see ``EngineConfig``."""

    frames: bytes
    told: dict[int, StepResult]
    uncaptured: int


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


def stepped(utterances: Sequence[int], results: Sequence[StepResult], uncaptured: int) -> Stepped:
    """The answer to a step. Raises ``RuntimeError`` where ``results`` are not those of the batch:
    the other side has only the order to go by."""
    if [result.utterance for result in results] != list(utterances):
        raise RuntimeError("the model's answers are not those of the batch")
    told = {
        place: result
        for place, result in enumerate(results)
        if result.hungry
        or result.ended
        or result.boundary
        or result.error is not None
        or result.words
        or result.warnings
        or result.frames > _MOST_FRAMES
    }
    frames = [result.frames for result in results]
    for place in told:
        frames[place] = 0
    return Stepped(bytes(frames), told, uncaptured)


class StepResults:
    """Results of steps as they were on the other side. Those that only tell a number of frames are
    made once per utterance. Any thread, each utterance by one at a time."""

    def __init__(self) -> None:
        self._plain: dict[int, list[StepResult]] = {}

    def open(self, utterance: int) -> None:
        """It may be stepped from now on."""
        self._plain[utterance] = []

    def close(self, utterance: int) -> None:
        """It is stepped no more."""
        self._plain.pop(utterance, None)

    def unpack(self, utterances: Sequence[int], answer: Stepped) -> list[StepResult]:
        """Results in the order of the batch. Raises :class:`WireError` where they do not fit."""
        if len(answer.frames) != len(utterances):
            raise WireError(f"{len(answer.frames)} answers to {len(utterances)} streams")
        plain = self._plain
        try:
            results = [
                plain[stream][frames]
                for stream, frames in zip(utterances, answer.frames, strict=True)
            ]
        except IndexError:
            self._make(utterances, max(answer.frames))
            return self.unpack(utterances, answer)
        for place, result in answer.told.items():
            results[place] = result
        return results

    def _make(self, utterances: Sequence[int], most: int) -> None:
        for stream in utterances:
            known = self._plain[stream]
            known += [
                StepResult(stream, frames, boundary=False, hungry=False, ended=False)
                for frames in range(len(known), most + 1)
            ]


def decoded(results: Sequence[Pcm | BaseException]) -> tuple[Decoded, list[Pcm]]:
    """The answer to a decode, and the sound that goes with it."""
    sound: list[Pcm] = []
    faults: dict[int, Fault] = {}
    for place, result in enumerate(results):
        if isinstance(result, BaseException):
            faults[place] = fault_of(result)
        else:
            sound.append(np.ascontiguousarray(result, np.float32))
    samples = [0 if isinstance(result, BaseException) else len(result) for result in results]
    return Decoded(samples, faults), sound


def shared_out(answer: Decoded, sound: Pcm, chunks: int) -> list[Pcm | BaseException]:
    """``sound`` (float32 [samples of all chunks]) as views, one per chunk, or its fault. Raises
    :class:`WireError` where it does not fit."""
    if len(answer.samples) != chunks or sum(answer.samples) != len(sound):
        raise WireError(f"{len(sound)} samples for {len(answer.samples)} of {chunks} chunks")
    results: list[Pcm | BaseException] = []
    at = 0
    for samples in answer.samples:
        results.append(sound[at : at + samples])
        at += samples
    for place, fault in answer.faults.items():
        results[place] = raised(fault)
    return results


def fault_of(error: BaseException) -> Fault:
    """How an exception crosses."""
    return Fault(type(error).__name__, str(error))


def raised(fault: Fault) -> Exception:
    """An exception of the same name that says the same. ``RunnerDead`` is itself; no other is told
    apart by who catches it."""
    if fault.kind == RunnerDead.__name__:
        return RunnerDead(fault.text)
    return _kind(fault.kind)(fault.text)


@cache
def _kind(name: str) -> type[RuntimeError]:
    return type(name, (RuntimeError,), {})
