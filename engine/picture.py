"""What an onlooker may see of the engine: lanes with their work, and beliefs about listeners."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

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
    """One moment. ``beliefs`` of those asked for that the engine still works for; ``slack``:
    seconds until the listener runs dry who needs a lane's running work most, less than zero for one
    that waits, None where nothing runs for anybody who could run dry."""

    stats: EngineStats
    running: dict[Lane, tuple[tuple[int, ...], ...]]  # utterances of each batch at work
    beliefs: dict[int, Belief]
    slack: dict[Lane, float | None] = field(default_factory=dict)


def picture(scheduler: Scheduler, utterances: Collection[int], now: float) -> EnginePicture:
    """The engine at ``now``, with beliefs about the listeners of ``utterances``."""
    work = scheduler.dispatcher.running
    live = {s.request.utterance: s for s in scheduler.streams() if not s.dead}
    running = {lane: tuple(w.utterances for w in work if w.lane is lane) for lane in Lane}
    return EnginePicture(
        stats=snapshot(scheduler, now),
        running=running,
        beliefs={n: _belief(scheduler, live[n], now) for n in utterances if n in live},
        slack={lane: _slack(batches, live, now) for lane, batches in running.items()},
    )


def _slack(
    batches: tuple[tuple[int, ...], ...], live: Mapping[int, Stream], now: float
) -> float | None:
    numbers = (number for batch in batches for number in batch if number in live)
    ends = [live[number].playhead.deadline(now) for number in numbers]
    return min((end - now for end in ends if math.isfinite(end)), default=None)


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
