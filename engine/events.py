"""What the scheduler tells the gateway: events in order, and counters."""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from playhead.engine.anchor import Counters
from playhead.engine.stream import Stream
from playhead.engine.types import (
    AudioChunk,
    ChunkWork,
    EngineEvent,
    Finish,
    Finished,
    Lane,
    ModelCounts,
    Pcm,
    TextWarning,
    Word,
)

BELIEF_BOUNDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Upper bounds (seconds, inclusive) by which errors of the belief are told apart."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an utterance failed: a stable code, words, and after how many seconds to try again."""

    code: str | None
    message: str
    retry_after: float | None = None


NONE: Final = Fault(None, "")
"""For those that did not fail."""


def broken(message: str) -> Fault:
    """What failed was the model's work."""
    return Fault("engine_error", message)


def died(utterance: int, samples: int, fault: BaseException) -> Finished:
    """The terminal event of an utterance whose engine has ended for good."""
    lost = broken(f"the engine stopped: {type(fault).__name__}")
    return Finished(utterance, Finish.FAILED, samples, lost.code, lost.message)


def unheard(stream: Stream) -> tuple[TextWarning, ...]:
    """What is to be said of a stream that has ended without a single frame of a text that has a
    sound: its model has not said why, now or before."""
    if stream.ready or stream.warned or not (stream.ended and stream.speakable):
        return ()
    message = "the model has ended it before the first sound"
    return (TextWarning(stream.request.utterance, "unspeakable_text", message, ""),)


@dataclass(slots=True)
class Tally:
    """Counters since the start."""

    refused: int = 0
    displaced: int = 0  # cut off for long, and their places needed
    promoted: int = 0
    reports: int = 0
    reports_foreign: int = 0  # for an utterance that has ended or never was
    reports_stale: int = 0  # of ended utterances, like the two below
    reports_invalid: int = 0
    reports_clamped: int = 0
    belief_error: float = 0.0  # summed |believed - reported| depth, seconds
    belief_errors: list[int] = field(default_factory=lambda: [0] * (len(BELIEF_BOUNDS) + 1))
    chunks: Counter[Lane] = field(default_factory=Counter)
    finished: Counter[Finish] = field(default_factory=Counter)
    model: ModelCounts = ModelCounts()  # noqa: RUF009 - immutable

    def believed(self, error: float) -> None:
        """A report showed the belief to be ``error`` seconds off."""
        self.belief_error += error
        self.belief_errors[bisect_left(BELIEF_BOUNDS, error)] += 1

    def end(self, reason: Finish, counters: Counters) -> None:
        """An utterance ended: add up what its listener's reports were like."""
        self.finished[reason] += 1
        self.reports_stale += counters.stale
        self.reports_invalid += counters.invalid
        self.reports_clamped += counters.clamped


class Outbox:
    """Events and freed utterances waiting to be fetched."""

    def __init__(self) -> None:
        self._events: list[EngineEvent] = []
        self._closed: list[int] = []

    def add(self, *warnings: TextWarning) -> None:
        """Warnings."""
        self._events += warnings

    def add_chunk(
        self, chunk: ChunkWork, start: int, pcm: Pcm, words: tuple[Word, ...], now: float
    ) -> None:
        """Audio made by ``now``, with how it was routed."""
        self._events.append(
            AudioChunk(
                chunk.utterance,
                chunk.index,
                start,
                pcm,
                words,
                chunk.lane,
                chunk.slack,
                chunk.depth,
                chunk.queued_at,
                now,
            )
        )

    def finish(self, stream: Stream, reason: Finish, why: Fault) -> None:
        """The terminal event."""
        utterance, samples = stream.request.utterance, stream.playhead.sent
        self._events.append(
            Finished(utterance, reason, samples, why.code, why.message, why.retry_after)
        )

    def close(self, utterance: int) -> None:
        """An utterance's resources can be freed."""
        self._closed.append(utterance)

    def drain(self) -> list[EngineEvent]:
        """Take all events."""
        events, self._events = self._events, []
        return events

    def drain_closed(self) -> list[int]:
        """Take all freed utterances."""
        closed, self._closed = self._closed, []
        return closed
