"""What a soak's samples say: one table of goals and measurements, and whether all are met. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LAG = "playhead_loop_lag_seconds"
LAG_MOST = 0.010
SLOPE_MOST = 1.0
"""MiB an hour."""
USUAL = 2_500
"""Utterances an hour of three talkers who do not hurry: an hour's growth is reckoned by them."""


@dataclass(frozen=True)
class Sample:
    """What is seen of the server at one time. ``at``: seconds; ``resident``: MiB."""

    at: float
    resident: float
    descriptors: int
    threads: int
    tasks: int
    sessions: int
    utterances: int
    lags: int = 0  # so many were measured
    lags_good: int = 0  # and so many of them were up to 10 ms


@dataclass(frozen=True)
class Line:
    """One row of the table; ``good`` None: told, not judged."""

    what: str
    goal: str
    measured: str
    good: bool | None


def lags(text: str) -> tuple[int, int]:
    """How many lags of the event loop were measured, and how many were up to 10 ms."""
    found = re.findall(rf'^{LAG}_bucket{{le="([^"]+)"}} (\S+)$', text, re.M)
    counts = [(float(bound), int(float(count))) for bound, count in found]
    total = counts[-1][1] if counts else 0
    return total, max((count for bound, count in counts if bound <= LAG_MOST), default=0)


def slope(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Of the line through (x, y) by least squares, with its standard error for residuals that are
    independent of each other (those of memory are not: the true one is larger)."""
    if len(x) < 3 or max(x) == min(x):
        return 0.0, float("inf")
    fit, covariance = np.polyfit(x, y, 1, cov=True)
    return float(fit[0]), float(np.sqrt(covariance[0][0]))


def settled(samples: Sequence[Sample]) -> Sequence[Sample]:
    """The last two thirds: what a process takes up when it begins to work is not growth."""
    return samples[len(samples) // 3 :]


def _memory(late: Sequence[Sample], *, hurry: bool) -> list[Line]:
    resident = [s.resident for s in late]
    spoken = late[-1].utterances - late[0].utterances
    hourly, error = slope([s.at / 3600 for s in late], resident)
    each, each_error = slope([float(s.utterances) for s in late], resident)
    reckoned = each * USUAL
    minutes = (late[-1].at - late[0].at) / 60
    return [
        Line(
            f"memory, over the last {minutes:.0f} minutes",
            f"at most {SLOPE_MOST:g} MiB an hour",
            f"{hourly:+.2f} ± {error:.2f} MiB an hour, {resident[0]:.1f} to {resident[-1]:.1f} MiB",
            None if hurry else hourly <= SLOPE_MOST,
        ),
        Line(
            f"memory, by {spoken} utterances",
            f"at most {SLOPE_MOST:g} MiB an hour at {USUAL} an hour",
            f"{each * 1024:+.3f} ± {each_error * 1024:.3f} KiB each: {reckoned:+.2f} MiB an hour",
            reckoned <= SLOPE_MOST if hurry else None,
        ),
    ]


def _flat(name: str, before: int, after: int, late: Sequence[int]) -> Line:
    return Line(
        f"{name}, before anybody came and after all had gone",
        "no more than before",
        f"{before}, {after} ({min(late)} to {max(late)} meanwhile)",
        after <= before,
    )


def verdict(before: Sample, samples: Sequence[Sample], after: Sample, *, hurry: bool) -> list[Line]:
    """``before`` anybody came, ``samples`` while they were there, ``after`` all had gone."""
    late = settled(samples)
    total, good = after.lags - before.lags, after.lags_good - before.lags_good
    share = good / max(1, total)
    counts = [
        _flat(name, getattr(before, name), getattr(after, name), [getattr(s, name) for s in late])
        for name in ("descriptors", "threads", "tasks", "sessions")
    ]
    lag = Line(
        "event loop late by up to 10 ms",
        "99 % of the time",
        f"{share:.2%} of {total}",
        share >= 0.99,
    )
    return [*_memory(late, hurry=hurry), *counts, lag]


def table(lines: Sequence[Line]) -> str:
    """Markdown."""
    words = {True: "met", False: "**missed**", None: ""}
    rows = [f"| {ln.what} | {ln.goal} | {ln.measured} | {words[ln.good]} |" for ln in lines]
    return "\n".join(["| | goal | measured | |", "|---|---|---|---|", *rows])
