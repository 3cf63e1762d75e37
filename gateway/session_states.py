"""What a session does with each message in each state: one table, which knows nobody.

Losing the socket and draining are not states of their own here: a session without a socket gets
no messages, and draining only decides where an utterance's end leads (``READY`` or ``DRAINING``).
"""

from dataclasses import dataclass
from enum import Enum, auto

from playhead.gateway.messages import (
    Ack,
    Cancel,
    ClientMessage,
    CloseSession,
    End,
    Flush,
    Hello,
    Pause,
    Ping,
    PlaybackReport,
    ResumePlayback,
    Start,
    Text,
)


class State(Enum):
    NEW = "new"  # no hello yet
    READY = "ready"  # no utterance takes text
    COMPOSING = "composing"  # the newest utterance takes text
    DISCARDING = "discarding"  # the newest utterance ended by itself; the rest of its text comes
    DRAINING = "draining"  # no utterance takes text, and none may be opened
    ENDED = "ended"


class Act(Enum):
    GREET = auto()
    OPEN = auto()
    OPEN_WITH_TEXT = auto()
    ADD_TEXT = auto()
    FLUSH = auto()
    END = auto()
    STOP_DISCARDING = auto()
    REPORT = auto()
    CANCEL = auto()
    PAUSE = auto()
    RELEASE = auto()
    ACKNOWLEDGE = auto()
    PONG = auto()
    CLOSE = auto()
    IGNORE = auto()
    REFUSE_DRAINING = auto()


@dataclass(frozen=True, slots=True)
class Invalid:
    """The message does not fit the state: why, and what would."""

    why: str
    expected: str


Row = Act | Invalid

_NO_HELLO = Invalid("the session is not open yet", "hello first")
_SECOND_HELLO = Invalid("hello was already received", "one hello per connection")
_NOT_OPEN = Invalid("no utterance takes text", "text or start first")
_STILL_OPEN = Invalid("an utterance still takes text", "end or cancel before start")

_ANYTIME: dict[type[ClientMessage], Row] = {
    Hello: _SECOND_HELLO,
    PlaybackReport: Act.REPORT,
    Cancel: Act.CANCEL,
    Pause: Act.PAUSE,
    ResumePlayback: Act.RELEASE,
    Ack: Act.ACKNOWLEDGE,
    Ping: Act.PONG,
    CloseSession: Act.CLOSE,
}
_MESSAGES: tuple[type[ClientMessage], ...] = (*_ANYTIME, Start, Text, Flush, End)

TABLE: dict[State, dict[type[ClientMessage], Row]] = {
    State.NEW: {
        **dict.fromkeys(_MESSAGES, _NO_HELLO),
        Hello: Act.GREET,
        CloseSession: Act.CLOSE,
    },
    State.READY: {
        **_ANYTIME,
        Start: Act.OPEN,
        Text: Act.OPEN_WITH_TEXT,
        Flush: _NOT_OPEN,
        End: _NOT_OPEN,
    },
    State.COMPOSING: {
        **_ANYTIME,
        Start: _STILL_OPEN,
        Text: Act.ADD_TEXT,
        Flush: Act.FLUSH,
        End: Act.END,
    },
    State.DISCARDING: {
        **_ANYTIME,
        Start: Act.OPEN,
        Text: Act.IGNORE,
        Flush: Act.IGNORE,
        End: Act.STOP_DISCARDING,
    },
    State.DRAINING: {
        **_ANYTIME,
        Start: Act.REFUSE_DRAINING,
        Text: Act.REFUSE_DRAINING,
        Flush: _NOT_OPEN,
        End: _NOT_OPEN,
    },
    State.ENDED: dict.fromkeys(_MESSAGES, Act.IGNORE),
}
