"""What a session says: text in from the client, audio in from the engine, reports between.

Whatever the engine or an encoder still gives of an utterance that has ended is dropped here.
"""

from collections import Counter

from playhead.codecs.base import Encoded
from playhead.codecs.registry import Format
from playhead.engine.types import AudioChunk, Finish, Finished, ListenerState, Request, TextWarning
from playhead.gateway.effects import CloseEncoder, Effect, ForwardDelay, ForwardReport
from playhead.gateway.messages import Cancel, Hello, PlaybackReport, Start, Started, Warn
from playhead.gateway.protocol_parse import ProtocolError
from playhead.gateway.session_channel import Channel
from playhead.gateway.session_playback import Playback
from playhead.gateway.session_queue import Fault, Queue
from playhead.gateway.session_report import DelayFilter, Verdict, check, to_engine
from playhead.gateway.session_style import Style, greeted_style, started_style
from playhead.gateway.session_types import Outcome, ServerFacts
from playhead.gateway.session_utterance import Utterance


class Speech:
    """``hello`` gives the defaults of every utterance. ``epoch``: the newest one's."""

    def __init__(
        self,
        facts: ServerFacts,
        channel: Channel,
        counters: Counter[str],
        hello: Hello,
        fmt: Format,
        client: str,
    ) -> None:
        self._facts = facts
        self._limits = facts.limits
        self._channel = channel
        self._counters = counters
        self._hello = hello
        self._style = greeted_style(hello, facts)
        self._client = client
        self._delay = DelayFilter(facts.limits.one_way_most)
        self._quantum = round(facts.limits.quantum * fmt.sample_rate)
        self._queue = Queue(channel, continuous=facts.continuous)
        self._paused = False
        self.format = fmt
        self.epoch = 0

    @property
    def style(self) -> Style:
        return self._style

    @property
    def idle(self) -> bool:
        return self._queue.current is None

    @property
    def composing(self) -> bool:
        """Whether the newest utterance takes text."""
        return not self.idle and self._queue.newest.takes_text

    # ------------------------------------------------------------ text in

    def open(self, start: Start, now: float) -> list[Effect]:
        """Raises ``ProtocolError``: a style that the model has not, too many in the queue."""
        style = started_style(start, self._style, self._facts)
        if len(self._queue.utterances) > self._limits.queued_utterances:
            raise ProtocolError(
                "overloaded",
                f"{self._limits.queued_utterances} utterances wait already",
                "a new utterance when one of them has ended",
            )
        self.epoch += 1
        hello = self._hello
        request = Request(
            utterance=self._facts.new_utterance(),
            client=self._client,
            voice=style.voice,
            speed=style.speed,
            start_threshold=hello.start_threshold / 1_000,
            playback_rate=hello.playback_rate,
            reports=hello.reports or self._facts.observed,
            language=style.language,
            instruct=style.instruct,
        )
        playback = Playback(
            rate=self.format.sample_rate * hello.playback_rate,
            threshold=request.start_threshold,
            fresh=self._limits.report_fresh,
            quantum=self._quantum,
        )
        self._queue.utterances.append(
            Utterance(self.epoch, request, self.format, self._facts.model_rate, playback)
        )
        started = Started(seq=self._channel.next_seq, epoch=self.epoch, id=start.id)
        return self._channel.post(started) + self._queue.advance(now)

    def check_text(self, text: str) -> None:
        """Raises ``ProtocolError`` (``text_too_long``) when ``text`` cannot be taken now."""
        most = self._limits.text_utterance
        length = len(text) + (self._queue.newest.script.length if self.composing else 0)
        if length > most:
            raise ProtocolError(
                "text_too_long",
                f"the utterance would have {length} characters",
                f"at most {most}; end this utterance and go on in the next",
                "text",
            )
        rate = self._limits.speech_rate
        waiting = len(text) + sum(u.waiting_text(rate) for u in self._queue.utterances)
        if waiting > self._limits.text_waiting:
            raise ProtocolError(
                "text_too_long",
                f"{waiting} characters would wait to be spoken",
                f"at most {self._limits.text_waiting}; send it again when more has been spoken",
                "text",
                retry_after=(waiting - self._limits.text_waiting) / rate,
            )

    def add_text(self, text: str) -> list[Effect]:
        """To the composing utterance, after ``check_text``."""
        return self._queue.newest.push(text)

    def flush(self) -> list[Effect]:
        return self._queue.newest.push("", flush=True)

    def end(self) -> list[Effect]:
        self._queue.newest.takes_text = False
        return self._queue.newest.push("", end=True)

    # ------------------------------------------------------------ the listener

    def report(self, report: PlaybackReport, now: float) -> list[Effect]:
        effects: list[Effect] = []
        one_way = self._delay.sample(report, now)
        if one_way is not None:
            effects.append(ForwardDelay(self._client, one_way))
        utterance = self._queue.of_epoch(report.epoch)
        if utterance is None:
            self._counters["stale_reports"] += 1
            return effects
        playback = utterance.playback
        verdict, believed = check(
            report, playback.report, sent=playback.sent, quantum=self._quantum
        )
        if verdict is Verdict.REFUSED:
            self._counters["refused_reports"] += 1
            return effects
        self._counters["clamped_reports"] += verdict is Verdict.CLAMPED
        playback.on_report(believed, now)
        forwarded = to_engine(
            believed,
            utterance=utterance.number,
            wire_rate=self.format.sample_rate,
            model_rate=self._facts.model_rate,
        )
        effects.append(ForwardReport(forwarded, now))
        return effects + self._queue.finish_if_played(now)

    def cancel(self, message: Cancel, now: float) -> list[Effect]:
        """Ends the named utterance and all behind it. Raises ``ProtocolError`` for an epoch that
        was never opened; one that has ended is a normal race."""
        if message.epoch is not None and message.epoch > self.epoch:
            raise ProtocolError(
                "bad_value",
                f"epoch {message.epoch} was never opened",
                f"epoch: at most {self.epoch}",
                "epoch",
            )
        first = message.epoch or 0
        doomed = [u for u in self._queue.utterances if u.epoch >= first]
        self._counters["stale_cancels"] += not doomed
        effects: list[Effect] = []
        unheard_before = False  # nothing is heard behind what is not
        for utterance in doomed:
            named = message.epoch in (None, utterance.epoch)
            heard = message.heard if named and utterance is doomed[0] else None
            if unheard_before:
                heard = 0
            unheard_before = unheard_before or not utterance.is_heard(heard, now)
            effects += self._queue.cancel(utterance, heard, now)
        return effects

    def pause(self, paused: bool, now: float) -> list[Effect]:
        self._paused = paused
        return self.update_hold(now)

    def update_hold(self, now: float) -> list[Effect]:
        """The listener was paused or released, or the socket was lost or came back."""
        hold = ListenerState.PAUSED if self._paused else None
        if not self._channel.attached:
            hold = ListenerState.SUSPENDED
        return self._queue.set_hold(hold, now) + self._queue.advance(now)

    # ------------------------------------------------------------ the engine

    def audio(
        self, number: int, encoded: Encoded, chunk: AudioChunk | None, *, final: bool, now: float
    ) -> list[Effect]:
        current = self._queue.find(number)
        if current is None or current.final_sent:
            self._counters["late_audio"] += 1
            return []
        if chunk is not None:
            current.note_chunk(chunk)
        if not encoded.data and not final:
            return []  # an encoder that still collects input is no end
        message = current.next_audio(self._channel.next_seq, encoded, final=final, now=now)
        return self._channel.post(message, encoded.samples / self.format.sample_rate)

    def engine_event(self, event: TextWarning | Finished, now: float) -> list[Effect]:
        current = self._queue.find(event.utterance)
        if current is None:
            self._counters["late_events"] += 1
            return []
        if isinstance(event, TextWarning):
            return self._channel.post(
                Warn(
                    seq=self._channel.next_seq,
                    epoch=current.epoch,
                    code=event.code,
                    message=event.message,
                    text=event.text,
                )
            )
        current.engine_ended(event.reason)
        close = CloseEncoder(event.utterance)
        if event.reason in (Finish.COMPLETE, Finish.LENGTH_BUDGET):
            assert current.final_sent, "the encoder is flushed before the end is told"
            return [close, *self._queue.finish_if_played(now), *self._queue.advance(now)]
        fault = Fault(event.code or "engine_error", event.message, event.retry_after)
        if event.reason is Finish.CANCELLED:
            fault = Fault("engine_error", "the engine gave the utterance up")
        return [close, *self._queue.fail(current, fault, now), *self._queue.advance(now)]

    # ------------------------------------------------------------ time and ends

    def get_timer(self) -> float | None:
        current = self._queue.current
        if current is None or current.finish is None:
            return None
        ends_at = current.playback.ends_at()
        return None if ends_at is None else ends_at + self._limits.done_grace

    def handle_timer(self, now: float) -> list[Effect]:
        """A silent listener's utterance is over when it should have been played."""
        due, current = self.get_timer(), self._queue.current
        if due is None or current is None or now < due:
            return []
        return self._queue.done(current, estimated=True, now=now)

    def fail_all(self, fault: Fault, now: float, *, but_current: bool = False) -> list[Effect]:
        """``but_current``: leave the one that is being spoken."""
        effects: list[Effect] = []
        for utterance in self._queue.utterances[but_current:]:
            effects += self._queue.fail(utterance, fault, now)
        return effects

    def outcome(self, now: float) -> Outcome | None:
        """How far the current utterance was heard; with none, the last that ended."""
        return self._queue.outcome(now)
