"""What a session asks its adapter to do. The adapter performs effects in the order given.

``Send`` and ``Close`` go to the connection on whose behalf the session was called (or to the
attached one, for engine events and timers); all others go to the engine or the wire encoders,
whether or not a connection is attached.
"""

from dataclasses import dataclass

from playhead.codecs.registry import Format
from playhead.engine.types import ListenerState, Report, Request
from playhead.gateway.messages import ServerMessage


@dataclass(frozen=True, slots=True)
class Send:
    message: ServerMessage


@dataclass(frozen=True, slots=True)
class Close:
    """Close the WebSocket after everything sent before. ``code``: docs/protocol.md."""

    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class OpenEncoder:
    """Make a wire encoder for an utterance; comes before its ``Submit``."""

    utterance: int
    format: Format


@dataclass(frozen=True, slots=True)
class CloseEncoder:
    """Drop the utterance's encoder; what it may still give is unwanted."""

    utterance: int


@dataclass(frozen=True, slots=True)
class Submit:
    request: Request


@dataclass(frozen=True, slots=True)
class PushText:
    utterance: int
    delta: str
    flush: bool = False
    end: bool = False


@dataclass(frozen=True, slots=True)
class CancelUtterance:
    utterance: int


@dataclass(frozen=True, slots=True)
class ForwardReport:
    """A checked report in model samples; ``arrived``: when it was read from the socket."""

    report: Report
    arrived: float


@dataclass(frozen=True, slots=True)
class ForwardDelay:
    """One-way network delay of a client in seconds, measured from echoed stamps."""

    client: str
    one_way: float


@dataclass(frozen=True, slots=True)
class Hold:
    """Freeze an utterance's playhead (``PAUSED``, ``SUSPENDED``), or let it go on (``None``)."""

    utterance: int
    state: ListenerState | None


Effect = (
    Send
    | Close
    | OpenEncoder
    | CloseEncoder
    | Submit
    | PushText
    | CancelUtterance
    | ForwardReport
    | ForwardDelay
    | Hold
)
