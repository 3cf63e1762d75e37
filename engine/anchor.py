"""A listener's report as the belief keeps it, and what makes one unbelievable."""

import math
from dataclasses import dataclass

from playhead.engine.types import ListenerState, Report

TOLERANCE = 0.010
"""Seconds of slack in the counter checks: players count in render quanta and resample."""


@dataclass(slots=True)
class Counters:
    """Reports that were not taken as they came."""

    stale: int = 0  # older than one already seen
    invalid: int = 0  # contradict themselves or what was sent
    clamped: int = 0  # claimed less than an honest listener could hold


@dataclass(frozen=True, slots=True)
class Anchor:
    """Counters of an accepted report; ``at`` is when the client took them, in our time."""

    at: float
    received: int
    consumed: int
    buffered: int
    state: ListenerState
    starved: float
    client_time: float
    confidence: float = 1.0  # 0: inferred by the server

    @classmethod
    def of(cls, report: Report, at: float) -> "Anchor":
        """The anchor that ``report``, taken ``at`` our time, makes."""
        return cls(
            at,
            report.received,
            report.consumed,
            report.buffered,
            report.state,
            report.starved,
            report.client_time,
            report.source.confidence,
        )

    def outdates(self, report: Report) -> bool:
        """True when ``report`` was taken before this one, or says so by counting backwards."""
        return (
            report.client_time < self.client_time
            or report.consumed < self.consumed
            or report.received < self.received
        )


def is_invalid(report: Report, sent: int, tolerance: float) -> bool:
    """True when a report contradicts itself or the ``sent`` samples; ``tolerance`` in samples."""
    counts = (report.received, report.consumed, report.buffered, report.discarded)
    if min(counts) < 0 or not math.isfinite(report.client_time + report.starved):
        return True
    held = report.consumed + report.discarded + report.buffered
    return report.received > sent + tolerance or abs(report.received - held) > tolerance
