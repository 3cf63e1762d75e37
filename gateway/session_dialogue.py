"""What a session does with each message: the state table's acts, on the session's speech."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from playhead.codecs.registry import UnsupportedCodec, UnsupportedRate
from playhead.gateway.access_quota import Allowance, Excess
from playhead.gateway.effects import Close, Effect, Send
from playhead.gateway.messages import (
    Ack,
    Cancel,
    ClientMessage,
    Hello,
    Ping,
    PlaybackReport,
    Pong,
    Start,
    Text,
)
from playhead.gateway.protocol_parse import ProtocolError
from playhead.gateway.session_budget import TokenBucket
from playhead.gateway.session_channel import Channel
from playhead.gateway.session_queue import Fault
from playhead.gateway.session_speech import Speech
from playhead.gateway.session_states import TABLE, Act, Invalid, State
from playhead.gateway.session_types import Outcome, ServerFacts

DRAINING = Fault("draining", "the server is going down")
DISPLACED = Fault(
    "overloaded", "the client was cut off and others of its account needed the stream", 1.0
)


class Dialogue:
    """``state`` is written here alone. A good hello has no effects here: its answer, ``ready``,
    tells of the whole session."""

    def __init__(
        self,
        facts: ServerFacts,
        channel: Channel,
        counters: Counter[str],
        client: str,
        allowance: Allowance,
    ) -> None:
        self._facts = facts
        self._channel = channel
        self._counters = counters
        self._client = client
        self._allowance = allowance
        self._opened = TokenBucket(facts.limits.open_rate, facts.limits.open_burst)
        self._draining = False
        self._speech: Speech | None = None
        self._last: Outcome | None = None
        self.state = State.NEW

    @property
    def speech(self) -> Speech:
        """Needs ``greeted``."""
        assert self._speech is not None, "the state table lets nothing through before hello"
        return self._speech

    @property
    def greeted(self) -> bool:
        return self._speech is not None

    def act(self, message: ClientMessage, now: float) -> list[Effect]:
        """Raises ``ProtocolError``; then nothing of the message was acted upon."""
        row = TABLE[self.state][type(message)]
        if isinstance(row, Invalid):
            raise ProtocolError("invalid_state", f"{message.type}: {row.why}", row.expected)
        return self.settled(_ACTS[row](self, message, now))

    def settled(self, effects: list[Effect]) -> list[Effect]:
        """After whatever may have ended the utterance that takes text."""
        if self.state is State.COMPOSING and not self.speech.composing:
            self.state = State.DRAINING if self._draining else State.DISCARDING
        return effects

    def drain(self, now: float) -> list[Effect]:
        """Nothing new from now on; what waits behind the current utterance fails."""
        self._draining = True
        if self._speech is None:
            return []
        effects = self._speech.fail_all(DRAINING, now, but_current=True)
        if self.state is not State.COMPOSING:
            self.state = State.DRAINING
        return self.settled(effects)

    def displace(self, now: float) -> list[Effect]:
        """Everything that is alive fails, so that another session may speak."""
        effects = [] if self._speech is None else self._speech.fail_all(DISPLACED, now)
        return self.settled(effects)

    def end(self, now: float) -> list[Effect]:
        """For good: what is still alive is cancelled. ``outcome`` keeps how far it was heard."""
        self._last = self.outcome(now)
        self.state = State.ENDED
        return [] if self._speech is None else self._speech.cancel(Cancel(), now)

    def outcome(self, now: float) -> Outcome | None:
        if self.state is State.ENDED or self._speech is None:
            return self._last
        return self._speech.outcome(now)

    def _greet(self, hello: Hello, now: float) -> list[Effect]:
        assert hello.resume is None, "the adapter looks up the session of a resuming hello"
        if self._draining:
            return [*self.end(now), Close(1001, DRAINING.message)]
        try:
            fmt = self._facts.open_format(hello.codec, hello.sample_rate)
        except UnsupportedCodec as fault:
            raise ProtocolError("unsupported_codec", *_halves(fault), "codec") from None
        except UnsupportedRate as fault:
            raise ProtocolError("unsupported_rate", *_halves(fault), "sample_rate") from None
        self._speech = Speech(self._facts, self._channel, self._counters, hello, fmt, self._client)
        self.state = State.READY
        return []

    def _open(self, start: Start, now: float) -> list[Effect]:
        if not self._opened.take(now):
            rate = self._facts.limits.open_rate
            raise ProtocolError(
                "rate_limited",
                "too many utterances in a short time",
                f"at most {rate:g} a second",
                retry_after=self._opened.wait(),
            )
        if self.speech.idle and (excess := self._allowance.stream(now)) is not None:
            raise _over(excess)
        effects = self.speech.open(start, now)
        self.state = State.COMPOSING
        return effects

    def _open_by_start(self, start: Start, now: float) -> list[Effect]:
        try:
            return self._open(start, now)
        except ProtocolError:
            # The text that follows belongs to this utterance, not to one with other settings.
            self.state = State.DISCARDING
            raise

    def _open_with_text(self, message: Text, now: float) -> list[Effect]:
        if not message.text:
            return []  # an empty token of an LLM is no utterance
        self._check_text(message.text, now)
        return self._open(Start(), now) + self._take_text(message.text)

    def _add_text(self, message: Text, now: float) -> list[Effect]:
        self._check_text(message.text, now)
        return self._take_text(message.text)

    def _check_text(self, text: str, now: float) -> None:
        self.speech.check_text(text)
        if text and (excess := self._allowance.text(now)) is not None:
            raise _over(excess)

    def _take_text(self, text: str) -> list[Effect]:
        self._allowance.spend(len(text))
        return self.speech.add_text(text)

    def _flush(self, message: ClientMessage, now: float) -> list[Effect]:
        return self.speech.flush()

    def _pause(self, message: ClientMessage, now: float) -> list[Effect]:
        return self.speech.pause(True, now)

    def _release(self, message: ClientMessage, now: float) -> list[Effect]:
        return self.speech.pause(False, now)

    def _end_text(self, message: ClientMessage, now: float) -> list[Effect]:
        self._rest()
        return self.speech.end()

    def _stop_discarding(self, message: ClientMessage, now: float) -> list[Effect]:
        self._rest()
        return []

    def _rest(self) -> None:
        self.state = State.DRAINING if self._draining else State.READY

    def _report(self, report: PlaybackReport, now: float) -> list[Effect]:
        if report.seq is not None:
            self._acknowledge(Ack(report.seq), now)
        return self.speech.report(report, now)

    def _cancel(self, message: Cancel, now: float) -> list[Effect]:
        effects = self.speech.cancel(message, now)
        self._rest()  # the one that takes text is the last in the queue: it is never spared
        return effects

    def _acknowledge(self, message: Ack, now: float) -> list[Effect]:
        self._counters["bad_acks"] += not self._channel.outbox.acknowledge(message.seq)
        return []

    def _pong(self, message: Ping, now: float) -> list[Effect]:
        return [Send(Pong(time=message.time, received=now * 1_000, sent=now * 1_000))]

    def _close(self, message: ClientMessage, now: float) -> list[Effect]:
        return [*self.end(now), Close(1000, "closed by the client")]

    def _ignore(self, message: ClientMessage, now: float) -> list[Effect]:
        self._counters["ignored"] += 1
        return []

    def _refuse_draining(self, message: ClientMessage, now: float) -> list[Effect]:
        raise ProtocolError("draining", DRAINING.message, "a new session, on another server")


# Not bound to a dialogue: a table of its own methods would be a cycle in each session, which only
# the garbage collector ends.
_ACTS: dict[Act, Callable[[Dialogue, Any, float], list[Effect]]] = {
    Act.GREET: Dialogue._greet,
    Act.OPEN: Dialogue._open_by_start,
    Act.OPEN_WITH_TEXT: Dialogue._open_with_text,
    Act.ADD_TEXT: Dialogue._add_text,
    Act.FLUSH: Dialogue._flush,
    Act.END: Dialogue._end_text,
    Act.STOP_DISCARDING: Dialogue._stop_discarding,
    Act.REPORT: Dialogue._report,
    Act.CANCEL: Dialogue._cancel,
    Act.PAUSE: Dialogue._pause,
    Act.RELEASE: Dialogue._release,
    Act.ACKNOWLEDGE: Dialogue._acknowledge,
    Act.PONG: Dialogue._pong,
    Act.CLOSE: Dialogue._close,
    Act.IGNORE: Dialogue._ignore,
    Act.REFUSE_DRAINING: Dialogue._refuse_draining,
}


def _over(excess: Excess) -> ProtocolError:
    what = excess.limit.replace("_", " ")
    return ProtocolError(
        "rate_limited" if excess.limit == "characters_per_minute" else "overloaded",
        f"this {excess.account} has used up its {what}",
        f"at most {excess.most} {what}; send it again after retry_after",
        retry_after=excess.retry_after,
    )


def _halves(fault: ValueError) -> tuple[str, str]:
    """What was wrong and what would be right, from the codecs' "wrong; right"."""
    wrong, _, right = str(fault).partition("; ")
    return wrong, right
