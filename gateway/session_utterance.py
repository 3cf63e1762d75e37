"""One utterance of a session, from its first text to its terminal message."""

import math
from dataclasses import dataclass, field, replace

from playhead.codecs.base import Encoded
from playhead.codecs.registry import Format
from playhead.engine.types import AudioChunk, Finish, Lane, ListenerState, Request
from playhead.gateway.effects import Effect, Hold, OpenEncoder, PushText, Submit
from playhead.gateway.heard import Script
from playhead.gateway.messages import Audio, SpokenWord
from playhead.gateway.session_playback import Playback
from playhead.gateway.session_types import Outcome


@dataclass(slots=True, eq=False)
class Utterance:
    """Written by the session's ``Speech`` alone."""

    epoch: int
    request: Request
    format: Format
    model_rate: int
    playback: Playback
    script: Script = field(default_factory=Script)
    takes_text: bool = True
    submitted: bool = False
    final_sent: bool = False
    finish: Finish | None = None
    _pieces: list[PushText] = field(default_factory=list)  # text not yet given to the engine
    _words: list[SpokenWord] = field(default_factory=list)  # wait for the next audio message
    _index: int = 0
    _lane: Lane = Lane.BACKGROUND
    _slack: float | None = None
    _depth: float = 0.0

    @property
    def number(self) -> int:
        return self.request.utterance

    def push(self, delta: str, *, flush: bool = False, end: bool = False) -> list[Effect]:
        """Text for the engine: at once, or kept until ``submit``."""
        self.script.add_text(delta)
        piece = PushText(self.number, delta, flush, end)
        if self.submitted:
            return [piece]
        if self._pieces and not self._pieces[-1].flush:
            before = self._pieces.pop()
            piece = PushText(self.number, before.delta + delta, flush, end)
        self._pieces.append(piece)
        return []

    def submit(
        self, hold: ListenerState | None, now: float, *, behind: Playback | None = None
    ) -> list[Effect]:
        """Hand the utterance to the engine, held if its listener stands still. ``behind``: the
        listener has still to play that one."""
        self.submitted = True
        request = self.request
        if behind is not None:
            request = replace(request, ahead=self.playback.follow(behind, now))
        effects: list[Effect] = [OpenEncoder(self.number, self.format), Submit(request)]
        effects += self.hold(hold, now) if hold is not None else []
        effects += self._pieces
        self._pieces = []
        return effects

    def hold(self, state: ListenerState | None, now: float) -> list[Effect]:
        if state is None:
            self.playback.release(now)
        else:
            self.playback.hold(now)
        return [Hold(self.number, state)]

    def engine_ended(self, finish: Finish) -> None:
        """Nothing more can be spoken, whatever text may still come."""
        self.finish = finish
        self.takes_text = False

    def note_chunk(self, chunk: AudioChunk) -> None:
        """Remember what belongs to the audio that comes out of the encoder next."""
        words = tuple(
            SpokenWord(
                text=word.text,
                position=self._to_wire(word.start),
                char_start=word.char_start,
                char_end=word.char_end,
            )
            for word in chunk.words
        )
        self.script.add_words(words)
        self._words += words
        self._lane = chunk.lane
        finite = chunk.slack is not None and math.isfinite(chunk.slack)
        self._slack = chunk.slack if finite else None
        self._depth = chunk.depth if math.isfinite(chunk.depth) else 0.0

    def next_audio(self, seq: int, encoded: Encoded, *, final: bool, now: float) -> Audio:
        """The message that carries ``encoded``; advances position and playback."""
        message = Audio(
            seq=seq,
            epoch=self.epoch,
            index=self._index,
            position=self.playback.sent,
            samples=encoded.samples,
            words=tuple(self._words),
            lane=self._lane,
            slack=None if self._slack is None else self._slack * 1_000,
            depth=self._depth * 1_000,
            sent=now * 1_000,
            final=final,
            packets=encoded.packets or None,
            data=encoded.data,
        )
        self._index += 1
        self._words = []
        self.final_sent = final
        self.playback.on_sent(encoded.samples, now)
        return message

    def waiting_text(self, speech_rate: float) -> int:
        """Code points not yet spoken. ``speech_rate`` stands in for missing word times."""
        if self.final_sent:
            return 0
        by_time = int(self.playback.sent / self.format.sample_rate * speech_rate)
        return max(0, self.script.length - max(self.script.covered, by_time))

    def is_heard(self, heard: int | None, now: float) -> bool:
        """Whether all of it has left the speaker; ``heard`` is what the client says."""
        position = self.playback.heard(now)[0] if heard is None else heard
        return self.finish is not None and position >= self.playback.sent

    def outcome(self, heard: int) -> Outcome:
        """``heard``: wire samples that left the speaker."""
        whole = self.finish is Finish.COMPLETE and heard >= self.playback.sent
        heard_text, unheard_text = self.script.split(heard, whole=whole)
        return Outcome(self.epoch, heard, heard_text, unheard_text)

    def _to_wire(self, samples: int) -> int:
        return round(samples * self.format.sample_rate / self.model_rate)
