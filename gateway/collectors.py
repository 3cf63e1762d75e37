"""Counters that live elsewhere (engine, sessions), read when /metrics is asked for."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from playhead.engine.events import BELIEF_BOUNDS
from playhead.engine.garbage import Keeper
from playhead.engine.meters import BATCH_BOUNDS
from playhead.engine.stats import EngineStats
from playhead.engine.types import Finish, Source
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector


class EngineCollector(Collector):
    """Lanes, load and what became of reports, from the engine's own statistics."""

    def __init__(self, stats: Callable[[], EngineStats], tells: Callable[[], bool]) -> None:
        self._stats = stats
        self._tells = tells

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: statistics exist once the engine runs."""
        return []

    def collect(self) -> Iterator[Metric]:
        """One snapshot's worth of families; none where it is for another process to tell."""
        if not self._tells():
            return
        stats = self._stats()
        yield GaugeMetricFamily(
            "playhead_engine_utterances", "Utterances that hold a slot", value=stats.live
        )
        yield GaugeMetricFamily(
            "playhead_engine_max_utterances", "Slots for utterances", value=stats.max_live
        )
        yield GaugeMetricFamily(
            "playhead_engine_parked",
            "Utterances left alone because their listeners hold enough",
            value=stats.parked,
        )
        yield GaugeMetricFamily(
            "playhead_engine_held",
            "Utterances whose listeners are paused or cut off",
            value=stats.held,
        )
        yield GaugeMetricFamily(
            "playhead_engine_utilisation",
            "Promised share of the lanes' measured capacity",
            value=stats.utilisation,
        )
        yield CounterMetricFamily(
            "playhead_promotions",
            "Queued background chunks that became urgent",
            value=stats.promoted,
        )
        yield CounterMetricFamily(
            "playhead_engine_refused", "Utterances not let in", value=stats.refused
        )
        yield CounterMetricFamily(
            "playhead_engine_displaced",
            "Utterances that lost their places while their listeners were cut off",
            value=stats.displaced,
        )
        yield _histogram(
            "playhead_belief_error_seconds",
            "How far the belief was off what a report said, just before the report",
            BELIEF_BOUNDS,
            {(): stats.belief_errors},
            {(): stats.belief_error},
        )
        yield _labelled(
            "playhead_engine_finished",
            "Utterances that the engine is done with, by how they ended",
            "outcome",
            {finish.value: stats.finished.get(finish, 0) for finish in Finish},
        )
        yield _reports(stats)
        yield from _lanes(stats)


def _reports(stats: EngineStats) -> Metric:
    return _labelled(
        "playhead_reports",
        "Playback reports by what became of them; clamped ones are also accepted",
        "outcome",
        {
            "accepted": stats.reports,
            "clamped": stats.reports_clamped,
            "invalid": stats.reports_invalid,
            "stale": stats.reports_stale,
        },
    )


def _lanes(stats: EngineStats) -> Iterator[Metric]:
    yield CounterMetricFamily(
        "playhead_engine_uncaptured_calls",
        "Calls of the accelerator model since it was ready that ran operation by operation",
        value=stats.model.uncaptured,
    )
    yield GaugeMetricFamily(
        "playhead_background_multiprocessors",
        "What the background lane has of the accelerator for itself; 0: the lanes share it",
        value=stats.model.part,
    )
    yield CounterMetricFamily(
        "playhead_background_switches",
        "Times that the background lane was given another part of the accelerator",
        value=stats.model.switches,
    )
    waiting = GaugeMetricFamily(
        "playhead_lane_waiting", "Chunks or steps that wait for a worker", labels=["lane"]
    )
    running = GaugeMetricFamily("playhead_lane_running", "Dispatches at work", labels=["lane"])
    sojourn = GaugeMetricFamily(
        "playhead_lane_sojourn_p95_seconds",
        "95th percentile from wanted to delivered",
        labels=["lane"],
    )
    for lane, figures in stats.lanes.items():
        waiting.add_metric([lane.value], figures.waiting)
        running.add_metric([lane.value], figures.running)
        sojourn.add_metric([lane.value], figures.sojourn_p95)
    yield from (waiting, running, sojourn)
    lanes = stats.lanes.items()
    yield _labelled(
        "playhead_lane_busy_seconds",
        "Time at work",
        "lane",
        {lane.value: figures.busy_seconds for lane, figures in lanes},
    )
    yield _labelled(
        "playhead_lane_items",
        "Chunks or steps done",
        "lane",
        {lane.value: figures.items for lane, figures in lanes},
    )
    yield _histogram(
        "playhead_lane_batch",
        "Chunks or steps in one dispatch",
        BATCH_BOUNDS,
        {(lane.value,): figures.batches for lane, figures in lanes},
        {(lane.value,): figures.items for lane, figures in lanes},
        label="lane",
    )


class BuildCollector(Collector):
    """What is running: a gauge that is always 1, its labels say it."""

    def __init__(self, version: str, model: str) -> None:
        self._labels = [version, model]

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand."""
        return []

    def collect(self) -> Iterator[Metric]:
        """One sample."""
        family = GaugeMetricFamily(
            "playhead_build_info", "What is running", labels=["version", "model"]
        )
        family.add_metric(self._labels, 1.0)
        yield family


class GarbageCollector(Collector):
    """What a process's keeper of garbage found."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Its figures now."""
        keeper = self._keeper
        yield CounterMetricFamily(
            "playhead_garbage_collections",
            "Times that everything was looked through for garbage",
            value=keeper.looks,
        )
        yield CounterMetricFamily(
            "playhead_garbage_collected_objects",
            "Containers that only a garbage collection could free",
            value=keeper.freed,
        )
        yield GaugeMetricFamily(
            "playhead_garbage_longest_pause_seconds",
            "The longest garbage collection since the start: nothing else runs meanwhile",
            value=keeper.longest,
        )
        yield GaugeMetricFamily(
            "playhead_garbage_grown_objects",
            "Containers made and not freed since the last garbage collection, or the start",
            value=keeper.grown(),
        )


class SessionCollector(Collector):
    """What sessions count by themselves, ended ones included, and how the living ones' listeners
    are followed."""

    def __init__(
        self, counters: Callable[[], Mapping[str, int]], sources: Callable[[], Mapping[str, int]]
    ) -> None:
        self._counters = counters
        self._sources = sources

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Label values are the names that the session's code uses."""
        yield _labelled(
            "playhead_session_events",
            "What sessions counted, by kind",
            "event",
            self._counters(),
        )
        sources = GaugeMetricFamily(
            "playhead_listener_sources",
            "Sessions by who told last where the listener is: its player, marks that it passed, an "
            "offset at an interruption, the socket (inferred), or none so far",
            labels=["source"],
        )
        counted = self._sources()
        for name in ("none", *Source):
            sources.add_metric([name], counted.get(name, 0))
        yield sources


def _labelled(name: str, text: str, label: str, values: Mapping[str, float]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in sorted(values.items()):
        family.add_metric([value], count)
    return family


def _histogram(
    name: str,
    text: str,
    bounds: Sequence[float],
    counts: Mapping[tuple[str, ...], Sequence[int]],
    sums: Mapping[tuple[str, ...], float],
    label: str = "",
) -> HistogramMetricFamily:
    """From counts by bucket, the last one for what is above all bounds."""
    edges = [*(f"{bound:g}" for bound in bounds), "+Inf"]
    family = HistogramMetricFamily(name, text, labels=[label] if label else [])
    for key, found in counts.items():
        buckets = list(zip(edges, accumulate(found or [0] * len(edges)), strict=True))
        family.add_metric(key, buckets, sums[key])
    return family
