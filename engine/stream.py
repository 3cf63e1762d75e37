"""State of one utterance in the scheduler, and the questions asked of it."""

import math
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from playhead.engine.lead import LeadLearner
from playhead.engine.playhead import Playhead
from playhead.engine.types import Finish, Lane, Request, StepResult, Word

UNPARK_SLOP = 1e-4
"""Seconds added to the end of a park, so that rounding cannot find it a moment too early."""


@dataclass(slots=True)
class Stream:
    """One utterance. Written by the scheduler only; counts are codec frames."""

    request: Request
    playhead: Playhead
    learner: LeadLearner
    steppable: bool = False  # a backbone step would yield something
    ended: bool = False  # no frame will ever follow
    finish: Finish = Finish.COMPLETE
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

    def available(self) -> tuple[int, bool]:
        """Frames a chunk may take now, and whether no more can join them for now: a segment ends
        there, or the backbone has nothing to go on with."""
        if self.boundaries:
            return self.boundaries[0] - self.taken, True
        return self.ready - self.taken, not (self.steppable or self.stepping)

    def made(self, result: StepResult) -> None:
        """What a backbone step made joins what waits for a lane."""
        self.ready += result.frames
        self.words.extend(result.words)
        if result.boundary and (not self.boundaries or self.boundaries[-1] < self.ready):
            self.boundaries.append(self.ready)
        # Text that came while the step ran has set it already: what the step saw is older.
        self.steppable = not result.ended and (self.steppable or not result.hungry)
        if result.ended:
            self.ended, self.finish = True, result.finish

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


class ByClient:
    """Live streams by whose they are."""

    def __init__(self) -> None:
        self._streams: dict[str, dict[int, Stream]] = {}

    def add(self, stream: Stream) -> None:
        """A stream has begun."""
        request = stream.request
        self._streams.setdefault(request.client, {})[request.utterance] = stream

    def discard(self, stream: Stream) -> None:
        """A stream that was added is over."""
        own = self._streams[stream.request.client]
        del own[stream.request.utterance]
        if not own:
            del self._streams[stream.request.client]

    def of(self, client: str) -> Collection[Stream]:
        """The streams of a client."""
        return self._streams.get(client, {}).values()
