"""A frozen picture of the engine for metrics, readiness and viewers."""

from dataclasses import dataclass

from playhead.engine.scheduler import Scheduler
from playhead.engine.types import PLACE_KEPT, Finish, Lane, ModelCounts


@dataclass(frozen=True, slots=True)
class LaneStats:
    """One lane. Seconds; counters since the start."""

    running: int  # dispatches at work now
    waiting: int  # chunks (or steps) that wait for a worker now
    busy_seconds: float
    dispatches: int
    items: int
    sojourn_p95: float
    batches: tuple[int, ...] = ()  # dispatches by size, see meters.BATCH_BOUNDS
    workers: int = 1  # dispatches that may be at work at once


@dataclass(frozen=True, slots=True)
class EngineStats:
    """The engine after its last turn."""

    at: float  # monotonic seconds
    live: int  # utterances that hold a slot
    max_live: int
    utilisation: float  # promised share of the lanes' measured capacity
    lanes: dict[Lane, LaneStats]
    promoted: int
    refused: int
    reports: int
    reports_stale: int
    reports_invalid: int
    reports_clamped: int
    belief_error: float  # summed seconds over all reports
    finished: dict[Finish, int]
    parked: int = 0  # utterances whose listeners hold enough for now
    max_utilisation: float = 1.0  # of the promised share; infinite: only slots count
    held: int = 0  # utterances whose listeners are paused or cut off
    belief_errors: tuple[int, ...] = ()  # reports by error, see events.BELIEF_BOUNDS
    model: ModelCounts = ModelCounts()  # noqa: RUF009 - immutable
    displaced: int = 0  # utterances that lost their places while their listeners were cut off
    away: tuple[float, ...] = ()  # since when listeners are cut off

    def occupied(self, now: float) -> int:
        """Slots that a newcomer cannot have at ``now``."""
        return self.live - sum(now - since >= PLACE_KEPT for since in self.away)


def snapshot(scheduler: Scheduler, now: float) -> EngineStats:
    """The scheduler's state now."""
    tally = scheduler.tally
    playing = sum(not stream.playhead.frozen for stream in scheduler.streams())
    cost = scheduler.capacity.cost(playing)
    return EngineStats(
        at=now,
        live=scheduler.live,
        max_live=scheduler.config.max_live,
        utilisation=playing * cost / scheduler.lanes.workers,
        lanes={lane: _lane(scheduler, lane) for lane in Lane},
        promoted=tally.promoted,
        refused=tally.refused,
        reports=tally.reports,
        reports_stale=tally.reports_stale,
        reports_invalid=tally.reports_invalid,
        reports_clamped=tally.reports_clamped,
        belief_error=tally.belief_error,
        finished=dict(tally.finished),
        parked=scheduler.parked,
        held=scheduler.live - playing,
        max_utilisation=scheduler.config.max_utilisation,
        belief_errors=tuple(tally.belief_errors),
        model=tally.model,
        displaced=tally.displaced,
        away=tuple(s.away_since for s in scheduler.streams() if s.away_since is not None),
    )


def _lane(scheduler: Scheduler, lane: Lane) -> LaneStats:
    meter = scheduler.meters[lane]
    return LaneStats(
        running=scheduler.busy(lane),
        waiting=scheduler.waiting(lane),
        busy_seconds=meter.busy_seconds,
        dispatches=meter.dispatches,
        items=meter.items,
        sojourn_p95=meter.sojourn.quantile(0.95),
        batches=tuple(meter.batches),
        workers=min(scheduler.lanes.workers, scheduler.lanes.slots[lane]),
    )
