"""What one look over the live utterances found: what could start now, in the order of turns."""

import math
from dataclasses import dataclass, field

from playhead.engine.policy import Key
from playhead.engine.stream import Stream
from playhead.engine.types import ChunkWork, Lane


@dataclass(frozen=True, slots=True)
class Step:
    """A backbone step that could be made now. ``key``: as that of a chunk for when all has been
    heard that its listener has before."""

    stream: Stream
    key: Key

    def take(self) -> int:
        """Hand it to the LM lane; returns whose it is."""
        self.stream.stepping, self.stream.steppable = True, False
        return self.stream.request.utterance


@dataclass(slots=True)
class Candidate:
    """A chunk that could be decoded now. ``slack`` in seconds, None without a deadline."""

    stream: Stream
    frames: int
    key: Key
    lane: Lane
    slack: float | None
    seconds: float  # of audio
    promotion: float = math.inf  # when it becomes urgent

    def take(self, now: float) -> ChunkWork:
        """Hand the chunk to its lane."""
        stream = self.stream
        queued_at = stream.queued_at if stream.queued_at is not None else now
        depth = stream.playhead.depth(now)
        index = stream.chunks
        first = stream.take(self.frames, self.seconds)
        return ChunkWork(
            stream.request.utterance,
            index,
            first,
            self.frames,
            self.lane,
            self.slack,
            depth,
            queued_at,
        )


@dataclass(slots=True)
class Turn:
    """What one look found, in the order of turns; ``wake_at`` is when time alone changes it."""

    urgent: list[Candidate] = field(default_factory=list)
    background: list[Candidate] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    wake_at: float = math.inf

    def add(self, chunk: Candidate | None, step: Step | None) -> None:
        """Something could start."""
        if step is not None:
            self.steps.append(step)
        if chunk is not None:
            (self.urgent if chunk.lane is Lane.URGENT else self.background).append(chunk)
            self.wake_at = min(self.wake_at, chunk.promotion)

    def sort(self) -> None:
        """Put everything in the order in which it is served."""
        self.urgent.sort(key=_key)
        self.background.sort(key=_key)
        self.steps.sort(key=_key)


def _key(item: Candidate | Step) -> Key:
    return item.key
