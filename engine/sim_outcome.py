"""What came of a simulated run: counts and times of the utterances that began inside the window."""

from dataclasses import dataclass, field

from playhead.engine.sim_listener import Truth
from playhead.engine.types import Lane


@dataclass(slots=True)
class Outcome:
    """What happened to the utterances that began inside the window."""

    utterances: int = 0
    refused: int = 0
    stalled: int = 0  # any stall
    stalled_100: int = 0  # worst stall over 100 ms
    worst_stall: float = 0.0
    ttfa: list[float] = field(default_factory=list)
    waste: float = 0.0  # mean seconds sent and not yet heard, while speaking
    chunks: dict[Lane, int] = field(default_factory=dict)
    busy: dict[Lane, float] = field(default_factory=dict)  # share of the run
    made: float = 0.0  # seconds of speech sent inside the window
    promoted: int = 0
    clamped: int = 0
    digest: str = ""

    def share(self, counted: int) -> float:
        """``counted`` as a share of the utterances."""
        return counted / self.utterances if self.utterances else 0.0

    def add(self, truth: Truth, asked: float) -> None:
        """Count what happened to an utterance that was asked for at ``asked``."""
        if truth.first_audio is None:
            return
        self.ttfa.append(truth.first_audio - asked)
        self.stalled += bool(truth.stalls)
        self.stalled_100 += truth.worst > 0.1
        self.worst_stall = max(self.worst_stall, truth.worst)
