"""The server's own figures as /metrics tells them, in the Prometheus text format. Pure."""

import contextlib
import math
from collections import defaultdict
from collections.abc import Sequence

from playhead.loadgen.record import MetricsSample

LAG_BUCKETS = "playhead_loop_lag_seconds_bucket"
_PREFIXES = ("playhead_", "process_")


def parse(text: str) -> dict[str, float]:
    """Series and values of the Prometheus text format: ours, and the process's.

    Buckets are left out but for those of the loop lag, which tell who was late.
    """
    values: dict[str, float] = {}
    for line in text.splitlines():
        series, _, number = line.rpartition(" ")
        bucket = "_bucket{" in series and not series.startswith(LAG_BUCKETS)
        if not series.startswith(_PREFIXES) or bucket:
            continue
        with contextlib.suppress(ValueError):
            value = float(number)
            if math.isfinite(value):
                values[series] = value
    return values


def inside(samples: Sequence[MetricsSample], begin: float, end: float) -> Sequence[MetricsSample]:
    """What was told from ``begin`` to ``end``, when the load was what it was meant to be; all where
    that is fewer than two samples."""
    found = [sample for sample in samples if begin <= sample.at < end]
    return found if len(found) > 1 else samples


def server_figures(runs: Sequence[Sequence[MetricsSample]]) -> dict[str, float]:
    """How far each counter went a second, and the most that each gauge showed. Runs of fewer than
    two samples tell nothing."""
    went: dict[str, float] = defaultdict(float)
    most: dict[str, float] = {}
    elapsed = 0.0
    for samples in runs:
        if len(samples) < 2:
            continue
        first, last = samples[0], samples[-1]
        elapsed += last.at - first.at
        for name, value in last.values.items():
            went[name] += value - first.values.get(name, 0.0)
        for sample in samples:
            most |= {name: max(most.get(name, v), v) for name, v in sample.values.items()}
    return {
        name: went[name] / elapsed if _counts(name) else value
        for name, value in most.items()
        if "_bucket{" not in name
    }


def _counts(name: str) -> bool:
    return name.partition("{")[0].endswith(("_total", "_count", "_sum"))
