"""The utterances of one session in their order; here each of them ends, exactly once.

The first is with the engine until its listener has played it; the others collect their text. In
a continuous session the next one is with the engine as soon as the last there has been made. An
utterance that has left the queue is dead.
"""

from dataclasses import dataclass

from playhead.engine.types import Finish, ListenerState
from playhead.gateway.effects import CancelUtterance, CloseEncoder, Effect
from playhead.gateway.messages import Cancelled, Done, Failed
from playhead.gateway.session_channel import Channel
from playhead.gateway.session_types import Outcome
from playhead.gateway.session_utterance import Utterance

_ADVICE = {
    "overloaded": "the same text after retry_after",
    "draining": "a new session, on another server",
    "unspeakable_text": "text in a language of the voice",
    "bad_value": "a request that keeps to this",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an utterance fails. ``retry_after`` in seconds."""

    code: str
    message: str
    retry_after: float | None = None


class Queue:
    """``utterances`` grows in ``Speech`` and shrinks here alone."""

    def __init__(self, channel: Channel, *, continuous: bool = False) -> None:
        self._channel = channel
        self._continuous = continuous
        self._last: Outcome | None = None
        self.utterances: list[Utterance] = []
        self.hold: ListenerState | None = None  # of the listener, for whoever is current

    @property
    def current(self) -> Utterance | None:
        return self.utterances[0] if self.utterances else None

    @property
    def newest(self) -> Utterance:
        """Needs one that takes text."""
        return self.utterances[-1]

    def find(self, number: int) -> Utterance | None:
        """The utterance of that engine number, if it is with the engine."""
        return next((u for u in self._submitted() if u.number == number), None)

    def of_epoch(self, epoch: int) -> Utterance | None:
        """The utterance of that epoch, if it is with the engine."""
        return next((u for u in self._submitted() if u.epoch == epoch), None)

    def _submitted(self) -> list[Utterance]:
        return [u for u in self.utterances if u.submitted]

    def outcome(self, now: float) -> Outcome | None:
        """How far the current utterance was heard; with none, the last that ended."""
        if self.current is None:
            return self._last
        return self.current.outcome(self.current.playback.heard(now)[0])

    def advance(self, now: float) -> list[Effect]:
        """Hand the next to the engine, unless one is there that it has to wait for, or nobody
        listens."""
        if not self._channel.attached:
            return []  # a place in the engine is for who listens
        there = self._submitted()
        waiting = self.utterances[len(there) :]
        if not waiting:
            return []
        if not there:
            return waiting[0].submit(self.hold, now)
        if not self._continuous or there[-1].finish is None:
            return []
        return waiting[0].submit(self.hold, now, behind=there[-1].playback)

    def set_hold(self, hold: ListenerState | None, now: float) -> list[Effect]:
        if hold is self.hold:
            return []
        self.hold = hold
        return [effect for u in self._submitted() for effect in u.hold(hold, now)]

    def finish_if_played(self, now: float) -> list[Effect]:
        """End the current utterance when the engine has ended and the listener has played all."""
        current = self.current
        if current is None or current.finish is None or not current.playback.has_ended():
            return []
        return self.done(current, estimated=False, now=now)

    def done(self, current: Utterance, *, estimated: bool, now: float) -> list[Effect]:
        assert current.finish is not None
        samples = current.playback.sent
        self._remove(current, current.outcome(samples))
        message = Done(
            seq=self._channel.next_seq,
            epoch=current.epoch,
            samples=samples,
            heard=samples,
            estimated=estimated,
            reason=current.finish.value,
        )
        return self._channel.post(message) + self.advance(now)

    def cancel(self, utterance: Utterance, heard: int | None, now: float) -> list[Effect]:
        """``heard``: wire samples, as the client says. Does not advance."""
        position, estimated = utterance.playback.heard(now)
        if heard is not None:
            position, estimated = min(heard, utterance.playback.sent), False
        outcome = utterance.outcome(position)
        self._remove(utterance, outcome)
        message = Cancelled(
            seq=self._channel.next_seq,
            epoch=outcome.epoch,
            heard=outcome.heard,
            heard_text=outcome.heard_text,
            unheard_text=outcome.unheard_text,
            estimated=estimated,
        )
        return _release(utterance) + self._channel.post(message)

    def fail(self, utterance: Utterance, fault: Fault, now: float) -> list[Effect]:
        """Does not advance."""
        outcome = utterance.outcome(utterance.playback.heard(now)[0])
        self._remove(utterance, outcome)
        message = Failed(
            seq=self._channel.next_seq,
            epoch=outcome.epoch,
            code=fault.code,
            message=fault.message,
            expected=_ADVICE.get(fault.code, "the same text again"),
            retry_after=None if fault.retry_after is None else fault.retry_after * 1_000,
            heard=outcome.heard,
            heard_text=outcome.heard_text,
            unheard_text=outcome.unheard_text,
        )
        return _release(utterance) + self._channel.post(message)

    def _remove(self, utterance: Utterance, outcome: Outcome) -> None:
        self.utterances.remove(utterance)
        self._last = outcome


def _release(utterance: Utterance) -> list[Effect]:
    """Free what an utterance holds in the engine and its encoder."""
    if not utterance.submitted:
        return []
    effects: list[Effect] = []
    if utterance.finish not in (Finish.FAILED, Finish.CANCELLED):
        # Also after COMPLETE: the engine may still follow the listener.
        effects.append(CancelUtterance(utterance.number))
    if utterance.finish is None:
        effects.append(CloseEncoder(utterance.number))
    return effects
