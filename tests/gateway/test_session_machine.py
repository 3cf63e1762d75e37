"""Random lives of a session against a simple model of what both ends may rely on.

The model: messages are numbered without gaps and come again identically after a cut; every epoch
that was started ends in exactly one terminal message and nothing of it follows; audio of an epoch
is contiguous; the engine has at most one utterance, gets the text in order and loses no word.
"""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from playhead.codecs.base import Encoded
from playhead.engine.types import (
    AudioChunk,
    Finish,
    Finished,
    Lane,
    ListenerState,
    TextWarning,
    Word,
)
from playhead.gateway import messages as m
from playhead.gateway.effects import (
    CancelUtterance,
    Close,
    CloseEncoder,
    Effect,
    ForwardReport,
    Hold,
    OpenEncoder,
    PushText,
    Send,
    Submit,
)
from playhead.gateway.limits import Limits
from playhead.gateway.session import Session, refuse_resume
from session_kit import facts

LIMITS = Limits(
    queued_utterances=3,
    text_waiting=60,
    text_utterance=80,
    grace=8.0,
    control_rate=20.0,
    control_burst=40.0,
    open_burst=50.0,
    open_rate=50.0,
    error_burst=1_000.0,
)
TERMINAL = (m.Done, m.Cancelled, m.Failed)


class Client:
    """What a client has seen; ``seen`` maps seq to the message as it first came."""

    def __init__(self) -> None:
        self.seen: dict[int, m.NumberedMessage] = {}
        self.got = 0  # highest contiguous seq
        self.epoch = 0
        self.position: dict[int, int] = {}  # audio of each epoch, contiguous
        self.final: set[int] = set()
        self.ended: dict[int, m.NumberedMessage] = {}
        self.started: list[int] = []

    def take(self, message: m.NumberedMessage) -> None:
        assert message.seq == self.got + 1, "a gap or a repetition"
        self.got = message.seq
        if message.seq in self.seen:
            assert self.seen[message.seq] == message, "replayed otherwise than sent"
            return
        self.seen[message.seq] = message
        if isinstance(message, m.Started):
            assert message.epoch == self.epoch + 1
            self.epoch = message.epoch
            self.started.append(message.epoch)
        elif isinstance(message, m.Audio):
            self._audio(message)
        elif isinstance(message, TERMINAL):
            assert message.epoch not in self.ended, "two ends"
            assert message.epoch in self.started
            self.ended[message.epoch] = message

    def _audio(self, audio: m.Audio) -> None:
        assert audio.epoch not in self.ended, "audio of a dead epoch"
        assert audio.epoch not in self.final
        assert audio.position == self.position.get(audio.epoch, 0)
        self.position[audio.epoch] = audio.position + audio.samples
        if audio.final:
            self.final.add(audio.epoch)


class Engine:
    """The utterances that were submitted and not cancelled, and what came of them."""

    def __init__(self) -> None:
        self.text: dict[int, str] = {}
        self.held: dict[int, ListenerState | None] = {}
        self.encoders: set[int] = set()
        self.alive: list[int] = []  # may still give events
        self.given: dict[int, int] = {}  # samples
        self.dead: list[int] = []  # cancelled, with late output on its way

    def perform(self, effect: Effect) -> None:
        match effect:
            case OpenEncoder(number):
                self.encoders.add(number)
            case CloseEncoder(number):
                self.encoders.remove(number)
            case Submit(request):
                assert not self.alive, "one utterance at a time"
                assert request.utterance in self.encoders
                self.alive.append(request.utterance)
                self.text[request.utterance] = ""
                self.given[request.utterance] = 0
                self.held[request.utterance] = None
            case PushText(number, delta):
                assert number in self.alive
                self.text[number] += delta
            case Hold(number, state):
                self.held[number] = state
            case CancelUtterance(number) if number in self.alive:
                self.alive.remove(number)
                self.dead.append(number)
            case ForwardReport(report):
                assert report.received <= self.given[report.utterance]


