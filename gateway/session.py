"""One client's session, without I/O: messages and engine events in, effects out.

Calling contract (the adapter, on its event loop):

* the first message of a connection decides: without ``hello.resume`` make a ``Session`` and
  ``receive`` it; with it look the session up and, if ``can_resume``, tell the old connection what
  ``takeover`` gives when there still is one, then ``resume``. No such session: ``refuse_resume``;
* pass every decoded message to ``receive`` and every ``ProtocolError`` to ``refuse``, but nothing
  more from a connection that was told to close or was taken over;
* pipe each utterance's ``AudioChunk``s through its encoder, in order, and hand the result to
  ``audio``; at ``Finished(COMPLETE | LENGTH_BUDGET)`` flush the encoder, call ``audio`` with
  ``final=True``, then ``engine_event``. Other engine events go to ``engine_event`` directly;
* after each call perform the effects in order and re-arm one timer at ``get_timer()``;
* when the socket is gone call ``detach``; once ``ended``, keep ``tombstone()``.
"""

from collections import Counter

from playhead.codecs.base import Encoded
from playhead.engine.types import AudioChunk, Finished, Source, TextWarning
from playhead.gateway.access_quota import Allowance
from playhead.gateway.effects import Close, Effect, Send
from playhead.gateway.messages import (
    ClientMessage,
    Draining,
    Hello,
    PlaybackReport,
    Ready,
    ResumeFrom,
)
from playhead.gateway.protocol_parse import ProtocolError
from playhead.gateway.session_budget import Budget, Verdict
from playhead.gateway.session_channel import Channel
from playhead.gateway.session_dialogue import DRAINING, Dialogue
from playhead.gateway.session_queue import Fault
from playhead.gateway.session_ready import ready
from playhead.gateway.session_resume import REPLAY_LOST, refusal, refuse_resume
from playhead.gateway.session_states import State
from playhead.gateway.session_types import ServerFacts, Tombstone, digest, error_event, token_fits

__all__ = ["ServerFacts", "Session", "Tombstone", "refuse_resume"]


