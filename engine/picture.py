"""What an onlooker may see of the engine: lanes with their work, and beliefs about listeners."""

from dataclasses import dataclass

from playhead.engine.stats import EngineStats
from playhead.engine.types import Lane


@dataclass(frozen=True, slots=True)
class Belief:
    """What the engine believes of one listener. Seconds."""

    depth: float  # audio it holds
    runway: float  # and what is on its way
    lead: float  # how far ahead of it the engine may run
    margin: float  # slack below which its next chunk is urgent
    frozen: bool  # paused, suspended, or cut off
    estimated: bool  # on what was sent, not on reports


@dataclass(frozen=True, slots=True)
class EnginePicture:
    """One moment. ``beliefs`` of those asked for that the engine still works for."""

    stats: EngineStats
    running: dict[Lane, tuple[tuple[int, ...], ...]]  # utterances of each batch at work
    beliefs: dict[int, Belief]
