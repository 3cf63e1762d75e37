"""One test per row of the state table: what the client's message does in that state."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from playhead.codecs.base import Encoded
from playhead.engine.types import Finish, Finished, ListenerState
from playhead.gateway import messages as m
from playhead.gateway.access_quota import Account, Allowance, Quota
from playhead.gateway.effects import CancelUtterance, Close, Effect, Hold, PushText, Send, Submit
from playhead.gateway.limits import Limits
from playhead.gateway.protocol import ProtocolError
from playhead.gateway.session_channel import Channel
from playhead.gateway.session_dialogue import Dialogue
from playhead.gateway.session_states import TABLE, Invalid, State
from playhead.gateway.session_types import Outcome
from session_kit import facts, of, sent

REPORT = m.PlaybackReport(
    epoch=0, received=0, consumed=0, heard=0, buffered=0, state=ListenerState.IDLE, time=0.0, seq=0
)


class Kit:
    def __init__(self, limits: Limits | None = None, allowance: Allowance | None = None) -> None:
        self.counters: Counter[str] = Counter()
        self.channel = Channel(Limits())
        self.dialogue = Dialogue(
            facts(limits),
            self.channel,
            self.counters,
            "carol",
            allowance or Allowance(),
        )

    def say(self, *messages: m.ClientMessage, now: float = 0.0) -> list[Effect]:
        effects: list[Effect] = []
        for message in messages:
            effects += self.dialogue.act(message, now)
        return effects

    def fail(self, number: int) -> None:
        event = Finished(number, Finish.FAILED, 0, "engine_error")
        self.dialogue.settled(self.dialogue.speech.engine_event(event, 0.0))

    def complete(self, number: int) -> None:
        self.dialogue.speech.audio(number, Encoded(b"", 0), None, final=True, now=0.0)
        event = Finished(number, Finish.COMPLETE, 0)
        self.dialogue.settled(self.dialogue.speech.engine_event(event, 0.0))


def new() -> Kit:
    return Kit()


def ready() -> Kit:
    kit = Kit()
    kit.say(m.Hello())
    return kit


def composing() -> Kit:
    kit = ready()
    kit.say(m.Text("Hi"))
    return kit


def discarding() -> Kit:
    kit = composing()
    kit.fail(101)
    return kit


def draining() -> Kit:
    kit = ready()
    kit.dialogue.drain(0.0)
    return kit


def ended() -> Kit:
    kit = ready()
    kit.say(m.CloseSession())
    return kit


MAKE: dict[State, Callable[[], Kit]] = {
    State.NEW: new,
    State.READY: ready,
    State.COMPOSING: composing,
    State.DISCARDING: discarding,
    State.DRAINING: draining,
    State.ENDED: ended,
}


def refused(kit: Kit, message: m.ClientMessage) -> ProtocolError:
    before = kit.dialogue.state
    with pytest.raises(ProtocolError) as caught:
        kit.say(message)
    assert kit.dialogue.state is before
    return caught.value


def examples(message: type[m.ClientMessage]) -> Any:
    given: dict[type[m.ClientMessage], m.ClientMessage] = {
        m.Text: m.Text("x"),
        m.Ack: m.Ack(0),
        m.Ping: m.Ping(3.0),
        m.PlaybackReport: REPORT,
    }
    return given.get(message) or message()  # type: ignore[call-arg]


@pytest.mark.parametrize("state", State)
def test_every_state_can_be_reached(state: State) -> None:
    assert MAKE[state]().dialogue.state is state


INVALID = [
    (state, message)
    for state, rows in TABLE.items()
    for message, row in rows.items()
    if isinstance(row, Invalid)
]


@pytest.mark.parametrize(("state", "message"), INVALID)
def test_invalid_rows(state: State, message: type[m.ClientMessage]) -> None:
    fault = refused(MAKE[state](), examples(message))
    assert fault.code == "invalid_state"
    assert fault.message.startswith(message.type)
    assert fault.expected


@pytest.mark.parametrize("message", TABLE[State.ENDED])
def test_ended_ignores_everything(message: type[m.ClientMessage]) -> None:
    kit = ended()
    assert kit.say(examples(message)) == []
    assert kit.counters["ignored"] == 1


# ---------------------------------------------------------------- new


def test_new_hello() -> None:
    kit = new()
    assert not kit.dialogue.greeted
    assert kit.say(m.Hello(codec="pcm_f32le", sample_rate=48_000)) == []
    assert kit.dialogue.greeted
    assert kit.dialogue.speech.format.codec == "pcm_f32le"


@pytest.mark.parametrize(
    ("hello", "code", "field", "right"),
    [
        (m.Hello(codec="morse"), "unsupported_codec", "codec", "use one of pcm_s16le"),
        (m.Hello(sample_rate=44_100), "unsupported_rate", "sample_rate", "use one of 24000"),
        (m.Hello(voice="eve"), "unknown_voice", "voice", "one of ada, bob"),
    ],
)
def test_new_hello_that_cannot_be_met(hello: m.Hello, code: str, field: str, right: str) -> None:
    kit = new()
    fault = refused(kit, hello)
    assert (fault.code, fault.field, fault.expected) == (code, field, right)
    assert kit.say(m.Hello()) == []  # another try


def test_new_hello_during_a_drain() -> None:
    kit = new()
    assert kit.dialogue.drain(0.0) == []
    assert kit.say(m.Hello()) == [Close(1001, "the server is going down")]
    assert kit.dialogue.state is State.ENDED


def test_new_hello_that_resumes_is_the_adapter_s_business() -> None:
    with pytest.raises(AssertionError, match="adapter"):
        new().say(m.Hello(resume=m.ResumeFrom("s", "t", 0)))


def test_new_close() -> None:
    kit = new()
    assert kit.say(m.CloseSession()) == [Close(1000, "closed by the client")]
    assert kit.dialogue.state is State.ENDED
    assert kit.dialogue.outcome(0.0) is None


def test_no_speech_before_hello() -> None:
    with pytest.raises(AssertionError, match="before hello"):
        _ = new().dialogue.speech


# ---------------------------------------------------------------- ready


def test_ready_start() -> None:
    kit = ready()
    (started,) = sent(kit.say(m.Start(id="a")))
    assert started == m.Started(seq=1, epoch=1, id="a")
    assert kit.dialogue.state is State.COMPOSING


def test_ready_start_that_is_refused_takes_its_text_with_it() -> None:
    kit = ready()
    with pytest.raises(ProtocolError, match="unknown voice"):
        kit.say(m.Start(voice="eve"))
    assert kit.say(m.Text("Hello"), m.End()) == []
    assert kit.dialogue.state is State.READY
    assert sent(kit.say(m.Text("Hi"))) == [m.Started(seq=1, epoch=1)]


def test_ready_text() -> None:
    kit = ready()
    effects = kit.say(m.Text("Hi"))
    assert sent(effects) == [m.Started(seq=1, epoch=1)]
    assert effects[-1] == PushText(101, "Hi")
    assert kit.dialogue.state is State.COMPOSING


def test_ready_empty_text() -> None:
    kit = ready()
    assert kit.say(m.Text("")) == []
    assert kit.dialogue.state is State.READY


def test_ready_text_that_is_too_long_opens_nothing() -> None:
    kit = Kit(Limits(text_waiting=3))
    kit.say(m.Hello())
    assert refused(kit, m.Text("four")).code == "text_too_long"
    assert kit.dialogue.speech.epoch == 0


def test_ready_opening_too_often() -> None:
    kit = Kit(Limits(open_rate=4.0, open_burst=2.0))
    kit.say(m.Hello(), m.Text("a"), m.End(), m.Text("b"), m.End())
    fault = refused(kit, m.Text("c"))
    assert (fault.code, fault.retry_after) == ("rate_limited", 0.25)
    assert fault.expected == "at most 4 a second"
    kit.say(m.Text("c"), now=0.25)


def test_a_stream_too_many_for_the_key() -> None:
    account = Account("key", Quota(9, 1, 600))
    account.streams = 1
    kit = Kit(allowance=Allowance((account,)))
    kit.say(m.Hello())
    fault = refused(kit, m.Text("hello"))
    assert (fault.code, fault.retry_after) == ("overloaded", 1.0)
    assert fault.message == "this key has used up its streams"
    assert fault.expected == "at most 1 streams; send it again after retry_after"
    account.streams = 0
    kit.say(m.Text("hello"))
    account.streams = 1  # by whoever speaks: this one queues behind itself
    kit.say(m.End(), m.Text("again"))


def test_more_text_than_the_key_may_send() -> None:
    account = Account("key", Quota(9, 9, 60))
    kit = Kit(allowance=Allowance((account,)))
    kit.say(m.Hello(), m.Text("x" * 50), m.Text("y" * 11))
    fault = refused(kit, m.Text("z"))
    assert (fault.code, fault.retry_after) == ("rate_limited", 1.0)
    assert fault.message == "this key has used up its characters per minute"
    assert kit.say(m.Text("")) == [PushText(101, "")]
    kit.say(m.Text("z"), now=1.0)
    kit.say(m.End(), now=1.0)
    assert refused(kit, m.Text("a new utterance")).code == "rate_limited"
    assert not kit.dialogue.speech.composing  # nothing was opened


# ---------------------------------------------------------------- composing


def test_composing_text() -> None:
    assert composing().say(m.Text(" there")) == [PushText(101, " there")]


def test_composing_text_that_is_too_long() -> None:
    kit = Kit(Limits(text_utterance=5))
    kit.say(m.Hello(), m.Text("four"))
    assert refused(kit, m.Text("ty")).code == "text_too_long"
    kit.say(m.Text("y"))


def test_composing_flush() -> None:
    kit = composing()
    assert kit.say(m.Flush()) == [PushText(101, "", flush=True)]
    assert kit.dialogue.state is State.COMPOSING


def test_composing_end() -> None:
    kit = composing()
    assert kit.say(m.End()) == [PushText(101, "", end=True)]
    assert kit.dialogue.state is State.READY


def test_composing_end_during_a_drain() -> None:
    kit = composing()
    assert kit.dialogue.drain(0.0) == []
    assert kit.dialogue.state is State.COMPOSING
    kit.say(m.End())
    assert kit.dialogue.state is State.DRAINING


def test_composing_cancel() -> None:
    kit = composing()
    assert of(CancelUtterance, kit.say(m.Cancel())) == [CancelUtterance(101)]
    assert kit.dialogue.state is State.READY


def test_composing_cancel_of_the_future() -> None:
    assert refused(composing(), m.Cancel(epoch=9)).code == "bad_value"


@pytest.mark.parametrize("end", [Kit.fail, Kit.complete])
def test_composing_ends_by_itself(end: Callable[[Kit, int], None]) -> None:
    kit = composing()
    end(kit, 101)
    assert kit.dialogue.state is State.DISCARDING


def test_composing_ends_by_itself_during_a_drain() -> None:
    kit = composing()
    kit.dialogue.drain(0.0)
    kit.fail(101)
    assert kit.dialogue.state is State.DRAINING


# ---------------------------------------------------------------- discarding


@pytest.mark.parametrize("message", [m.Text("rest"), m.Flush()])
def test_discarding_drops_the_rest(message: m.ClientMessage) -> None:
    kit = discarding()
    assert kit.say(message) == []
    assert kit.counters["ignored"] == 1
    assert kit.dialogue.state is State.DISCARDING


def test_discarding_end() -> None:
    kit = discarding()
    assert kit.say(m.End()) == []
    assert kit.dialogue.state is State.READY


def test_discarding_start() -> None:
    kit = discarding()
    assert of(Submit, kit.say(m.Start()))
    assert kit.dialogue.state is State.COMPOSING


def test_discarding_cancel() -> None:
    kit = discarding()
    assert kit.say(m.Cancel(epoch=1)) == []
    assert kit.dialogue.state is State.READY


# ---------------------------------------------------------------- draining


@pytest.mark.parametrize("message", [m.Start(), m.Text("x")])
def test_draining_takes_nothing_new(message: m.ClientMessage) -> None:
    assert refused(draining(), message).code == "draining"


def test_drain_fails_what_waits() -> None:
    kit = composing()
    kit.say(m.End(), m.Text("two"))
    (failed,) = sent(kit.dialogue.drain(0.0))
    assert isinstance(failed, m.Failed)
    assert (failed.epoch, failed.code, failed.unheard_text) == (2, "draining", "two")
    assert kit.dialogue.state is State.DRAINING


def test_draining_cancel() -> None:
    kit = composing()
    kit.say(m.End())
    kit.dialogue.drain(0.0)
    kit.say(m.Cancel())
    assert kit.dialogue.state is State.DRAINING


# ---------------------------------------------------------------- anytime after hello

ANYTIME = [State.READY, State.COMPOSING, State.DISCARDING, State.DRAINING]


@pytest.mark.parametrize("state", ANYTIME)
def test_report(state: State) -> None:
    kit = MAKE[state]()
    floor = kit.channel.outbox.last
    assert kit.say(replace(REPORT, seq=floor)) == []
    assert kit.counters["stale_reports"] == 1
    assert kit.channel.outbox.floor == floor
    kit.say(replace(REPORT, seq=None))
    assert kit.counters["bad_acks"] == 0
    assert kit.dialogue.state is state


@pytest.mark.parametrize("state", ANYTIME)
def test_ack(state: State) -> None:
    kit = MAKE[state]()
    last = kit.channel.outbox.last
    assert kit.say(m.Ack(last), m.Ack(last + 1)) == []
    assert kit.channel.outbox.floor == last
    assert kit.counters["bad_acks"] == 1


@pytest.mark.parametrize("state", ANYTIME)
def test_ping(state: State) -> None:
    assert MAKE[state]().say(m.Ping(7.5), now=2.0) == [
        Send(m.Pong(time=7.5, received=2_000.0, sent=2_000.0))
    ]


@pytest.mark.parametrize("state", ANYTIME)
def test_pause_and_resume(state: State) -> None:
    kit = MAKE[state]()
    alive = state is State.COMPOSING
    assert kit.say(m.Pause()) == [Hold(101, ListenerState.PAUSED)] * alive
    assert kit.say(m.ResumePlayback()) == [Hold(101, None)] * alive
    assert kit.dialogue.state is state


@pytest.mark.parametrize("state", ANYTIME)
def test_close(state: State) -> None:
    kit = MAKE[state]()
    effects = kit.say(m.CloseSession())
    assert effects[-1] == Close(1000, "closed by the client")
    assert len(of(CancelUtterance, effects)) == (state is State.COMPOSING)
    assert kit.dialogue.state is State.ENDED


@pytest.mark.parametrize("state", [State.READY, State.DRAINING])
def test_cancel_with_nothing_alive(state: State) -> None:
    kit = MAKE[state]()
    assert kit.say(m.Cancel()) == []
    assert kit.dialogue.state is state


# ---------------------------------------------------------------- the end


def test_the_outcome_of_the_current_outlives_the_end() -> None:
    kit = composing()
    kit.say(m.End(), m.Text("two"))
    assert kit.dialogue.outcome(0.0) == Outcome(1, 0, "", "Hi")
    kit.dialogue.end(0.0)
    assert kit.dialogue.outcome(9.0) == Outcome(1, 0, "", "Hi")
