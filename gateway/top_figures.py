"""What `playhead top` shows of a server, worked out from two looks at its /metrics. Pure."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

LANES: Final = ("lm", "urgent", "background")
Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Look:
    """One scrape: samples by name and labels, taken at ``at`` (monotonic seconds)."""

    at: float
    values: Mapping[Key, float] = field(default_factory=dict)

    def get(self, name: str, missing: float = 0.0, **labels: str) -> float:
        """A sample, or what stands for one that is missing."""
        return self.values.get((name, tuple(sorted(labels.items()))), missing)

    def by(self, name: str, label: str) -> dict[str, float]:
        """Samples of ``name`` by the value of ``label``."""
        return {
            dict(labels)[label]: value
            for (found, labels), value in self.values.items()
            if found == name and label in dict(labels)
        }


def look(text: str, at: float) -> Look:
    """Read Prometheus text. Raises ``ValueError`` for anything else."""
    values = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    return Look(at, values)


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane since the look before. ``busy``: workers at work on average; ``late``: seconds."""

    name: str
    running: int
    waiting: int
    busy: float
    batch: float
    late: float


@dataclass(frozen=True, slots=True)
class Figures:
    """A server since the look before. Rates a second, times in seconds; NaN: nothing happened. A
    gateway whose mate tells of their engine has NaN for the engine's, and no lanes."""

    sessions: int
    connections: int
    utterances: float
    parked: float
    held: float
    slack: float
    started: float  # utterances that ended, a second
    ttfa_p50: float
    ttfa_p95: float
    depth_p5: float
    depth_p50: float
    lag_p99: float
    belief_p95: float
    waste: float  # seconds of audio a second
    promoted: float
    lanes: tuple[Lane, ...]
    stalls: Mapping[str, float]  # by cause, since the look before
    stalls_total: Mapping[str, float]
    worst: Mapping[str, float]
    refusals: Mapping[str, float]


def figures(before: Look, now: Look) -> Figures:
    """What happened between two looks at one server."""
    seconds = max(now.at - before.at, 1e-3)

    def rate(name: str) -> float:
        return max(0.0, now.get(name) - before.get(name)) / seconds

    def quantile(q: float, name: str) -> float:
        return _quantile(q, before, now, name)

    return Figures(
        sessions=int(now.get("playhead_sessions")),
        connections=int(now.get("playhead_connections")),
        utterances=now.get("playhead_engine_utterances", missing=math.nan),
        parked=now.get("playhead_engine_parked", missing=math.nan),
        held=now.get("playhead_engine_held", missing=math.nan),
        slack=now.get("playhead_slack_ratio"),
        started=sum(_grown(before, now, "playhead_utterances_total", "outcome").values()) / seconds,
        ttfa_p50=quantile(0.5, "playhead_ttfa_seconds"),
        ttfa_p95=quantile(0.95, "playhead_ttfa_seconds"),
        depth_p5=quantile(0.05, "playhead_listener_depth_seconds"),
        depth_p50=quantile(0.5, "playhead_listener_depth_seconds"),
        lag_p99=quantile(0.99, "playhead_loop_lag_seconds"),
        belief_p95=quantile(0.95, "playhead_belief_error_seconds"),
        waste=rate("playhead_audio_wasted_seconds_total"),
        promoted=rate("playhead_promotions_total"),
        lanes=tuple(
            _lane(name, before, now, seconds)
            for name in LANES
            if name in now.by("playhead_lane_running", "lane")
        ),
        stalls=_grown(before, now, "playhead_stalls_total", "cause"),
        stalls_total=now.by("playhead_stalls_total", "cause"),
        worst=now.by("playhead_worst_stall_seconds", "cause"),
        refusals=_grown(before, now, "playhead_refusals_total", "reason"),
    )


def _grown(before: Look, now: Look, name: str, label: str) -> dict[str, float]:
    old = before.by(name, label)
    return {
        value: max(0.0, count - old.get(value, 0.0)) for value, count in now.by(name, label).items()
    }


def _lane(name: str, before: Look, now: Look, seconds: float) -> Lane:
    def grown(metric: str) -> float:
        return max(0.0, now.get(metric, lane=name) - before.get(metric, lane=name))

    dispatches = grown("playhead_lane_batch_count")
    items = grown("playhead_lane_batch_sum")
    return Lane(
        name,
        running=int(now.get("playhead_lane_running", lane=name)),
        waiting=int(now.get("playhead_lane_waiting", lane=name)),
        busy=grown("playhead_lane_busy_seconds_total") / seconds,
        batch=items / dispatches if dispatches else math.nan,
        late=now.get("playhead_lane_sojourn_p95_seconds", lane=name),
    )


def _quantile(q: float, before: Look, now: Look, name: str) -> float:
    """The upper bound of the bucket that holds the quantile; NaN without samples."""
    counts = dict(_buckets(before, now, name))
    total = counts.get(math.inf, 0.0)
    if not total:
        return math.nan
    bounds = sorted(counts)
    return next((bound for bound in bounds if counts[bound] >= q * total), math.inf)


def _buckets(before: Look, now: Look, name: str) -> Iterator[tuple[float, float]]:
    for edge, count in _grown(before, now, name + "_bucket", "le").items():
        yield float(edge), count
