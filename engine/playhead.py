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
from collections import deque
from dataclasses import dataclass

from playhead.engine.types import ListenerState, Report

FASTEST = 1.1
"""Fastest drain, relative to the declared rate, that the floor allows for: device clocks differ by
parts per million, players that stretch time to catch up by up to ten per cent."""

FRESH = 0.75
"""Seconds for which a report is taken at face value: three intervals of a 250 ms reporter."""

STALE = 2.0
"""Seconds after which a listener that should be reporting is treated as one that never does."""

TOLERANCE = 0.010
"""Seconds of slack in the counter checks: players count in render quanta and resample."""

_FROZEN = frozenset({ListenerState.PAUSED, ListenerState.SUSPENDED})
_WAITING = frozenset({ListenerState.IDLE, ListenerState.PREBUFFER, ListenerState.STALLED})


@dataclass(slots=True)
class Counters:
    """Reports that were not taken as they came."""

    stale: int = 0  # older than one already seen
    invalid: int = 0  # contradict themselves or what was sent
    clamped: int = 0  # claimed less than an honest listener could hold


@dataclass(frozen=True, slots=True)
class Anchor:
    """Counters of the last accepted report; ``at`` is when the client took them, in our time."""

    at: float
    received: int
    consumed: int
    buffered: int
    state: ListenerState


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
    ) -> None:
        self.counters = Counters()
        self.sent = 0
        self.one_way = one_way
        self.use_reports = use_reports
        self.first_sent: float | None = None
        self._drain = sample_rate * playback_rate
        self._tolerance = TOLERANCE * sample_rate
        self._threshold = start_threshold * self._drain
        self._flight: deque[tuple[float, int]] = deque()  # (send stamp, total sent after it)
        self._anchor: Anchor | None = None
        self._reported_at = -math.inf
        self._client_time = -math.inf
        self._hold: ListenerState | None = None
        self._waiting_since: float | None = now
        self._waiting_for = 0.0  # samples held or in flight while below the threshold
        self._end = now  # believed dry time once playing
        self._floor_end = now  # dry time of the fastest listener there could be
        self._frozen = False
        self._frozen_runway = 0.0

    # -- what we did ------------------------------------------------------------------------

    def on_sent(self, samples: int, now: float) -> None:
        """``samples`` were handed to the network at ``now``."""
        if self.first_sent is None:
            self.first_sent = now
        self.sent += samples
        self._flight.append((now, self.sent))
        self._floor_end = max(self._floor_end, now) + samples / (self._drain * FASTEST)
        if self._frozen:
            self._frozen_runway += samples / self._drain
        else:
            self._fold(samples, now + self.one_way)
        if not self.use_reports:
            self._forget_arrived(now)

    def hold(self, state: ListenerState | None, now: float) -> None:
        """Freeze the listener (``PAUSED``, ``SUSPENDED``) or, with ``None``, let it go on.

        For what the server knows by itself: a pause it was asked for, a socket that is gone.
        """
        self._hold = state
        if state is None:
            if self._frozen and not self._reported_frozen():
                self._thaw(now)
        elif not self._frozen:
            self._freeze(now)

    # -- what the listener says -------------------------------------------------------------

    def on_report(self, report: Report, now: float) -> bool:
        """Take a report that arrived at ``now``. False when it was ignored (and counted)."""
        if not self.use_reports:
            return False
        if self._is_stale(report):
            self.counters.stale += 1
            return False
        if self._is_invalid(report):
            self.counters.invalid += 1
            return False
        self._client_time = report.client_time
        self._reported_at = now
        self._anchor = Anchor(
            now - self.one_way, report.received, report.consumed, report.buffered, report.state
        )
        while self._flight and self._flight[0][1] <= report.received:
            self._flight.popleft()
        self._rebuild(now)
        return True

    def overdue(self, now: float) -> float:
        """Seconds by which audio in flight is later than the one-way delay explains."""
        if not self._flight:
            return 0.0
        return max(0.0, now - 2 * self.one_way - self._flight[0][0])

    # -- what we believe --------------------------------------------------------------------

    def deadline(self, now: float) -> float:
        """When the listener runs dry. ``inf``: it is held and needs nothing. A time in the past,
        the one since which it has been waiting: it is dry, or below its start threshold."""
        if self._frozen:
            return math.inf
        if self._waiting_since is not None:
            return min(self._waiting_since, now)
        return max(self._end, self._floor_end)

    def runway(self, now: float) -> float:
        """Seconds of audio sent and not yet played, arrived or not."""
        if self._frozen:
            return self._frozen_runway
        if self._waiting_since is not None:
            return self._waiting_for / self._drain
        return max(0.0, max(self._end, self._floor_end) - now)

    def received(self, now: float) -> int:
        """Samples believed to have arrived: reported, or sent at least one delay ago."""
        total = self._anchor.received if self._anchor else 0
        for stamp, sent in self._flight:
            if stamp + self.one_way > now:
                break
            total = max(total, sent)
        return total

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
        return min(1.0, max(0.0, (STALE - age) / (STALE - FRESH)))

    def estimated(self, now: float) -> bool:
        """True where the belief rests on what was sent alone."""
        return self.confidence(now) == 0.0

    # -- inside -----------------------------------------------------------------------------

    def _is_stale(self, report: Report) -> bool:
        if report.client_time < self._client_time:
            return True
        anchor = self._anchor
        return anchor is not None and (
            report.consumed < anchor.consumed or report.received < anchor.received
        )

    def _is_invalid(self, report: Report) -> bool:
        counts = (report.received, report.consumed, report.buffered, report.discarded)
        if min(counts) < 0 or not math.isfinite(report.client_time):
            return True
        if report.received > self.sent + self._tolerance:
            return True
        held = report.consumed + report.discarded + report.buffered
        return abs(report.received - held) > self._tolerance

    def _reported_frozen(self) -> bool:
        return self._anchor is not None and self._anchor.state in _FROZEN

    def _rebuild(self, now: float) -> None:
        """Start the recursion over from the anchor and fold in what is still in flight."""
        anchor = self._anchor
        assert anchor is not None
        was_frozen, self._frozen = self._frozen, False
        in_flight = max(0, self.sent - anchor.received)
        if self._hold is not None or anchor.state in _FROZEN:
            self._frozen = True
            self._frozen_runway = (anchor.buffered + in_flight) / self._drain
            self._waiting_since = None
            return
        if anchor.state in _WAITING:
            self._wait(anchor, anchor.at if was_frozen else self._since(anchor.at))
        else:
            self._waiting_since = None
            self._end = anchor.at + anchor.buffered / self._drain
        done = anchor.received
        for stamp, total in self._flight:
            self._fold(total - done, max(stamp + self.one_way, anchor.at))
            done = total
        self._apply_floor(now)

    def _since(self, at: float) -> float:
        return self._waiting_since if self._waiting_since is not None else at

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

    def _apply_floor(self, now: float) -> None:
        """Refuse to believe less than the fastest honest listener would hold."""
        if self._waiting_since is not None:
            if self._floor_end - now > self._threshold / self._drain + TOLERANCE:
                self._begin(now)
                self.counters.clamped += 1
        elif self._end < self._floor_end - TOLERANCE:
            self.counters.clamped += 1

    def _freeze(self, now: float) -> None:
        self._frozen_runway = self.runway(now)
        self._frozen = True
        self._waiting_since = None

    def _thaw(self, now: float) -> None:
        """Held audio plays on from here; an empty listener waits again."""
        self._frozen = False
        held = self._frozen_runway
        if held > 0.0 and held * self._drain >= self._threshold:
            self._end = now + self.one_way + held
            return
        self._waiting_since = now
        self._waiting_for = held * self._drain

    def _forget_arrived(self, now: float) -> None:
        """Without reports nothing else shortens the list of what is in flight."""
        while len(self._flight) > 1 and self._flight[0][0] + self.one_way <= now:
            self._flight.popleft()
