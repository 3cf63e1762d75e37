"""What a virtual client tells the server of its playback: honestly, late, or lying. Pure."""

from dataclasses import dataclass

from playhead.engine.types import ListenerState
from playhead.gateway.messages import PlaybackReport
from playhead.loadgen.habits import Reports
from playhead.loadgen.listener import Counters, Listener

INTERVAL = 0.25
"""Seconds between reports while the state does not change, unless the server asks for another
number (docs/protocol.md)."""
LATE = 0.4
"""Seconds by which the reports of a late client are old when they are sent."""


@dataclass(slots=True)
class Link:
    """What reports need to know of the connection: stamps of the latest audio, and ``seq``."""

    seq: int | None = None
    echo: float | None = None  # the server's stamp, its milliseconds
    echo_at: float = 0.0
    interval: float = INTERVAL  # what the server asks for


class Reporter:
    """Decides when a report is due and what it says."""

    def __init__(self, style: Reports, epoch: int, listener: Listener, now: float) -> None:
        self._style = style
        self._epoch = epoch
        self._listener = listener
        self._state = listener.state
        self._next = now + INTERVAL
        self._delayed: list[tuple[float, PlaybackReport]] = []

    def due(self) -> float:
        """When :meth:`reports` has something to say, if nothing arrives before."""
        if self._style is Reports.OFF:
            return self._listener.next_change()
        waiting = [self._delayed[0][0]] if self._delayed else []
        return min([self._next, self._listener.next_change(), *waiting])

    def reports(self, link: Link, now: float) -> list[PlaybackReport]:
        """What is to be sent at ``now``; plays the listener up to it."""
        counters = self._listener.counters(now)
        if self._style is Reports.OFF:
            return []
        if counters.state is not self._state or now >= self._next:
            self._state = counters.state
            self._next = now + link.interval
            wait = LATE if self._style is Reports.LATE else 0.0
            self._delayed.append((now + wait, self._report(counters, link, now)))
        due = [report for at, report in self._delayed if at <= now]
        self._delayed = [(at, report) for at, report in self._delayed if at > now]
        return due

    def _report(self, counters: Counters, link: Link, now: float) -> PlaybackReport:
        consumed, state = self._claim(counters)
        return PlaybackReport(
            epoch=self._epoch,
            received=counters.received,
            consumed=consumed,
            heard=consumed,
            buffered=counters.received - consumed,
            state=state,
            underruns=counters.underruns,
            starved=1_000 * counters.starved,
            time=1_000 * now,
            seq=link.seq,
            echo=link.echo,
            hold=None if link.echo is None else 1_000 * (now - link.echo_at),
        )

    def _claim(self, counters: Counters) -> tuple[int, ListenerState]:
        if counters.state is ListenerState.DRAINED or not counters.received:
            return counters.consumed, counters.state
        if self._style is Reports.EMPTY:
            return counters.received, ListenerState.STALLED
        if self._style is Reports.FULL:
            return 0, counters.state
        return counters.consumed, counters.state
