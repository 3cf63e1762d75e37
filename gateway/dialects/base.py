"""What a dialect is: frames of another protocol in, messages of ours out, and back. No I/O.

A dialect has one native session per *context* (a name of its own choice; one is enough where the
protocol has no contexts). The first native message to a context must be ``Hello``: it opens the
session. ``CloseSession`` ends it, and the name is free again. All methods answer with *actions*,
which the adapter performs in order; what a session answers to a native message reaches
:meth:`Dialect.tell` after the actions that were given along with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from playhead.gateway.access import Denied
from playhead.gateway.access_offer import Offer
from playhead.gateway.messages import ClientMessage, ServerMessage


@dataclass(frozen=True, slots=True)
class Opening:
    """What the client's upgrade request says. Header names are in lower case."""

    path: str
    # Any of these may hold a key, which whatever prints this must not show.
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    subprotocols: tuple[str, ...] = field(default=(), repr=False)


class Refused(Exception):
    """The upgrade is refused: an HTTP response in the dialect's own shape."""

    def __init__(
        self, status: HTTPStatus, body: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(body)
        self.status = status
        self.body = body
        self.headers = dict(headers or {})


@dataclass(frozen=True, slots=True)
class Native:
    """A message to the session of ``context``."""

    context: str
    message: ClientMessage


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame to the client: text (str) or binary (bytes)."""

    data: bytes | str


@dataclass(frozen=True, slots=True)
class Show:
    """A key or ticket that came in a message. It counts where the upgrade request had none, and
    must come before the first ``Native``."""

    offer: Offer


@dataclass(frozen=True, slots=True)
class Hangup:
    """Close the socket after all frames before. Every session ends."""

    code: int
    reason: str = ""


Action = Native | Frame | Show | Hangup
Actions = Sequence[Action]


class Dialect:
    """One connection's conversation. A subclass overrides what its protocol has."""

    subprotocol: str | None = None  # the one to choose of those offered

    def opened(self, now: float) -> Actions:
        """The socket is open."""
        return ()

    def receive(self, frame: bytes | str, now: float) -> Actions:
        """A frame of the client. Never raises for what a client may send."""
        raise NotImplementedError

    def tell(self, context: str, message: ServerMessage, now: float) -> Actions:
        """What the session of ``context`` says."""
        raise NotImplementedError

    def ended(self, context: str, code: int, reason: str, now: float) -> Actions:
        """The session of ``context`` has ended by itself, with that native close code: 1000 after
        ``CloseSession``, 1001 and 1012 when the server goes down, 1008 when it broke limits."""
        return () if code == NORMAL else (Hangup(code, reason),)

    def denied(self, denied: Denied, now: float) -> Actions:
        """The key that was shown in a message is not valid, or none came."""
        return (Hangup(POLICY, denied.message),)

    def get_timer(self) -> float | None:
        """When to call :meth:`handle_timer` (monotonic seconds), as things are now."""
        return None

    def handle_timer(self, now: float) -> Actions:
        """That time has come."""
        return ()


NORMAL = 1000
"""Close code of a connection that has served its purpose (RFC 6455, 7.4.1)."""
POLICY = 1008
INTERNAL = 1011
