"""What the engine believes about one listener's playhead.

Open loop, everything a server can know is what it sent and when; this module folds that into the
time the listener runs dry, assuming it plays without interruption. Closed loop, each report of the
listener re-anchors the same recursion at what it really holds. Both are Lindley's recursion
``end = max(end, arrival) + length``, so sending is O(1) and only a report looks back at what is
still in flight.

A report is believed within bounds that the listener cannot move (the *leaky floor*): nobody can
hold less than what was sent minus what the fastest allowed player could have drained, and nobody
can have consumed what was not sent. A report may therefore lower a client's priority freely, but
never raise it above what an honest client could have.
"""

import math

from playhead.engine.anchor import TOLERANCE, Anchor, Counters, is_invalid
from playhead.engine.flight import Flight
from playhead.engine.floor import Floor
from playhead.engine.types import ListenerState, Report

FRESH = 0.75
"""Seconds for which a report is taken at face value: three intervals of a 250 ms reporter."""

STALE = 2.0
"""Seconds after which a listener that should be reporting is treated as one that never does."""

_FROZEN = frozenset({ListenerState.PAUSED, ListenerState.SUSPENDED})
_WAITING = frozenset({ListenerState.IDLE, ListenerState.PREBUFFER, ListenerState.STALLED})


class Playhead:
    """Belief about the listener of one utterance.

    Call :meth:`on_sent` for audio handed to the network and :meth:`on_report` for each report;
    read :meth:`deadline`, :meth:`runway`, :meth:`depth` and :meth:`confidence` at any ``now``.
    Times are seconds, counts samples at ``sample_rate``.
    """

    def __init__(
        self,
        sample_rate: int,
        now: float,
        *,
        start_threshold: float = 0.0,
        playback_rate: float = 1.0,
        one_way: float = 0.0,
        use_reports: bool = True,
        ahead: float = 0.0,
    ) -> None:
        self.counters = Counters()
        self.sample_rate = sample_rate
        self.one_way = one_way
        self.use_reports = use_reports
        self._drain = sample_rate * playback_rate
        self._tolerance = TOLERANCE * sample_rate
        self._threshold = start_threshold * self._drain
        self._flight = Flight(sample_rate)
        self._anchor: Anchor | None = None
        self._reported_at = -math.inf
        self._hold: ListenerState | None = None
        # Speech before this one still plays for `ahead` seconds: then nobody waits for this.
        self._waiting_since: float | None = None if ahead > 0.0 else now
        self._waiting_for = 0.0  # samples held or in flight while below the threshold
        self._end = now + ahead  # believed dry time once playing
        self._floor = Floor(self._drain)
        if ahead > 0.0:
            self._floor.add(ahead * self._drain, now)
        self._frozen = False
        self._frozen_runway = 0.0

    # -- what we did ------------------------------------------------------------------------

    def on_sent(self, samples: int, now: float) -> None:
        """``samples`` were handed to the network at ``now``."""
        self._flight.add(samples, now)
        self._floor.add(samples, now)
        if self._frozen:
            self._frozen_runway += samples / self._drain
        else:
            self._fold(samples, now + self.one_way)
            self._lift(now)
        if not self.use_reports:
            self._flight.forget(now - self.one_way)

    def hold(self, state: ListenerState | None, now: float) -> None:
        """Freeze the listener (``PAUSED``, ``SUSPENDED``) or, with ``None``, let it go on.

        For what the server knows by itself: a pause it was asked for, a socket that is gone.
        """
        self._hold = state
        reported = self._anchor is not None and self._anchor.state in _FROZEN
        if state is not None and not self._frozen:
            self._freeze(now)
        elif state is None and self._frozen and not reported:
            self._thaw(now)

    # -- what the listener says -------------------------------------------------------------

    def on_report(self, report: Report, now: float) -> bool:
        """Take a report that arrived at ``now``. False when it was ignored (and counted)."""
        if not self.use_reports:
            return False
        if self._anchor is not None and self._anchor.outdates(report):
            self.counters.stale += 1
            return False
        if is_invalid(report, self.sent, self._tolerance):
            self.counters.invalid += 1
            return False
        self._reported_at = now
        self._anchor = Anchor.of(report, now - self.one_way)
        self._flight.confirm(report.received)
        self._rebuild(self._anchor, now)
        return True

    def overdue(self, now: float) -> float:
        """Seconds by which audio is later than the delay explains, right after a report that
        arrived at ``now``: it left one delay ago, and what had been sent one delay before that
        should have been counted in it."""
        return self._flight.late(now - 2 * self.one_way)

    # -- what we believe --------------------------------------------------------------------

    def deadline(self, now: float) -> float:
        """When the listener runs dry. ``inf``: it is held and needs nothing. A time in the past,
        the one since which it has been waiting: it is dry, or below its start threshold."""
        if self._frozen:
            return math.inf
        if self._waiting_since is not None:
            return min(self._waiting_since, now)
        return max(self._end, self._floor.end)

    def runway(self, now: float) -> float:
        """Seconds of audio sent and not yet played, arrived or not; for a dry listener also what
        is left of the way of the next audio."""
        if self._frozen:
            believed = self._frozen_runway
        elif self._waiting_since is not None:
            believed = self._waiting_for / self._drain
        else:
            believed = self._end - now
        return max(0.0, believed, self._floor.end - now)

    @property
    def starved(self) -> float:
        """Seconds spent dry inside the utterance, as last reported."""
        return self._anchor.starved if self._anchor else 0.0

    @property
    def sent(self) -> int:
        """Samples handed to the network."""
        return self._flight.total

    def received(self, now: float) -> int:
        """Samples believed to have arrived: reported, or sent at least one delay ago."""
        return self._flight.arrived(now - self.one_way)

    def depth(self, now: float) -> float:
        """Seconds of audio the listener holds: the runway less what is still on its way."""
        on_its_way = (self.sent - self.received(now)) / self._drain
        return max(0.0, self.runway(now) - on_its_way)

    def consumed(self, now: float) -> int:
        """Samples believed played: what was sent less the runway."""
        return max(0, self.sent - round(self.runway(now) * self._drain))

    @property
    def waiting(self) -> bool:
        """Below its start threshold (first start or after a stall) and not held."""
        return self._waiting_since is not None and not self._frozen

    @property
    def frozen(self) -> bool:
        """Paused or suspended: has no deadline."""
        return self._frozen

    def confidence(self, now: float) -> float:
        """1 for a fresh report, falling to 0 where the belief is open loop."""
        if self._anchor is None:
            return 0.0
        if self._frozen:
            return 1.0
        age = now - self._reported_at
        return self._anchor.confidence * min(1.0, max(0.0, (STALE - age) / (STALE - FRESH)))

    def estimated(self, now: float) -> bool:
        """True where the belief rests on what was sent alone."""
        return self.confidence(now) == 0.0

    # -- inside -----------------------------------------------------------------------------

    def _rebuild(self, anchor: Anchor, now: float) -> None:
        """Start the recursion over from the anchor and fold in what is still in flight."""
        was_frozen, self._frozen = self._frozen, False
        if self._hold is not None or anchor.state in _FROZEN:
            in_flight = max(0, self.sent - anchor.received)
            self._frozen = True
            self._frozen_runway = (anchor.buffered + in_flight) / self._drain
            self._waiting_since = None
            return
        if anchor.state in _WAITING:
            since = None if was_frozen else self._waiting_since
            self._wait(anchor, anchor.at if since is None else since)
        else:
            self._waiting_since = None
            self._end = anchor.at + anchor.buffered / self._drain
        for samples, stamp in self._flight.parts():
            self._fold(samples, max(stamp + self.one_way, anchor.at))
        too_early = self._end < self._floor.end - TOLERANCE
        if self._lift(now) if self.waiting else too_early:
            self.counters.clamped += 1

    def _wait(self, anchor: Anchor, since: float) -> None:
        self._waiting_since = since
        self._waiting_for = float(anchor.buffered)
        if self._waiting_for >= self._threshold and self._waiting_for > 0:
            self._begin(anchor.at)

    def _fold(self, samples: int, arrival: float) -> None:
        if self._waiting_since is None:
            self._end = max(self._end, arrival) + samples / self._drain
            return
        self._waiting_for += samples
        if self._waiting_for >= self._threshold:
            self._begin(arrival)

    def _begin(self, at: float) -> None:
        """The threshold is covered: the listener plays, or will when this arrives."""
        self._waiting_since = None
        self._end = at + self._waiting_for / self._drain
        self._waiting_for = 0.0

    def _lift(self, now: float) -> bool:
        """Do not believe in waiting where the fastest honest listener would hold its threshold.
        True when that had been claimed."""
        if self._waiting_since is None:
            return False
        if self._floor.end - now <= self._threshold / self._drain + TOLERANCE:
            return False
        self._begin(now)
        return True

    def _freeze(self, now: float) -> None:
        self._frozen_runway = self.runway(now)
        self._frozen = True
        self._waiting_since = None

    def _thaw(self, now: float) -> None:
        """Held audio plays on from here; an empty listener waits again."""
        held = self.runway(now)
        self._frozen = False
        if held > 0.0 and held * self._drain >= self._threshold:
            self._end = now + self.one_way + held
            return
        self._waiting_since = now
        self._waiting_for = held * self._drain