class SessionMachine(RuleBasedStateMachine):
    @initialize(reports=st.booleans())
    def begin(self, reports: bool) -> None:
        self.now = 0.0
        self.session = Session(facts(LIMITS), session="s", token="t0", client="c", now=0.0)
        self.client = Client()
        self.engine = Engine()
        self.attached = True
        self.tokens = 0
        self.epoch_text: dict[int, str] = {}
        self.composing: int | None = None  # the epoch whose text has not ended
        self.unopened = False  # a start was refused: what is its text is dropped
        self.consumed: dict[int, int] = {}
        self.acknowledged = 0
        self.perform(self.session.receive(m.Hello(reports=reports), 0.0))
        self.text(["a b", ", b"], True)
        self.audio(1_920, True)

    # ------------------------------------------------------------ plumbing

    def perform(self, effects: list[Effect]) -> list[m.ServerMessage]:
        out: list[m.ServerMessage] = []
        for effect in effects:
            if isinstance(effect, Send):
                assert self.attached, "nothing is sent without a socket"
                out.append(effect.message)
                if isinstance(effect.message, m.NumberedMessage):
                    self.client.take(effect.message)
            elif not isinstance(effect, Close):
                self.engine.perform(effect)
        return out

    def say(self, message: m.ClientMessage) -> list[m.ServerMessage]:
        assert self.attached
        return self.perform(self.session.receive(message, self.now))

    @property
    def discarding(self) -> bool:
        """Whether the utterance that takes text has ended by itself, so that text is dropped."""
        return self.unopened or self.composing in (self.client.ended.keys() | self.client.final)

    @property
    def live(self) -> bool:
        return not self.session.ended

    # ------------------------------------------------------------ the client

    @precondition(lambda self: self.live and self.attached)
    @rule(texts=st.lists(st.text("ab ,", max_size=20), max_size=3), end=st.booleans())
    def text(self, texts: list[str], end: bool) -> None:
        for text in texts:
            self.one_text(text)
        if end:
            self.say(m.End())
            self.composing, self.unopened = None, False

    def one_text(self, text: str) -> None:
        messages = self.say(m.Text(text))
        refused = [message for message in messages if isinstance(message, m.ErrorEvent)]
        if not refused and text and not self.discarding:
            self.composing = self.client.epoch
            self.epoch_text[self.composing] = self.epoch_text.get(self.composing, "") + text

    @precondition(lambda self: self.live and self.attached)
    @rule(message=st.sampled_from([m.Start(), m.Flush(), m.Pause(), m.ResumePlayback()]))
    def simple(self, message: m.ClientMessage) -> None:
        answers = self.say(message)
        if not isinstance(message, m.Start):
            return
        if any(isinstance(answer, m.Started) for answer in answers):
            self.composing, self.unopened = self.client.epoch, False
            self.epoch_text[self.composing] = ""
        elif any(isinstance(a, m.ErrorEvent) and a.code == "overloaded" for a in answers):
            self.unopened = True

    @precondition(lambda self: self.live and self.attached)
    @rule(back=st.integers(0, 3), heard=st.none() | st.integers(0, 50_000), named=st.booleans())
    def cancel(self, back: int, heard: int | None, named: bool) -> None:
        epoch = max(0, self.client.epoch - back) if named else None
        before = set(self.client.started) - set(self.client.ended)
        self.say(m.Cancel(epoch=epoch, heard=heard))
        doomed = {e for e in before if epoch is None or e >= epoch}
        ends = {e for e in doomed if isinstance(self.client.ended.get(e), m.Cancelled)}
        assert ends == doomed
        self.composing, self.unopened = None, False

    @precondition(lambda self: self.live and self.attached and self.client.position)
    @rule(
        play=st.sampled_from([0, 700, 10**6]),
        state=st.sampled_from(ListenerState),
        ack=st.booleans(),
    )
    def report(self, play: int, state: ListenerState, ack: bool) -> None:
        epoch = max(self.client.position)
        received = self.client.position[epoch]
        consumed = min(received, self.consumed.get(epoch, 0) + play)
        self.consumed[epoch] = consumed
        self.acknowledged = self.client.got if ack else self.acknowledged
        self.say(
            m.PlaybackReport(
                epoch=epoch,
                received=received,
                consumed=consumed,
                heard=consumed,
                buffered=received - consumed,
                state=state,
                time=self.now * 1_000,
                seq=self.client.got if ack else None,
                echo=max(0.0, self.now - 0.05) * 1_000,
                hold=0.0,
            )
        )

    @precondition(lambda self: self.live and self.attached)
    @rule(
        ahead=st.sampled_from([-480, 480, 50_000]),
        played=st.floats(0, 1),
        epoch=st.none() | st.integers(0, 5),
    )
    def lie(self, ahead: int, played: float, epoch: int | None) -> None:
        """About this utterance (mostly), and about what has arrived at all."""
        if epoch is None:
            epoch = max(self.client.position, default=0)
        claim = max(0, self.client.position.get(epoch, 0) + ahead)
        consumed = int(claim * played)
        if claim <= self.client.got:
            self.acknowledged = max(self.acknowledged, claim)
        self.say(
            m.PlaybackReport(
                epoch=epoch,
                received=claim,
                consumed=consumed,
                heard=consumed,
                buffered=claim - consumed,
                state=ListenerState.PLAYING,
                time=self.now * 1_000,
                seq=claim,
            )
        )

    # ------------------------------------------------------------ sockets

    @precondition(lambda self: self.live and self.attached)
    @rule(lost=st.integers(0, 5))
    def cut(self, lost: int) -> None:
        """The socket dies with the last few messages still on their way."""
        effects = self.session.detach(self.now)
        self.perform(effects)
        self.attached = False
        self.client.got = max(0, self.client.got - lost)

    @precondition(lambda self: self.live and self.attached and self.engine.alive)
    @rule(chance=st.integers(0, 9))
    def leave_for_good(self, chance: int) -> None:
        if chance == 0:
            self.cut(0)
            self.pass_time(LIMITS.grace)
            assert self.session.ended
            assert not self.engine.alive

    @precondition(lambda self: self.live)
    @rule()
    def resume(self) -> None:
        back = m.ResumeFrom("s", f"t{self.tokens}", self.client.got)
        assert not self.session.can_resume(m.ResumeFrom("s", "guess", self.client.got))
        assert self.session.can_resume(back) == (self.client.got >= self.acknowledged)
        if not self.session.can_resume(back):
            refusal = self.session.resume(back, "unused", self.now)
            assert [type(effect) for effect in refusal] == [Send, Close]
            return
        if self.attached:
            (close,) = self.session.takeover(self.now)
            assert close == Close(4000, "taken over by a newer connection")
        self.attached = True
        self.tokens += 1
        self.acknowledged = self.client.got
        (ready, *_) = self.perform(self.session.resume(back, f"t{self.tokens}", self.now))
        assert isinstance(ready, m.Ready)
        assert ready.resumed

    # ------------------------------------------------------------ the engine

    @precondition(lambda self: self.live and self.engine.alive)
    @rule(samples=st.sampled_from([0, 480, 1_920, 9_600]), word=st.booleans())
    def audio(self, samples: int, word: bool) -> None:
        self.give(self.engine.alive[0], samples, word)

    @precondition(lambda self: self.live and self.engine.dead)
    @rule(samples=st.sampled_from([480, 1_920]), final=st.booleans())
    def late_audio(self, samples: int, final: bool) -> None:
        number = self.engine.dead[-1]
        encoded = Encoded(bytes(2 * samples), samples)
        assert self.session.audio(number, encoded, None, final, self.now) == []

    @precondition(lambda self: self.live and self.engine.alive)
    @rule(finish=st.sampled_from(Finish))
    def finish(self, finish: Finish) -> None:
        number = self.engine.alive.pop(0)
        if finish in (Finish.COMPLETE, Finish.LENGTH_BUDGET):
            self.perform(self.session.audio(number, Encoded(b"", 0), None, True, self.now))
        event = Finished(number, finish, 0, "engine_error")
        self.perform(self.session.engine_event(event, self.now))

    @precondition(lambda self: self.live and self.engine.alive)
    @rule()
    def warn(self) -> None:
        warning = TextWarning(self.engine.alive[0], "unspeakable_text", "skipped", "x")
        self.perform(self.session.engine_event(warning, self.now))

    def give(self, number: int, samples: int, word: bool) -> None:
        start = self.engine.given[number]
        self.engine.given[number] += samples
        spoken = (Word("w", start, start // 480, start // 480 + 1),) if word else ()
        chunk = AudioChunk(
            number, 0, start, np.zeros(samples, np.float32), spoken, Lane.BACKGROUND, None, 0.1
        )
        encoded = Encoded(bytes(2 * samples), samples)
        self.perform(self.session.audio(number, encoded, chunk, False, self.now))

    # ------------------------------------------------------------ time

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0]))
    def pass_time(self, seconds: float) -> None:
        until = self.now + seconds
        while (due := self.session.get_timer()) is not None and due <= until:
            self.now = max(self.now, due)
            before = self.session.get_timer()
            self.perform(self.session.handle_timer(self.now))
            after = self.session.get_timer()
            assert after is None or after > self.now or after != before, "a timer that spins"
        self.now = until

    @precondition(lambda self: self.live and self.attached)
    @rule(chance=st.integers(0, 9))
    def drain(self, chance: int) -> None:
        if chance == 0:
            self.perform(self.session.drain(self.now + 30.0, self.now))

    # ------------------------------------------------------------ what always holds

    @invariant()
    def ends_add_up(self) -> None:
        for epoch, end in self.client.ended.items():
            if isinstance(end, m.Done):
                assert end.samples == self.client.position.get(epoch, 0)
            elif isinstance(end, m.Cancelled | m.Failed):
                assert end.heard_text + end.unheard_text == self.epoch_text.get(epoch, "")
                assert 0 <= end.heard <= self.client.position.get(epoch, 0)

    @invariant()
    def the_engine_has_the_current_text(self) -> None:
        waiting = set(self.client.started) - set(self.client.ended)
        if not (self.attached and self.live and waiting):
            return
        current = min(waiting)
        if self.engine.alive:
            assert self.engine.text[self.engine.alive[0]] == self.epoch_text.get(current, "")
        else:
            assert current in self.client.final, "nobody speaks what waits"

    @invariant()
    def engine_and_encoders_match(self) -> None:
        assert self.engine.encoders <= set(self.engine.alive)
        if self.live and not self.attached:
            for number in self.engine.alive:
                assert self.engine.held[number] is ListenerState.SUSPENDED

    def teardown(self) -> None:
        if self.live and not self.attached:
            self.resume()
        if self.live and self.attached:
            self.perform(self.session.stop(1001, "over", self.now))
            assert set(self.client.ended) == set(self.client.started)
        if self.session.ended:
            assert self.engine.encoders == set()
            back = m.ResumeFrom("s", f"t{self.tokens}", self.client.got)
            assert refuse_resume(back, self.session.tombstone(), self.now)


SessionMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=50, deadline=None)
TestSessionMachine = SessionMachine.TestCase