class Session:
    """``client`` is the key of fairness (API key or address) given to the engine.

    ``counters`` counts what was ignored, clamped or refused, by name.
    """

    def __init__(
        self,
        facts: ServerFacts,
        *,
        session: str,
        token: str,
        client: str,
        now: float,
        allowance: Allowance | None = None,
    ) -> None:
        self.id = session
        self.allowance = allowance or Allowance()
        self.counters: Counter[str] = Counter()
        self._facts = facts
        self._token_digest = digest(token)
        self._token = token  # told to the client by the next ready
        self._token_before = b""  # digest; good until the client shows that the ready arrived
        self._draining = False
        self._received = 0  # frames after hello, over all connections
        self._deadline = now + facts.limits.hello_within  # for hello, later for coming back
        # The latest report beyond the budget, when it was read, and when it may be taken.
        self._late_report: tuple[PlaybackReport, float, float] | None = None
        self._ended_at = now
        self._channel = Channel(facts.limits)
        self._budget = Budget(facts.limits)
        self._dialogue = Dialogue(
            facts,
            self._channel,
            self.counters,
            client,
            self.allowance,
        )

    @property
    def ended(self) -> bool:
        """Nothing more will come of this session."""
        return self._dialogue.state is State.ENDED

    @property
    def idle(self) -> bool:
        """No utterance is alive, so that a drain may close the session."""
        return not self._dialogue.greeted or self._dialogue.speech.idle

    # ------------------------------------------------------------ from the client

    def receive(self, message: ClientMessage, now: float) -> list[Effect]:
        """A message that was read from the attached connection at ``now``."""
        if not self._hears():
            return []
        if not isinstance(message, PlaybackReport) or message.source is Source.PLAYER:
            # What is inferred in the client's place is no message of its own.
            self._received += not isinstance(message, Hello)
            self._token_before = b""
        verdict = self._budget.admit(message, now)
        if verdict is Verdict.COALESCE and isinstance(message, PlaybackReport):
            self.counters["coalesced_reports"] += 1
            self._late_report = (message, now, now + self._budget.control.wait())
            return []
        if verdict is not Verdict.PASS:
            return self._over_budget(verdict, message, now)
        if isinstance(message, PlaybackReport):
            self._late_report = None  # counters are cumulative: the newer one says it all
        return self._take_late_report() + self._try(message, now)

    def refuse(self, error: ProtocolError, now: float) -> list[Effect]:
        """A frame of the attached connection that was no message."""
        if not self._hears():
            return []
        self._received += 1
        verdict = self._budget.admit(None, now)
        if verdict is not Verdict.PASS:
            return self._over_budget(verdict, None, now)
        return self._error(error, now)

    def _hears(self) -> bool:
        if self.ended or not self._channel.attached:
            self.counters["late_messages"] += 1
            return False
        return True

    def _try(self, message: ClientMessage, now: float) -> list[Effect]:
        known = self._dialogue.greeted
        try:
            effects = self._dialogue.act(message, now)
        except ProtocolError as error:
            return self._error(error, now)
        if self.ended:
            self._bury(now)
        elif not known and self._dialogue.greeted:
            effects = [Send(self._ready(now, resumed=False)), *effects]
        return effects

    def _take_late_report(self) -> list[Effect]:
        late, self._late_report = self._late_report, None
        return [] if late is None else self._try(late[0], late[1])

    def _over_budget(
        self, verdict: Verdict, message: ClientMessage | None, now: float
    ) -> list[Effect]:
        self.counters["rate_limited"] += 1
        if verdict is Verdict.CLOSE:
            return [*self._end(now), Close(1008, "rate limits were broken repeatedly")]
        return self._error(self._budget.excess(message), now)

    def _error(self, error: ProtocolError, now: float) -> list[Effect]:
        self.counters[f"error.{error.code}"] += 1
        if not self._budget.errors.take(now):
            self.counters["errors_untold"] += 1
            return []
        return [Send(error_event(error))]

    # ------------------------------------------------------------ from the engine

    def audio(
        self, utterance: int, encoded: Encoded, chunk: AudioChunk | None, final: bool, now: float
    ) -> list[Effect]:
        """What the wire encoder made of ``chunk`` (``None``: of its own rest, at ``final``)."""
        if self.ended:
            self.counters["late_audio"] += 1
            return []
        return self._dialogue.speech.audio(utterance, encoded, chunk, final=final, now=now)

    def engine_event(self, event: TextWarning | Finished, now: float) -> list[Effect]:
        if self.ended:
            self.counters["late_events"] += 1
            return []
        return self._dialogue.settled(self._dialogue.speech.engine_event(event, now))

    # ------------------------------------------------------------ connections

    def detach(self, now: float) -> list[Effect]:
        """The attached connection is gone. Idempotent."""
        if self.ended or not self._channel.attached:
            return []
        self._leave(now)
        if not self._dialogue.greeted or self._draining:
            return self._end(now)
        return self._dialogue.speech.update_hold(now)

    def can_resume(self, request: ResumeFrom) -> bool:
        return self.owned_by(request) and self._channel.outbox.covers(request.seq)

    def takeover(self, now: float) -> list[Effect]:
        """For the old connection that is still there, when ``can_resume``; ``resume`` follows."""
        self._leave(now)
        return [Close(4000, "taken over by a newer connection")]

    def resume(self, request: ResumeFrom, token: str, now: float) -> list[Effect]:
        """Attach the new connection and replay what it lacks; ``token`` is the next one to show.

        When it cannot be done the effects refuse it, and nothing else has changed.
        """
        if not self.can_resume(request):
            outcome = self._dialogue.outcome(now) if self.owned_by(request) else None
            return refusal(outcome, REPLAY_LOST)
        self._token_before = digest(request.token)  # all that it knows: readies can be lost
        self._token, self._token_digest = token, digest(token)
        self._channel.attached = True
        self.allowance.back()
        self._channel.outbox.acknowledge(request.seq)
        missed = map(Send, self._channel.outbox.after(request.seq))
        ready = Send(self._ready(now, resumed=True))
        return [ready, *missed, *self._dialogue.speech.update_hold(now)]

    def _leave(self, now: float) -> None:
        self._channel.attached = False
        self.allowance.cut_off(now)
        self._late_report = None
        self._deadline = now + self._facts.limits.grace

    def owned_by(self, request: ResumeFrom) -> bool:
        if self.ended or not self._dialogue.greeted or request.session != self.id:
            return False
        return any(token_fits(request.token, d) for d in (self._token_digest, self._token_before))

    def _ready(self, now: float, *, resumed: bool) -> Ready:
        return ready(
            self._facts,
            self._dialogue.speech,
            session=self.id,
            token=self._facts.token(self._token),
            resumed=resumed,
            received=self._received,
            now=now,
        )

    # ------------------------------------------------------------ time

    def get_timer(self) -> float | None:
        """When to call ``handle_timer`` (monotonic seconds), as things are now."""
        if self.ended:
            return None
        if not self._dialogue.greeted or not self._channel.attached:
            return self._deadline
        times = (self._dialogue.speech.get_timer(), self._late_report and self._late_report[2])
        return min((time for time in times if time is not None), default=None)

    def handle_timer(self, now: float) -> list[Effect]:
        if (due := self.get_timer()) is None or now < due:
            return []
        if not self._dialogue.greeted:
            return [*self._end(now), Close(1008, "no hello in time")]
        if not self._channel.attached:
            return self._end(now)
        effects: list[Effect] = []
        if self._late_report is not None and now >= self._late_report[2]:
            self._budget.control.take(now)
            effects = self._take_late_report()
        return effects + self._dialogue.settled(self._dialogue.speech.handle_timer(now))

    # ------------------------------------------------------------ going down

    def drain(self, deadline: float, now: float) -> list[Effect]:
        """Take nothing new; ``stop`` will come at ``deadline`` (monotonic seconds)."""
        if self.ended or self._draining:
            return []
        self._draining = True
        if not self._channel.attached:
            return self._end(now)
        if not self._dialogue.greeted:
            return self._dialogue.drain(now)
        told = Draining(seq=self._channel.next_seq, deadline=max(0.0, deadline - now) * 1_000)
        return self._channel.post(told) + self._dialogue.drain(now)

    def stop(self, code: int, reason: str, now: float, fault: Fault = DRAINING) -> list[Effect]:
        """End at once: live utterances fail with ``fault``, then ``Close(code, reason)``."""
        if self.ended:
            return []
        greeted = self._dialogue.greeted
        effects = self._dialogue.speech.fail_all(fault, now) if greeted else []
        return [*effects, *self._end(now), Close(code, reason)]

    def displace(self, now: float) -> list[Effect]:
        """Its client is cut off, and others of its account need the stream."""
        return self._dialogue.displace(now)

    def tombstone(self) -> Tombstone:
        """Needs ``ended``."""
        assert self.ended, "a living session has no tombstone"
        expires = self._ended_at + self._facts.limits.tombstone
        return Tombstone(self.id, self._token_digest, self._dialogue.outcome(expires), expires)

    def _end(self, now: float) -> list[Effect]:
        effects = self._dialogue.end(now)
        self._bury(now)
        return effects

    def _bury(self, now: float) -> None:
        self._ended_at = now
        self._late_report = None
        self._channel.outbox.clear()
