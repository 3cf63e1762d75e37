"""Values that cross between the gateway, the scheduler and the lanes.

Everything here is immutable. Positions and counts are samples at the model's rate unless a
name says otherwise; times and durations are seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Pcm = npt.NDArray[np.float32]

PLACE_KEPT: Final = 10.0
"""Seconds for which a cut listener's place is kept, however full the house: nearly all who come
back are there by then."""


class Urgency(StrEnum):
    """Which signal drives the deadlines."""

    REPORTED = "reported"  # the listener's own playhead reports
    ESTIMATED = "estimated"  # open loop: what was sent, and when
    NONE = "none"  # no deadlines: first come, first served


class Source(StrEnum):
    """Who says where a listener is."""

    PLAYER = "player"  # its own counters, several times a second
    MARK = "mark"  # it tells when it has played up to a mark in the stream
    OFFSET = "offset"  # one position, told when it was interrupted
    SOCKET = "socket"  # nobody: inferred from what its machine has acknowledged

    @property
    def confidence(self) -> float:
        """How far a fresh report is to be trusted, 0 to 1. Only what the listener itself says
        shows that it plays; a socket shows no more than what it cannot have played yet."""
        return _CONFIDENCE[self]


class Lane(StrEnum):
    """Where work runs (design.md, "The three lanes")."""

    LM = "lm"
    BACKGROUND = "background"
    URGENT = "urgent"


class ListenerState(StrEnum):
    """What the listener's player is doing, as it reports it."""

    IDLE = "idle"  # nothing of this utterance has arrived
    PREBUFFER = "prebuffer"  # holds audio, waits for its start threshold
    PLAYING = "playing"
    STALLED = "stalled"  # ran dry inside the utterance
    PAUSED = "paused"  # by the user
    SUSPENDED = "suspended"  # by the platform (autoplay policy, hidden tab) or by a cut socket
    DRAINED = "drained"  # played everything up to the end of the utterance


_CONFIDENCE = {Source.PLAYER: 1.0, Source.MARK: 1.0, Source.OFFSET: 1.0, Source.SOCKET: 0.0}


class Finish(StrEnum):
    """How an utterance ended. Exactly one per utterance."""

    COMPLETE = "complete"
    LENGTH_BUDGET = "length_budget"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Request:
    """One utterance to be spoken."""

    utterance: int  # unique in the process
    client: str  # who is served: key of the learned lead and of the network's delay
    voice: str
    speed: float = 1.0
    seed: int = 0
    start_threshold: float = 0.0  # seconds of audio the player collects before it starts
    playback_rate: float = 1.0  # how fast the player drains, as declared
    reports: bool = True  # False: the client never reports; estimate from what was sent
    ahead: float = 0.0  # seconds of earlier speech that the listener still has to play
    language: str = "auto"  # of voices that speak several
    instruct: str = ""  # how to speak, in words, for voices that take it
    account: str = ""  # who is answerable: key of fairness, shared by its clients; "": the client
    gateway: int = 0  # the process its listener is connected to; 0: the engine's own

    @property
    def payer(self) -> str:
        """Whose share of the machine this utterance takes."""
        return self.account or self.client


