"""Values that a session is made from and leaves behind."""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from playhead.codecs.registry import Format
from playhead.gateway.limits import Limits
from playhead.gateway.messages import ErrorEvent
from playhead.gateway.pace import LEAST
from playhead.gateway.protocol_parse import ProtocolError


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What every session of a process shares. ``formats`` goes into ``ready`` as it is."""

    model: str
    server: str
    voices: tuple[str, ...]
    default_voice: str
    model_rate: int  # Hz
    formats: tuple[Mapping[str, Any], ...]  # codecs.registry.formats
    open_format: Callable[[str, int], Format]  # codecs.registry.open_format
    new_utterance: Callable[[], int]  # process-wide unique numbers
    limits: Limits = field(default_factory=Limits)
    node: str | None = None  # this process's name behind a balancer
    #: The next utterance is made while the one before still plays: for protocols whose listener
    #: hears one stream.
    continuous: bool = False
    #: Somebody reports for clients that say that they never will.
    observed: bool = False
    languages: tuple[str, ...] = ("auto",)  # the first is the default
    takes_instruct: bool = False
    random_weights: bool = False  # what is spoken is noise
    report_interval: Callable[[], float] = lambda: LEAST  # seconds

    def token(self, secret: str) -> str:
        """What a client keeps: the secret, behind the name of the process that knows it."""
        return secret if self.node is None else f"{self.node}.{secret}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How far an utterance was heard, in wire samples and in text."""

    epoch: int
    heard: int
    heard_text: str
    unheard_text: str


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What an ended session still tells to the owner of its token, until ``expires``."""

    session: str
    token_digest: bytes
    outcome: Outcome | None
    expires: float


def digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def token_fits(token: str, token_digest: bytes) -> bool:
    """Compares the secret in ``token`` in constant time, so that a guess learns nothing from how
    long it took."""
    return hmac.compare_digest(digest(token.rpartition(".")[2]), token_digest)


def error_event(error: ProtocolError) -> ErrorEvent:
    """What the peer is told of its fault."""
    wait = error.retry_after
    return ErrorEvent(
        code=error.code,
        message=error.message,
        expected=error.expected,
        retry_after=None if wait is None else wait * 1_000,
        field=error.field,
    )
