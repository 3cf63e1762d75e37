"""What one plan starts."""

from dataclasses import dataclass

from playhead.engine.types import ChunkWork, Lane


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
