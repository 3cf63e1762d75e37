"""What an onlooker may see of the engine: lanes with their work, and beliefs about listeners."""

from collections.abc import Collection
from dataclasses import dataclass

from playhead.engine.scheduler import Scheduler
from playhead.engine.stats import EngineStats, snapshot
from playhead.engine.stream import Stream
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


def picture(scheduler: Scheduler, utterances: Collection[int], now: float) -> EnginePicture:
    """The engine at ``now``, with beliefs about the listeners of ``utterances``."""
    running = scheduler.dispatcher.running
    wanted = [s for s in scheduler.streams() if s.request.utterance in utterances and not s.dead]
    return EnginePicture(
        stats=snapshot(scheduler, now),
        running={lane: tuple(w.utterances for w in running if w.lane is lane) for lane in Lane},
        beliefs={s.request.utterance: _belief(scheduler, s, now) for s in wanted},
    )


def _belief(scheduler: Scheduler, stream: Stream, now: float) -> Belief:
    head = stream.playhead
    return Belief(
        depth=head.depth(now),
        runway=head.runway(now),
        lead=scheduler.survey.lead(stream),
        margin=scheduler.survey.margin(stream, now),
        frozen=head.frozen,
        estimated=head.estimated(now),
    )
