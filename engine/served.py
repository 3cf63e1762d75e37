"""What one server was measured to carry: points of a load test, and what they allow to promise.

Reads the ``report.json`` of ``playhead bench`` and files of the same shape. Nothing is read between
the points or beyond them: a rate that was not measured is not promised. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TTFA_P95 = 0.200
LENIENT_C100 = 0.99


@dataclass(frozen=True, slots=True)
class Point:
    """One rate. ``ttfa_p95`` in seconds; ``c0``, ``c100``: shares of utterances without a stall,
    or with none above 100 ms; ``in_flight``: the most utterances at one time."""

    rate: float
    ttfa_p95: float
    c0: float
    c100: float
    in_flight: float
    utterances: int
    grows: bool = False  # the backlog did

    def meets(self, strict: bool) -> bool:
        """Whether it is good enough: ``strict``, no stall at all; else 99 % without one above
        100 ms. Both: p95 of TTFA at most 200 ms, and no growing backlog."""
        smooth = self.c0 >= 1.0 if strict else self.c100 >= LENIENT_C100
        return smooth and self.ttfa_p95 <= TTFA_P95 and not self.grows


H200 = (
    Point(1.0, 0.0140, 1.0, 1.0, 7, 9),
    Point(30.0, 0.0372, 1.0, 1.0, 179, 356),
    Point(60.0, 0.0440, 1.0, 1.0, 369, 698),
    Point(90.0, 0.0550, 1.0, 1.0, 549, 1_078),
    Point(120.0, 0.0724, 1.0, 1.0, 747, 1_442),
    Point(150.0, 0.0892, 1.0, 1.0, 932, 1_872),
    Point(200.0, 0.0768, 1.0, 1.0, 1_254, 7_385),
)
"""Qwen3-TTS 1.7B, random weights, one H200, from 60 on an engine process and four gateways, at 200
the model in another; 2026-11-29 and 30, one seed of 12 s, at 200 three (docs/benchmarks.md). 225
was held without a stall too, once and for 10 s, and is not promised."""


class NotServed(ValueError):
    """A table from which no promise follows; the message says why."""


def capacity(points: Iterable[Point], *, strict: bool = True) -> Point:
    """The highest point that is good enough and has only such below it. Raises
    :class:`NotServed`."""
    best: Point | None = None
    for point in sorted(points, key=lambda point: point.rate):
        if not point.meets(strict):
            break
        best = point
    if best is None:
        objective = "strict" if strict else "lenient"
        raise NotServed(f"its lowest rate does not meet the {objective} objective")
    return best


def read(report: Any) -> list[Point]:
    """The points of a ``report.json``, already decoded. Raises :class:`NotServed`."""
    rates = report.get("rates") if isinstance(report, Mapping) else None
    if not isinstance(rates, Sequence) or not rates:
        raise NotServed("expected an object with a list 'rates', as report.json has it")
    try:
        return [_point(row) for row in rates if not row.get("invalid")]
    except (AttributeError, KeyError, TypeError, ValueError) as fault:
        raise NotServed(f"a row of 'rates' lacks or mistakes {fault}") from None


def _point(row: Mapping[str, Any]) -> Point:
    heard = row["listener"]
    return Point(
        rate=float(row["rate"]),
        ttfa_p95=float(row["ttfa"]["p95"]),
        c0=float(heard["c0"]),
        c100=float(heard["c100"]),
        in_flight=float(row["peak_in_flight"]),
        utterances=int(heard["utterances"]),
        grows=bool(row.get("backlog_grows", False)),
    )