@dataclass(frozen=True, slots=True)
class Report:
    """A listener's cumulative playback counters for one utterance.

    ``received == consumed + discarded + buffered`` up to one render quantum. ``heard`` is
    ``consumed`` less what is still in the output device.
    """

    utterance: int
    received: int
    consumed: int
    heard: int
    buffered: int
    discarded: int
    state: ListenerState
    underruns: int = 0
    starved: float = 0.0  # seconds spent dry inside the utterance, cumulative
    client_time: float = 0.0  # the client's own monotonic seconds; only differences are used
    source: Source = Source.PLAYER


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the input text and where it starts in the audio."""

    text: str  # verbatim slice of the utterance's input text
    start: int  # sample
    char_start: int  # offset into the utterance's input text (code points)
    char_end: int


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """PCM of consecutive frames, in order, without gaps."""

    utterance: int
    index: int  # 0, 1, 2 … within the utterance
    start: int  # first sample's position in the utterance
    pcm: Pcm  # float32 [samples], nominal range -1..1
    words: tuple[Word, ...]  # words that start inside this chunk
    lane: Lane  # which codec lane made it
    slack: float | None  # seconds to spare when it was routed; None: no deadline
    depth: float  # believed seconds the listener still had, at routing
    queued_at: float = 0.0  # when it was first wanted; monotonic, like the next
    made_at: float = 0.0  # when the engine had it


@dataclass(frozen=True, slots=True)
class TextWarning:
    """Something in the text could not be spoken as written."""

    utterance: int
    code: str  # "unspeakable_text", "text_normalized", …
    message: str
    text: str  # the characters concerned


@dataclass(frozen=True, slots=True)
class Finished:
    """Terminal event of an utterance; nothing follows it."""

    utterance: int
    reason: Finish
    samples: int  # total audio produced
    code: str | None = None  # stable error code when reason is FAILED
    message: str = ""
    retry_after: float | None = None


EngineEvent = AudioChunk | TextWarning | Finished


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What the scheduler must know of a speech model."""

    name: str
    voices: tuple[str, ...]
    sample_rate: int  # Hz
    frame_samples: int  # samples of one codec frame
    chunk_frames: tuple[int, ...]  # chunk sizes the codec may be asked for, ascending
    step_frames: int  # most frames one backbone step of one stream yields
    streaming_text: bool = True
    languages: tuple[str, ...] = ("auto",)  # accepted in requests; the first is the default
    takes_instruct: bool = False  # whether a request may say in words how to speak
    random_weights: bool = False  # for measurements: what is spoken is noise


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one backbone step of one stream gave.

    ``frames`` new frames are ready for the codec. ``boundary`` says that a chunk must not run
    past the last of them (the next frame starts an independent segment). ``hungry`` says that
    stepping again is useless until more text comes; ``ended`` that no frame will ever follow;
    ``waiting``, of a step without a frame, that the model has not come to its prompt's end yet: it
    is reading it, or those of others before.
    """

    utterance: int
    frames: int
    boundary: bool
    hungry: bool
    ended: bool
    words: tuple[Word, ...] = ()
    warnings: tuple[TextWarning, ...] = ()
    finish: Finish = Finish.COMPLETE
    error: str | None = None  # this stream alone failed; others of the batch are unharmed
    waiting: bool = False


@dataclass(frozen=True, slots=True)
class ChunkWork:
    """Frames [first, first + frames) of one utterance, to be decoded."""

    utterance: int
    index: int
    first: int
    frames: int
    lane: Lane
    slack: float | None
    depth: float
    queued_at: float


class ModelCounts(NamedTuple):
    """What a model on an accelerator counts of itself, for metrics."""

    uncaptured: int = 0
    """Calls since it was ready that no captured graph held."""
    part: int = 0
    """Multiprocessors that the background lane now has for itself; 0: lanes share the device."""
    switches: int = 0
    """Changes of that so far."""


class RunnerDead(RuntimeError):
    """The device under a model has failed: no batch will ever succeed again."""


class Runner(Protocol):
    """Executes a speech model. Lane workers call ``step`` and ``decode``; for one utterance at
    most one ``step`` and one ``decode`` run at a time, possibly beside each other. The engine
    thread calls the rest, and ``close`` only when nothing of that utterance is running."""

    info: ModelInfo

    def open(self, request: Request) -> None:
        """Make room for an utterance. Raises ``ValueError`` for an unknown voice or speed."""

    def push_text(self, utterance: int, delta: str, *, flush: bool, end: bool) -> bool | None:
        """Add text (any size, may be empty). True when a step would now yield frames or end; None
        where the model says so later (``answers.py``). Raises ``ValueError`` for text that the
        model cannot take (beyond its context, say)."""

    def step(self, utterances: Sequence[int]) -> list[StepResult]:
        """One backbone step of each stream, batched. Results in the given order."""

    def decode(self, chunks: Sequence[ChunkWork]) -> list[Pcm | BaseException]:
        """Decode each chunk: float32 [frames * frame_samples] or the fault of that stream."""

    def close(self, utterance: int) -> None:
        """Forget an utterance and free all it holds."""
