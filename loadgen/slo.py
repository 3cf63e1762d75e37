"""When a rate is good enough, and the search for the highest one that is. Pure.

The search is told how to measure, so it is tested without a server.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from playhead.loadgen.figures import Figures

TTFA_P95 = 0.200
LENIENT_C100 = 0.99
MOST_MEASUREMENTS = 24


@dataclass(frozen=True, slots=True)
class Objective:
    """``strict``: not one stall and not one fault. Otherwise 99 % without a stall above 100 ms,
    and at most 1 % faults. Both: p95 of TTFA at most 200 ms, and no growing backlog."""

    strict: bool = True
    ttfa_p95: float = TTFA_P95

    @property
    def name(self) -> str:
        """As reports call it."""
        return "strict" if self.strict else "lenient"

    def misses(self, made: Figures) -> list[str]:
        """What the figures lack; empty when they are good enough."""
        if not made.listener.utterances:
            return ["nobody heard anything", *self._faults(made)]
        found = [*self._faults(made), *self._stalls(made)]
        p95 = made.ttfa.p95 or 0.0
        if p95 > self.ttfa_p95:
            found.append(f"p95 of TTFA is {1e3 * p95:.0f} ms, above {1e3 * self.ttfa_p95:.0f}")
        if made.backlog_grows:
            found.append(f"the backlog grew by {made.backlog_growth:.1f} utterances")
        return found

    def _faults(self, made: Figures) -> list[str]:
        count = sum(made.faults.values())
        most = 0.0 if self.strict else 1 - LENIENT_C100
        if count <= most * made.utterances:
            return []
        names = ", ".join(f"{number} {name}" for name, number in sorted(made.faults.items()))
        return [f"faults: {names}"]

    def _stalls(self, made: Figures) -> list[str]:
        heard = made.listener
        if self.strict and heard.stalled:
            return [f"{heard.stalled} of {heard.utterances} stalled"]
        if not self.strict and (heard.c100 or 0.0) < LENIENT_C100:
            return [f"C100 is {heard.c100:.1%}, below {LENIENT_C100:.0%}"]
        return []


def stall_bound(utterances: int, stalled: int) -> float:
    """Upper 95 % confidence bound of the true share of stalled utterances, given that utterances
    are independent (Wilson's score interval; the rule of three where none stalled)."""
    if not utterances:
        return 1.0
    if not stalled:
        return min(1.0, 3 / utterances)
    z, share = 1.645, stalled / utterances
    middle = share + z * z / (2 * utterances)
    spread = z * math.sqrt(share * (1 - share) / utterances + z * z / (4 * utterances**2))
    return min(1.0, (middle + spread) / (1 + z * z / utterances))


@dataclass(slots=True)
class Search:
    """What a search found. ``best``: the highest rate that passed; ``worse``: the lowest that did
    not, above it. ``None``: there was none between the bounds."""

    best: float | None = None
    worse: float | None = None
    measured: list[tuple[float, bool]] = field(default_factory=list)


def search(
    measure: Callable[[float], bool],
    *,
    start: float,
    least: float,
    most: float,
    tolerance: float = 0.05,
) -> Search:
    """Highest rate in ``[least, most]`` for which ``measure`` is true, by bracketing from
    ``start`` (doubling, halving) and bisection until the bracket is closer than ``tolerance``.

    Assumes that a higher rate is never better; ``measured`` shows what was seen. Raises
    ``ValueError`` for bounds that hold no rate.
    """
    if not 0 < least <= start <= most:
        raise ValueError(f"expected 0 < least <= start <= most, got {least}, {start}, {most}")
    if not tolerance > 0:
        raise ValueError(f"tolerance is {tolerance}; it must be above 0")
    found = Search()
    rate: float | None = start
    while rate is not None and len(found.measured) < MOST_MEASUREMENTS:
        passed = measure(rate)
        found.measured.append((rate, passed))
        if passed:
            found.best = rate
        else:
            found.worse = rate
        rate = _next_rate(found, least, most, tolerance)
    return found


def _next_rate(found: Search, least: float, most: float, tolerance: float) -> float | None:
    best, worse = found.best, found.worse
    if worse is None:
        assert best is not None, "something was measured"
        return min(2 * best, most) if best < most else None
    if best is None:
        return max(worse / 2, least) if worse > least else None
    return (best + worse) / 2 if worse > best * (1 + tolerance) else None
