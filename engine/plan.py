"""What one plan starts: batches for the lanes, as many as the machine takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from playhead.engine.policy import LaneLimits
from playhead.engine.survey import Candidate, Step
from playhead.engine.types import ChunkWork, Lane

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Work that starts now, as one batch, in one lane."""

    lane: Lane
    steps: tuple[int, ...] = ()  # LM lane: utterances to step
    chunks: tuple[ChunkWork, ...] = ()  # codec lanes

    @property
    def utterances(self) -> tuple[int, ...]:
        """Everybody in the batch."""
        return (*self.steps, *(chunk.utterance for chunk in self.chunks))


@dataclass(frozen=True, slots=True)
class Plan:
    """What to start, and when to plan again if nothing happens before (None: never)."""

    dispatches: tuple[Dispatch, ...]
    wake_at: float | None


class Dispatcher:
    """Fills the lanes in the order of turns and counts what runs."""

    def __init__(self, limits: LaneLimits) -> None:
        self._limits = limits
        self.busy = dict.fromkeys(Lane, 0)  # dispatches running
        self.waiting = dict.fromkeys(Lane, 0)  # candidates without a worker at the last plan

    def chunks(self, lane: Lane, candidates: Sequence[Candidate], now: float) -> list[Dispatch]:
        """Start as many of ``candidates`` as codec lane ``lane`` takes."""
        return [
            Dispatch(lane, chunks=tuple(candidate.take(now) for candidate in batch))
            for batch in self._batches(lane, candidates)
        ]

    def steps(self, candidates: Sequence[Step]) -> list[Dispatch]:
        """Start as many backbone steps of ``candidates`` as the LM lane takes."""
        return [
            Dispatch(Lane.LM, steps=tuple(step.take() for step in batch))
            for batch in self._batches(Lane.LM, candidates)
        ]

    def done(self, lane: Lane) -> None:
        """A dispatch of ``lane`` came back."""
        self.busy[lane] -= 1

    def _batches(self, lane: Lane, candidates: Sequence[T]) -> list[Sequence[T]]:
        """The first of ``candidates``, in batches; the others wait."""
        size = self._limits.batch[lane]
        out: list[Sequence[T]] = []
        for start in range(0, len(candidates), size):
            if not self._limits.free(lane, self.busy):
                break
            self.busy[lane] += 1
            out.append(candidates[start : start + size])
        self.waiting[lane] = len(candidates) - sum(map(len, out))
        return out
