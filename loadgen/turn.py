"""One utterance of one virtual client, from its text to its end: pure, told the time.

The adapter (client.py) carries messages; this decides which, runs the listener, and fills the
record. Faults of the server become names in the record, never exceptions.
"""

import math
from collections.abc import Sequence

from playhead.engine.types import ListenerState
from playhead.gateway.messages import (
    Audio,
    Cancel,
    Cancelled,
    ClientMessage,
    Done,
    End,
    ErrorEvent,
    Failed,
    NumberedMessage,
    Pause,
    ResumePlayback,
    ServerMessage,
    Started,
    Text,
)
from playhead.loadgen.habits import Habits, Reports
from playhead.loadgen.listener import Listener, Stall
from playhead.loadgen.record import Chunk, Record
from playhead.loadgen.reporting import Link, Reporter
from playhead.loadgen.typist import Piece, whole

_NAMED = frozenset({"overloaded", "refused_key"})
"""Codes of failed utterances that are faults by their own name."""


class Turn:
    """Speaks ``record.text``, in ``pieces`` where they are given. ``link``: the session's;
    ``origin``: the clock at the start of the run, from which the record's times count;
    ``deadline``: when to give up."""

    def __init__(
        self,
        record: Record,
        habits: Habits,
        link: Link,
        *,
        origin: float,
        deadline: float,
        pieces: Sequence[Piece] = (),
    ) -> None:
        self.record = record
        self.over = False
        self._link = link
        self._epoch: int | None = None  # known once the server has opened the utterance
        self._habits = habits
        self._origin = origin
        self._deadline = deadline
        self._listener = Listener(habits, record.sample_rate, origin)
        self._reporter: Reporter | None = None
        self._heard: int | None = None
        self._last_sent = -math.inf
        self._latest = -math.inf  # two clocks may differ by microseconds: time never goes back
        self._silent = True
        self._paused = False
        self._untyped = list(pieces or whole(record.text))

    @property
    def played(self) -> bool:
        """The listener has heard all."""
        return self._listener.over

    @property
    def listening(self) -> tuple[ListenerState, float]:
        """The listener's state and the seconds of audio it holds, as of the last call."""
        listener = self._listener
        return listener.state, listener.held / self.record.sample_rate

    # ------------------------------------------------------------ what to send

    def start(self, now: float) -> list[ClientMessage]:
        """The text, or the first of it."""
        self.record.dispatched = now - self._origin
        return self._type(now)

    def sent(self, now: float) -> None:
        """What this turn wanted to send has been handed to the socket."""
        if self.record.text_sent is None and not self._untyped:
            self.record.text_sent = now - self._origin

    def due(self) -> float:
        """When :meth:`tick` is to be called at the latest."""
        times = [self._deadline]
        if self._untyped:
            times.append(self._piece_due())
        if self._reporter is not None:
            times.append(self._reporter.due())
        barge_in = self._barge_in_at()
        if barge_in is not None:
            times.append(barge_in)
        return min(times)

    def tick(self, now: float) -> list[ClientMessage]:
        """Time has passed, and all that had arrived by ``now`` was given to :meth:`take`."""
        now = self._latest = max(now, self._latest)
        if now >= self._deadline:
            self._finish("timeout", now, fault="timeout")
            return [Cancel()]
        barge_in = self._barge_in_at()
        if barge_in is not None and now >= barge_in:
            return self._barge(now)
        return [*self._type(now), *self._say(now)]

    def take(self, message: ServerMessage, size: int, at: float) -> list[ClientMessage]:
        """A message of ``size`` bytes arrived ``at``. What follows is sent by :meth:`tick`, but for
        what must be said at the end."""
        if isinstance(message, NumberedMessage):
            self._link.seq = message.seq
        if self.over:
            return []
        at = self._latest = max(at, self._latest)
        match message:
            case Started() if self._epoch is None:
                self._epoch = message.epoch
                self._reporter = Reporter(self._habits.reports, message.epoch, self._listener, at)
            case Audio() if message.epoch == self._epoch:
                self._audio(message, size, at)
            case Done() if message.epoch == self._epoch:
                self._done(message, at)
            case Cancelled() if message.epoch == self._epoch:
                self._cancelled(message, at)
            case Failed() if message.epoch == self._epoch:
                fault = message.code if message.code in _NAMED else "failed"
                self._finish("failed", at, fault, f"{message.code}: {message.message}")
            case ErrorEvent():
                self._error(message, at)
            case _:
                return []
        return [*self._close_text(), *self._release()] if self.over else []

    def receive(self, message: ServerMessage, size: int, now: float) -> list[ClientMessage]:
        """A message that is read in the moment in which it arrives."""
        said = self.take(message, size, now)
        return said if self.over else [*said, *self.tick(now)]

    def lost(self, reason: str, now: float, fault: str = "connection_lost") -> None:
        """The socket is gone, or what came over it was no message."""
        if not self.over:
            self._finish("lost", now, fault, reason)

    def abandon(self, now: float) -> None:
        """The run was interrupted while this utterance was being spoken."""
        if not self.over:
            self._finish("interrupted", now, "interrupted")

    # ------------------------------------------------------------ the text

    def _piece_due(self) -> float:
        """Pieces count from when the utterance was due: a language model does not wait for us."""
        return self._origin + self.record.intended + self._untyped[0].at

    def _type(self, now: float) -> list[ClientMessage]:
        """The pieces that are due, and with the last one the text's end."""
        messages: list[ClientMessage] = []
        while self._untyped and now >= self._piece_due():
            messages.append(Text(self._untyped.pop(0).text))
            if not self._untyped:
                messages.append(End())
        return messages

    def _close_text(self) -> list[ClientMessage]:
        """A failed utterance goes on taking its text until it is told that there is no more."""
        untyped, self._untyped = self._untyped, []
        return [End()] if untyped and self.record.finish == "failed" else []

    # ------------------------------------------------------------ what came

    def _audio(self, message: Audio, size: int, now: float) -> None:
        record = self.record
        at = now - self._origin
        if record.first_byte is None:
            record.first_byte = at
        if message.position != record.samples:
            self._blame("out_of_order", f"audio at {message.position} after {record.samples}")
        if message.sent < self._last_sent:
            self._blame("clock_backwards", f"sent {message.sent} after {self._last_sent} ms")
        self._last_sent = message.sent
        self._silent = self._silent and not any(message.data)
        self._link.echo, self._link.echo_at = message.sent, now
        record.chunks.append(
            Chunk(
                at=at,
                position=message.position,
                samples=message.samples,
                bytes=size,
                lane=message.lane.value,
                slack=message.slack,
                depth=message.depth,
                sent=message.sent,
            )
        )
        record.samples += message.samples
        record.bytes += size
        if self._heard is None:
            self._listener.arrive(message.samples, message.final, now)

    def _done(self, message: Done, now: float) -> None:
        self.record.server_heard, self.record.estimated = message.heard, message.estimated
        self.record.server_samples = message.samples
        if message.samples != self.record.samples:
            self._blame("truncated", f"{self.record.samples} of {message.samples} samples came")
        if not self.record.samples:
            self._blame("no_audio", "done without any audio")
        elif self._silent and self.record.codec.startswith("pcm"):
            self._blame("silence", "every sample is zero")
        if self._heard is None:
            self._check_played(message, now)
        self._finish(message.reason, now)

    def _check_played(self, message: Done, now: float) -> None:
        """All of the sound is here, so a listener whose end was only guessed plays on."""
        self._listener.advance(now)
        honest = self._habits.reports is not Reports.EMPTY and not message.estimated
        if honest and not self._listener.over:
            self._blame("early_done", "done although the listener was still playing")
        self._heard = self._listener.received

    def _error(self, message: ErrorEvent, now: float) -> None:
        text = f"{message.code}: {message.message}"
        if self._epoch is None:
            self._finish("refused", now, "refused", text)
        else:
            self._blame("error_event", text)

    def _cancelled(self, message: Cancelled, now: float) -> None:
        self.record.server_heard, self.record.estimated = message.heard, message.estimated
        if self._heard is None:
            self._blame("cut_by_server", "cancelled although nobody asked for it")
        self._finish("cancelled", now)

    # ------------------------------------------------------------ the listener

    def _barge_in_at(self) -> float | None:
        first, after = self._listener.first_playable, self._habits.barge_in
        if first is None or after is None or self._heard is not None or self._listener.over:
            return None
        return first + after

    def _barge(self, now: float) -> list[ClientMessage]:
        self._heard = self._listener.stop(now)
        self.record.cancel_sent = now - self._origin
        self._reporter = None
        self._untyped = []
        return [*self._release(), Cancel(epoch=self._epoch, heard=self._heard)]

    def _release(self) -> list[ClientMessage]:
        """The session's next utterance is not to find the pause button pressed."""
        paused, self._paused = self._paused, False
        return [ResumePlayback()] if paused else []

    def _say(self, now: float) -> list[ClientMessage]:
        """Reports, and what a person's pause button sends."""
        if self._reporter is None:
            return []
        messages: list[ClientMessage] = list(self._reporter.reports(self._link, now))
        paused = self._listener.state is ListenerState.PAUSED
        if paused is not self._paused:
            self._paused = paused
            messages.append(Pause() if paused else ResumePlayback())
        return messages

    def _blame(self, fault: str, message: str) -> None:
        """The first fault names the utterance."""
        if not self.record.fault:
            self.record.fault, self.record.message = fault, message

    def _finish(self, finish: str, now: float, fault: str = "", message: str = "") -> None:
        record, listener = self.record, self._listener
        if self._heard is None:
            self._heard = listener.stop(now)
        record.finish, record.ended, record.heard = finish, now - self._origin, self._heard
        record.first_playable = self._relative(listener.first_playable)
        record.started = self._relative(listener.started)
        record.listened, record.unplayed = listener.listened()
        record.stalls = [
            Stall(stall.start - self._origin, stall.length, stall.chunk)
            for stall in listener.stalls
        ]
        if fault:
            self._blame(fault, message)
        self.over = True

    def _relative(self, time: float | None) -> float | None:
        return None if time is None else time - self._origin
