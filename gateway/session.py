"""One client's session, without I/O: messages and engine events in, effects out.

Calling contract (the adapter, on its event loop):

* the first message of a new connection decides: without ``hello.resume`` make a ``Session`` and
  ``receive`` it; with it look the session up and ``resume`` it (or ``refuse_resume``);
* pass every decoded message to ``receive`` and every ``ProtocolError`` to ``refuse``;
* pipe each utterance's ``AudioChunk``s through its encoder, in order, and hand the result to
  ``audio``; at ``Finished(COMPLETE | LENGTH_BUDGET)`` flush the encoder, call ``audio`` with
  ``final=True``, then ``engine_event``. Other engine events go to ``engine_event`` directly;
* after each call perform the effects in order and re-arm one timer at ``get_timer()``;
* when the socket is gone call ``detach``; when ``ended`` keep ``tombstone()`` for
  ``limits.tombstone`` seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from playhead.codecs.base import Encoded
from playhead.codecs.registry import Format
from playhead.engine.types import AudioChunk, Finished, TextWarning
from playhead.gateway.effects import Effect
from playhead.gateway.limits import Limits
from playhead.gateway.messages import ClientMessage, ResumeFrom
from playhead.gateway.protocol import ProtocolError


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What every session of a process shares. ``formats`` goes into ``ready`` as it is."""

    model: str
    server: str
    voices: tuple[str, ...]
    default_voice: str
    model_rate: int
    formats: tuple[dict[str, object], ...]
    open_format: Callable[[str, int], Format]   # codecs.registry.open_format
    new_utterance: Callable[[], int]            # process-wide unique numbers
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What an ended session still tells: proof of ownership and how far it was heard."""

    session: str
    token_digest: bytes
    epoch: int
    heard: int
    heard_text: str
    unheard_text: str


class Session:
    """``client`` is the key of fairness (API key or address) given to the engine."""

    id: str
    ended: bool         # nothing more will come; take the tombstone
    idle: bool          # no utterance is alive: may be closed by a drain
    counters: dict[str, int]

    def __init__(
        self, facts: ServerFacts, *, session: str, token: str, client: str, now: float
    ) -> None: ...

    def receive(self, message: ClientMessage, now: float) -> list[Effect]: ...

    def refuse(self, error: ProtocolError, now: float) -> list[Effect]: ...

    def audio(
        self, utterance: int, encoded: Encoded, chunk: AudioChunk | None, final: bool, now: float
    ) -> list[Effect]: ...

    def engine_event(self, event: TextWarning | Finished, now: float) -> list[Effect]: ...

    def detach(self, now: float) -> list[Effect]: ...

    def can_resume(self, request: ResumeFrom) -> bool: ...

    def takeover(self, now: float) -> list[Effect]:
        """For the old connection, when a valid resume comes while it is still attached."""

    def resume(self, request: ResumeFrom, token: str, now: float) -> list[Effect]:
        """``token`` is the new one. Not resumable: the effects refuse and close 4001."""

    def get_timer(self) -> float | None: ...

    def handle_timer(self, now: float) -> list[Effect]: ...

    def drain(self, deadline: float, now: float) -> list[Effect]:
        """Take nothing new; ``deadline``: monotonic seconds at which ``stop`` will come."""

    def stop(self, code: int, reason: str, now: float) -> list[Effect]:
        """End at once: live utterances fail with ``draining``, then ``Close(code, reason)``."""

    def tombstone(self) -> Tombstone: ...


def refuse_resume(
    request: ResumeFrom, stone: Tombstone | None, now: float
) -> list[Effect]:
    """For a session that is gone: ``resume_failed`` (with what was heard, if the token is
    right) and close 4001. Unknown session and wrong token look the same."""
