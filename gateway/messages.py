"""The messages of ``playhead.v1`` as values (docs/protocol.md gives their meaning).

Positions and counts are samples at the session's wire sample rate, counted from the
utterance's first sample. Durations and stamps are milliseconds. ``None`` in a field that the
protocol marks optional means that the field is absent on the wire.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from playhead.engine.types import Lane, ListenerState, Source

# ---------------------------------------------------------------- client to server


@dataclass(frozen=True, slots=True)
class ResumeFrom:
    """Which session a new connection returns to, and the last contiguous ``seq`` it has."""

    session: str
    token: str
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    type: ClassVar[str] = "hello"
    voice: str | None = None
    speed: float = 1.0
    codec: str = "pcm_s16le"
    sample_rate: int = 24_000
    start_threshold: float = 100.0
    playback_rate: float = 1.0
    reports: bool = True
    binary_audio: bool = False
    language: str | None = None
    instruct: str | None = None
    resume: ResumeFrom | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    type: ClassVar[str] = "start"
    voice: str | None = None
    speed: float | None = None
    id: str | None = None
    language: str | None = None
    instruct: str | None = None


@dataclass(frozen=True, slots=True)
class Text:
    type: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True)
class Flush:
    type: ClassVar[str] = "flush"


@dataclass(frozen=True, slots=True)
class End:
    type: ClassVar[str] = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybackReport:
    type: ClassVar[str] = "report"
    epoch: int
    received: int
    consumed: int
    heard: int
    buffered: int
    state: ListenerState
    time: float
    discarded: int = 0
    underruns: int = 0
    starved: float = 0.0
    seq: int | None = None
    echo: float | None = None
    hold: float | None = None
    # Not on the wire: the server's own word for reports that no native client sent.
    source: Source = field(default=Source.PLAYER, metadata={"wire": False})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    type: ClassVar[str] = "cancel"
    epoch: int | None = None
    heard: int | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    type: ClassVar[str] = "pause"


@dataclass(frozen=True, slots=True)
class ResumePlayback:
    type: ClassVar[str] = "resume"


@dataclass(frozen=True, slots=True)
class Ack:
    type: ClassVar[str] = "ack"
    seq: int


@dataclass(frozen=True, slots=True)
class Ping:
    type: ClassVar[str] = "ping"
    time: float


@dataclass(frozen=True, slots=True)
class CloseSession:
    type: ClassVar[str] = "close"


ClientMessage = (
    Hello
    | Start
    | Text
    | Flush
    | End
    | PlaybackReport
    | Cancel
    | Pause
    | ResumePlayback
    | Ack
    | Ping
    | CloseSession
)

# ---------------------------------------------------------------- server to client


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """``received`` counts the client messages that this session has got, its first ``hello`` and
    those of resumed connections left out: a resuming client sends again what came after.
    ``instruct``: whether the model takes one. Servers before that say nothing of languages.
    ``report_interval``: milliseconds between reports while the listener's state stays."""

    type: ClassVar[str] = "ready"
    session: str
    token: str
    resumed: bool
    codec: str
    sample_rate: int
    pre_skip: int
    packet_samples: int
    voice: str
    voices: tuple[str, ...]
    formats: tuple[Mapping[str, Any], ...]
    limits: Mapping[str, int | float]
    grace: float
    epoch: int
    time: float
    model: str
    server: str
    received: int = 0
    language: str = ""
    languages: tuple[str, ...] = ()
    instruct: bool = False
    report_interval: int = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    type: ClassVar[str] = "started"
    seq: int
    epoch: int
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenWord:
    """A word of the utterance's text, and the wire sample at which it starts."""

    text: str
    position: int
    char_start: int
    char_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Audio:
    type: ClassVar[str] = "audio"
    seq: int
    epoch: int
    index: int
    position: int
    samples: int
    words: tuple[SpokenWord, ...]
    lane: Lane
    slack: float | None
    depth: float
    sent: float
    final: bool
    data: bytes = field(repr=False)
    packets: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    type: ClassVar[str] = "done"
    seq: int
    epoch: int
    samples: int
    heard: int
    estimated: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    type: ClassVar[str] = "cancelled"
    seq: int
    epoch: int
    heard: int
    heard_text: str
    unheard_text: str
    estimated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    type: ClassVar[str] = "failed"
    seq: int
    epoch: int
    code: str
    message: str
    expected: str
    heard: int
    heard_text: str
    unheard_text: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Warn:
    type: ClassVar[str] = "warning"
    seq: int
    code: str
    message: str
    epoch: int | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draining:
    type: ClassVar[str] = "draining"
    seq: int
    deadline: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pong:
    type: ClassVar[str] = "pong"
    time: float
    received: float
    sent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEvent:
    """``recovered`` (false) and ``reason`` come with ``resume_failed`` alone, ``epoch`` to
    ``unheard_text`` as well, when they are known."""

    type: ClassVar[str] = "error"
    code: str
    message: str
    expected: str
    retry_after: float | None = None
    field: str | None = None
    recovered: bool | None = None
    reason: str | None = None
    epoch: int | None = None
    heard: int | None = None
    heard_text: str | None = None
    unheard_text: str | None = None


#: Kept for resume and replayed byte for byte; ``seq`` counts them.
NumberedMessage = Started | Audio | Done | Cancelled | Failed | Warn | Draining
ServerMessage = Ready | Pong | ErrorEvent | NumberedMessage
