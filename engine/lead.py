"""How far ahead of a listener to run, learned from its own reports.

A lead protects against the network's pauses and is thrown away at a barge-in, so it should be as
short as this listener's own connection allows: short for a steady one, long for a shaky one,
cautious for one not yet known. The evidence is what only reports can tell: how late audio arrives,
how unevenly the reports themselves come, and whether the listener ran dry. It outlives the
utterance: a session keeps one learner.
"""

import math
from dataclasses import dataclass

from playhead.engine.types import ListenerState, Report, Source


@dataclass(frozen=True, slots=True)
class LeadLimits:
    """Bounds of the lead, seconds."""

    least: float = 0.6  # for a listener known to be steady
    unknown: float = 2.0  # before anything is known
    most: float = 2.8  # for the shakiest
    fixed: float | None = None  # no learning: this lead for everybody

    @property
    def for_unknown(self) -> float:
        """The lead of a listener of whom nothing can be learned."""
        return self.unknown if self.fixed is None else self.fixed


SHORTEST, LONGEST = 0.1, 30.0
"""Seconds that an operator may set."""

EXPECTED = "'learned', 'learned:SECONDS' or SECONDS, from 0.1 to 30"


def parse_lead(text: str) -> LeadLimits:
    """What an operator writes: ``learned``; ``learned:1.5``, with that lead for listeners of whom
    nothing is known yet; or ``1.5``, that lead for everybody. Raises ``ValueError``."""
    word, _, number = text.strip().lower().rpartition(":")
    if not word and number == "learned":
        return LeadLimits()
    try:
        seconds = float(number)
    except ValueError:
        seconds = math.nan
    if word not in ("", "learned") or not SHORTEST <= seconds <= LONGEST:
        raise ValueError(EXPECTED)
    if not word:
        return LeadLimits(fixed=seconds)
    default = LeadLimits()
    return LeadLimits(min(default.least, seconds), seconds, max(default.most, seconds))


SAFETY = 1.5
"""Lead per second of the worst pause seen: the next one may be longer than the last. A connection
that has paused at all gets no less than an unknown one."""

STEADY = 0.08
"""Pauses up to this many seconds are ordinary jitter, covered by the least lead."""

ENOUGH = 10.0
"""Seconds of observed playing after which a listener counts as known."""

HALF_LIFE = 60.0
"""Seconds of observed playing in which the memory of a pause fades by half."""

GAP = 0.5
"""Longest stretch between two reports that counts as observed in full."""


class LeadLearner:
    """Learns one client's lead limit. One per session; feed it every accepted report."""

    def __init__(self, limits: LeadLimits) -> None:
        self._limits = limits
        self._observed = 0.0
        self._worst = 0.0
        self._least_transit: float | None = None
        self._last: float | None = None
        self.limit = self._limit()
        """The lead limit now, seconds."""

    def observe(self, report: Report, late: float, now: float) -> None:
        """Take a report that arrived at ``now``. ``late``: seconds by which audio was found late,
        or for which the listener was dry, since the report before."""
        # A socket's silence shows a pause, its traffic does not show that anybody plays steadily.
        told = report.source is not Source.SOCKET
        excess = self._transit_excess(report, now) if told else 0.0
        pause = min(self._limits.most, max(late, excess))
        since, self._last = self._last, now
        if told and report.state is ListenerState.PLAYING and since is not None:
            step = min(now - since, GAP)
            self._observed += step
            self._worst *= 0.5 ** (step / HALF_LIFE)
        if pause > STEADY:
            self._worst = max(self._worst, pause)
        self.limit = self._limit()

    def begin(self) -> None:
        """A new utterance starts. The quickest way is measured anew: over a long session clocks
        drift apart, and a client's may have stood still while its machine slept."""
        self._least_transit = None
        self._last = None

    def _limit(self) -> float:
        limits = self._limits
        if limits.fixed is not None:
            return limits.fixed
        if self._worst > STEADY:
            return min(limits.most, max(limits.unknown, limits.least + SAFETY * self._worst))
        known = min(1.0, self._observed / ENOUGH)
        return known * limits.least + (1.0 - known) * limits.unknown

    @property
    def worst_pause(self) -> float:
        """The longest pause of the connection still remembered, seconds."""
        return self._worst

    def _transit_excess(self, report: Report, now: float) -> float:
        """How much longer this report travelled than the quickest one, clock offset cancelled."""
        transit = now - report.client_time
        if self._least_transit is None or transit < self._least_transit:
            self._least_transit = transit
        return transit - self._least_transit
