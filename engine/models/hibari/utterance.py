"""State of one utterance: text waiting, frames released, segments being decoded."""

from collections import deque
from dataclasses import dataclass, field

from playhead.engine.models.hibari.backbone import Backbone
from playhead.engine.models.hibari.frontend import Frontend, Mark, Notice, Piece
from playhead.engine.models.hibari.shape import ENERGY, HOP
from playhead.engine.models.hibari.stream import SegmentStream
from playhead.engine.models.hibari.trim import (
    FIRST_LEAD,
    MID_CLAUSE,
    Margins,
    audible_span,
    margins_after,
)
from playhead.engine.text import Segment, Segmenter
from playhead.engine.types import Request, StepResult, TextWarning, Word

ANTICIPATION = 4
"""Frames by which a phoneme is heard before its duration starts (2 to 7 at 20 sentence onsets)."""


@dataclass(slots=True)
class Voice:
    """The loaded parts a step needs."""

    frontend: Frontend
    backbone: Backbone


@dataclass(slots=True)
class _Released:
    """A piece whose frames are being released: what is left of it."""

    frames: int
    words: deque[Word]


@dataclass(slots=True)
class Utterance:
    """``push`` (engine thread), ``step`` and ``decoding`` (lanes) may run beside each other:
    they meet only in the two deques, whose ends are atomic, and in ``text_ended``."""

    request: Request
    segmenter: Segmenter = field(default_factory=Segmenter)
    segments: deque[Segment] = field(default_factory=deque)
    streams: deque[SegmentStream] = field(default_factory=deque)
    text_ended: bool = False
    decoded: int = 0  # frames
    _pieces: deque[tuple[Piece, Margins]] = field(default_factory=deque)
    _current: _Released | None = None
    _unheard: list[Mark] = field(default_factory=list)
    _notices: list[Notice] = field(default_factory=list)
    _pause: Margins | None = None  # after the last audible piece; None: nothing was audible yet
    _made: int = 0  # frames of all pieces run so far
    _released: int = 0  # frames
    _count: int = 0  # pieces run so far
    _planned: bool = False  # there was something to speak
    _warned: bool = False

    def push(self, delta: str, *, flush: bool, end: bool) -> bool:
        """True when a step would give frames or the end."""
        self.segments.extend(self.segmenter.push(delta))
        if end:
            self.segments.extend(self.segmenter.end())
            self.text_ended = True
        elif flush:
            self.segments.extend(self.segmenter.flush())
        return end or self._has_more()

    def step(self, voice: Voice, most: int) -> StepResult:
        """Releases up to ``most`` frames, running the backbone where a new piece is due."""
        ended = self.text_ended  # read before the deque: what was pushed before it is seen below
        while self._current is None and (self._pieces or self.segments):
            self._begin_piece(voice)
        if self._current is None:
            return self._result(0, ended=ended)
        frames = min(most, self._current.frames)
        self._current.frames -= frames
        self._released += frames
        words = self._words_before(self._released * HOP)
        boundary = self._current.frames == 0
        if boundary:
            self._current = None
        over = boundary and ended and not self._has_more()
        return self._result(frames, boundary=boundary, ended=over, words=words)

    def _has_more(self) -> bool:
        return self._current is not None or bool(self._pieces or self.segments)

    def _begin_piece(self, voice: Voice) -> None:
        if not self._pieces:
            self._plan(voice.frontend, self.segments.popleft())
            return
        piece, pause = self._pieces.popleft()
        if not len(piece.ids) or not self._run(voice.backbone, piece, pause):
            self._unheard += piece.marks

    def _plan(self, frontend: Frontend, segment: Segment) -> None:
        pieces, notices = frontend.plan(segment.text, segment.start)
        self._notices += notices
        self._planned = True
        pause = margins_after(segment.text)
        for piece in pieces:
            self._pieces.append((piece, pause if piece.last else MID_CLAUSE))

    def _run(self, backbone: Backbone, piece: Piece, pause: Margins) -> bool:
        """Frames of ``piece`` become releasable. False: none of them is audible."""
        made = backbone.run(piece.ids, self.request.speed)
        lead = FIRST_LEAD if self._pause is None else self._pause.lead
        start, stop = audible_span(made.latents[:, ENERGY], lead, pause.tail)
        if start == stop:
            return False
        seed = (self.request.seed % 2**64, self._count)
        self.streams.append(SegmentStream(made.latents, made.f0, start, stop, seed))
        words = deque(_word(mark, self._made * HOP) for mark in self._unheard)
        for mark in piece.marks:
            heard = int(made.first_frame[mark.phoneme]) - ANTICIPATION - start
            frame = min(max(heard, 0), stop - start - 1)
            words.append(_word(mark, (self._made + frame) * HOP))
        self._current = _Released(stop - start, words)
        self._unheard = []
        self._pause = pause
        self._made += stop - start
        self._count += 1
        return True

    def _words_before(self, sample: int) -> tuple[Word, ...]:
        found = []
        waiting = self._current.words if self._current else deque[Word]()
        while waiting and waiting[0].start < sample:
            found.append(waiting.popleft())
        return tuple(found)

    def _result(
        self, frames: int, *, ended: bool, boundary: bool = False, words: tuple[Word, ...] = ()
    ) -> StepResult:
        if ended:
            words += self._last_words()
        return StepResult(
            utterance=self.request.utterance,
            frames=frames,
            boundary=boundary,
            hungry=not self.text_ended and not self._has_more(),
            ended=ended,
            words=words,
            warnings=self._warnings(nothing_heard=ended and self._planned and not self._made),
        )

    def _last_words(self) -> tuple[Word, ...]:
        """Words without sound at the very end stand at the last frame, so that none is missing."""
        start = max(0, self._made - 1) * HOP
        words = tuple(_word(mark, start) for mark in self._unheard)
        self._unheard = []
        return words

    def _warnings(self, *, nothing_heard: bool) -> tuple[TextWarning, ...]:
        if nothing_heard and not self._warned and not self._notices:
            self._notices.append(
                Notice("unspeakable_text", "the text has nothing that can be spoken", "")
            )
        notices, self._notices = self._notices, []
        self._warned = self._warned or bool(notices)
        return tuple(
            TextWarning(self.request.utterance, item.code, item.message, item.text)
            for item in notices
        )


def _word(mark: Mark, sample: int) -> Word:
    return Word(mark.text, sample, mark.char_start, mark.char_end)
