"""State of one utterance in the scheduler, and the questions asked of it."""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from playhead.engine.lead import LeadLearner
from playhead.engine.longest import Longest, expected
from playhead.engine.playhead import Playhead
from playhead.engine.types import Finish, Lane, Report, Request, StepResult, Word

UNPARK_SLOP = 1e-4
"""Seconds added to the end of a park, so that rounding cannot find it a moment too early."""


class Sight(NamedTuple):
    """What a decision about a stream rests on; seconds."""

    at: float  # when it was looked at
    deadline: float  # when its listener runs dry
    lead: float  # its limit
    needed: float  # what the lanes need for a chunk


@dataclass(slots=True)
class Stream:
    """One utterance. Written by the scheduler only; counts are codec frames."""

    request: Request
    playhead: Playhead
    learner: LeadLearner
    steppable: bool = False  # a backbone step would yield something
    complete: bool = False  # no text will ever follow
    speakable: bool = False  # there is something in its text that has a sound
    ended: bool = False  # no frame will ever follow
    finish: Finish = Finish.COMPLETE
    warned: bool = False  # the model has said that some of its text cannot be spoken as written
    characters: int | None = None  # of its text so far; None: nobody has told
    expected: float = 0.0  # seconds that its text so far should take
    longest: float = math.inf  # frames with which it ends although the model goes on
    ready: int = 0  # frames the backbone has made
    taken: int = 0  # frames handed to a codec lane
    boundaries: deque[int] = field(default_factory=deque)  # frames a chunk must not run past
    words: deque[Word] = field(default_factory=deque)
    chunks: int = 0  # chunks handed to a codec lane
    stepping: bool = False
    decoding: bool = False
    decoding_seconds: float = 0.0  # audio in the chunk being decoded
    dead: bool = False  # ended for its listener; waits for its work in the lanes
    queued_at: float | None = None  # since when a chunk has been waiting for a lane
    queued_lane: Lane | None = None  # the lane it was first meant for
    away_since: float | None = None  # when its listener was cut off
    seen: Sight | None = None  # what the last look at it rested on

    @classmethod
    def opened(
        cls,
        request: Request,
        learner: LeadLearner,
        sample_rate: int,
        *,
        now: float,
        one_way: float,
        listens: bool,
    ) -> Self:
        """A fresh one at ``now``. ``listens``: reports are taken, should any come."""
        head = Playhead(
            sample_rate,
            now,
            start_threshold=request.start_threshold,
            playback_rate=request.playback_rate,
            one_way=one_way,
            use_reports=request.reports and listens,
            ahead=request.ahead,
        )
        return cls(request, head, learner)

    @property
    def may_step(self) -> bool:
        """True when a backbone step would yield something and none is running."""
        return self.steppable and not self.stepping

    @property
    def may_decode(self) -> bool:
        """True when frames are ready and none of them is being decoded."""
        return self.ready > self.taken and not self.decoding

    @property
    def running(self) -> bool:
        """True while a lane holds work of this stream."""
        return self.stepping or self.decoding

    @property
    def spoken(self) -> bool:
        """True when all that will ever be has been handed to a codec lane."""
        return self.ended and self.taken == self.ready

    @property
    def idle(self) -> bool:
        """True when it has spoken, and there is nothing to do for it before more text comes."""
        return self.chunks > 0 and not (self.steppable or self.running or self.may_decode)

    def hear(self, report: Report, now: float) -> float | None:
        """Take a report; by how many seconds the belief was off, or None when it was ignored."""
        head = self.playhead
        believed, starved = head.depth(now), head.starved
        if not head.on_report(report, now):
            return None
        late = max(head.overdue(now), head.starved - starved)
        self.learner.observe(report, late, now)
        return abs(believed - report.buffered / head.sample_rate)

    def available(self) -> tuple[int, bool]:
        """Frames a chunk may take now, and whether no more can join them for now: a segment ends
        there, or the backbone has nothing to go on with."""
        if self.boundaries:
            return self.boundaries[0] - self.taken, True
        return self.ready - self.taken, not (self.steppable or self.stepping)

    def expect(self, delta: str, most: Longest, frame_seconds: float) -> None:
        """``delta`` joins its text: it may last as much longer."""
        self.expected += expected(delta)
        self.characters = len(delta) + (self.characters or 0)
        self.speakable = self.speakable or any(map(str.isalnum, delta))
        self.longest = most.seconds(self.expected, self.request.speed) / frame_seconds

    def fault(self, result: StepResult) -> str | None:
        """Why it fails by what a backbone step gave, if it does."""
        if result.error is not None or self.characters is None:
            return result.error
        if max((word.char_end for word in result.words), default=0) > self.characters:
            return "the model told of a word beyond the end of its text"
        return None

    def made(self, result: StepResult) -> None:
        """What a backbone step made joins what waits for a lane."""
        self.ready += result.frames
        self.words.extend(result.words)
        self.warned = self.warned or bool(result.warnings)
        if result.boundary and (not self.boundaries or self.boundaries[-1] < self.ready):
            self.boundaries.append(self.ready)
        # Text that came while the step ran has set it already: what the step saw is older.
        self.steppable = not result.ended and (self.steppable or not result.hungry)
        if result.ended:
            self.ended, self.finish = True, result.finish
        elif self.ready >= self.longest:
            self.ended, self.finish = True, Finish.LENGTH_BUDGET
            self.steppable = False

    def take(self, frames: int, seconds: float) -> int:
        """Hand ``frames``, which last ``seconds``, to a codec lane; returns the first's number."""
        first = self.taken
        self.taken += frames
        if self.boundaries and self.boundaries[0] == self.taken:
            self.boundaries.popleft()
        self.chunks += 1
        self.decoding, self.decoding_seconds = True, seconds
        self.queued_at = self.queued_lane = None
        return first

    def back_from(self, lane: Lane) -> None:
        """Its work in ``lane`` is over, whatever came of it."""
        if lane is Lane.LM:
            self.stepping = False
        else:
            self.decoding, self.decoding_seconds = False, 0.0

    def pop_words(self, before: float) -> tuple[Word, ...]:
        """Words that start before sample ``before``, in order, each once."""
        out = []
        while self.words and self.words[0].start < before:
            out.append(self.words.popleft())
        return tuple(out)

    def unpark_time(self, over: float, now: float) -> float:
        """When ``over`` seconds too much will have been played; never for a held listener."""
        if self.playhead.frozen or self.playhead.waiting:
            return math.inf
        return now + over + UNPARK_SLOP
