"""A listener as it really is, tick by tick, to judge the engine's belief by.

Written without looking at playhead.py: belief and truth must not share a mistake. The player moves
in ticks of one render quantum; audio is counted in samples at ``RATE``, its own clock runs at
``rate``, arrivals are in order and held up while the network is cut.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from playhead.engine.types import ListenerState, Report

RATE = 24_000
TICK = 0.010
REPORT_EVERY = 0.250
CLOCK_OFFSET = 5_000.0

Span = tuple[float, float]  # from, until


@dataclass(frozen=True)
class Script:
    """What one listener does. Seconds."""

    threshold: float = 0.0
    rate: float = 1.0
    one_way: float = 0.030
    pauses: Sequence[Span] = ()
    cuts: Sequence[Span] = ()  # nothing arrives at the player
    silent_from: float = float("inf")  # no reports any more


@dataclass
class TruthPlayer:
    """One utterance in one player. Call :meth:`tick` with every multiple of ``TICK``."""

    script: Script
    state: ListenerState = ListenerState.IDLE
    sent: int = 0
    received: int = 0
    consumed: int = 0
    underruns: int = 0
    starved: float = 0.0
    stopped: float = 0.0  # seconds in which nothing was played since the first sample was sent
    changed_at: float = 0.0  # when the state last changed
    _way: deque[tuple[float, int]] = field(default_factory=deque)
    _mail: deque[tuple[float, Report]] = field(default_factory=deque)
    _fraction: float = 0.0
    _next_report: float = 0.0
    _told: ListenerState = ListenerState.IDLE

    def send(self, samples: int, now: float) -> None:
        """The server hands ``samples`` to the network."""
        self.sent += samples
        there = now + self.script.one_way
        for start, end in self.script.cuts:
            if start <= there < end:
                there = end
        if self._way:
            there = max(there, self._way[-1][0])
        self._way.append((there, samples))

    def mail(self, now: float) -> list[tuple[float, Report]]:
        """Reports that reach the server by ``now``, with their times of arrival."""
        out = []
        while self._mail and self._mail[0][0] <= now + 1e-9:
            out.append(self._mail.popleft())
        return out

    def tick(self, now: float) -> None:
        """Everything that happens up to ``now``, one tick after the last call."""
        before = self.state
        if self.state is ListenerState.PLAYING:
            self._play()
        elif self.sent:
            self.stopped += TICK
            self.starved += TICK if self.state is ListenerState.STALLED else 0.0
        while self._way and self._way[0][0] <= now + 1e-9:
            self.received += self._way.popleft()[1]
        self.state = self._next_state(now)
        if self.state is not before:
            self.changed_at = now
        if self.state is not self._told or (self.received and now >= self._next_report - 1e-9):
            self._post(now)

    def report(self, now: float) -> Report:
        """What an honest player says."""
        return Report(
            utterance=1,
            received=self.received,
            consumed=self.consumed,
            heard=self.consumed,
            buffered=self.received - self.consumed,
            discarded=0,
            state=self.state,
            underruns=self.underruns,
            starved=self.starved,
            client_time=now + CLOCK_OFFSET,
        )

    def _play(self) -> None:
        wanted = RATE * TICK * self.script.rate + self._fraction
        whole = int(wanted)
        self._fraction = wanted - whole
        self.consumed = min(self.received, self.consumed + whole)

    def _next_state(self, now: float) -> ListenerState:
        if self.received and any(start <= now < end for start, end in self.script.pauses):
            return ListenerState.PAUSED
        held = self.received - self.consumed
        enough = held > 0 and held >= self.script.threshold * RATE
        match self.state:
            case ListenerState.PLAYING if held == 0:
                self.underruns += 1
                return ListenerState.STALLED
            case ListenerState.PLAYING:
                return ListenerState.PLAYING
            case _ if enough:
                return ListenerState.PLAYING
            case ListenerState.STALLED:
                return ListenerState.STALLED
            case _:
                return ListenerState.PREBUFFER if self.received else ListenerState.IDLE

    def _post(self, now: float) -> None:
        self._told = self.state
        self._next_report = now + REPORT_EVERY
        if now < self.script.silent_from:
            self._mail.append((now + self.script.one_way, self.report(now)))
