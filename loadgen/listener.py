"""Ground truth: what one virtual listener heard, and every moment at which it heard nothing.

Shares no code with the engine's belief nor with the client's player: truth and belief must not
share a mistake. Amounts are samples at the wire rate, times are seconds; pure.
"""

import math
from dataclasses import dataclass

from playhead.engine.types import ListenerState
from playhead.loadgen.habits import Habits

# Rounding of positions, far below one sample; a float of seconds since boot is good for 1e-6.
_ROUNDING = 1e-3


@dataclass(frozen=True, slots=True)
class Stall:
    """The listener ran dry inside the utterance at ``start`` and heard nothing for ``length``.

    ``chunk`` is the index of the audio message that ended it; -1 when none did.
    """

    start: float
    length: float
    chunk: int


@dataclass(frozen=True, slots=True)
class Counters:
    """Cumulative, in samples; ``starved`` in seconds."""

    received: int
    consumed: int
    buffered: int
    state: ListenerState
    underruns: int
    starved: float


class Listener:
    """One utterance's player. Feed it arrivals with :meth:`arrive`; :meth:`advance` plays."""

    def __init__(self, habits: Habits, sample_rate: int, now: float) -> None:
        self.habits = habits
        self.state = ListenerState.IDLE
        self.stalls: list[Stall] = []
        self.received = 0
        self.first_playable: float | None = None
        self.started: float | None = None
        self._speed = habits.rate * sample_rate  # samples a second
        self._threshold = habits.threshold * sample_rate
        self._rebuffer = habits.rebuffer * sample_rate
        self._played = 0.0
        self._chunk = -1
        self._final = False
        self._at = now
        self._dry_since = now
        self._starved = 0.0
        self._underruns = 0
        self._unplayed = 0.0  # samples held, times seconds
        self._ended: float | None = None

    @property
    def held(self) -> float:
        """Samples received and not yet played."""
        return self.received - self._played

    @property
    def over(self) -> bool:
        """Everything was played."""
        return self.state is ListenerState.DRAINED

    def counters(self, now: float) -> Counters:
        """Everything a playback report needs, as of ``now``."""
        self.advance(now)
        consumed = min(self.received, math.floor(self._played + _ROUNDING))
        stalled = now - self._dry_since if self.state is ListenerState.STALLED else 0.0
        return Counters(
            self.received,
            consumed,
            self.received - consumed,
            self.state,
            self._underruns,
            self._starved + stalled,
        )

    def arrive(self, samples: int, final: bool, now: float) -> None:
        """One audio message reached the player. ``final``: nothing of the utterance follows."""
        self.advance(now)
        self._chunk += 1
        self.received += samples
        self._final = self._final or final
        if samples and self.first_playable is None:
            self.first_playable = now
        self._settle(now)

    def advance(self, now: float) -> None:
        """Play up to ``now``, through every change of state on the way."""
        while self._at < now:
            change = min(now, self.next_change())
            held = self.held
            if self.state is ListenerState.PLAYING:
                played = self._played + (change - self._at) * self._speed
                self._played = min(float(self.received), played)
            if not self.over:
                self._unplayed += (held + self.held) / 2 * (change - self._at)
            self._at = change
            self._settle(change)

    def stop(self, now: float) -> int:
        """The listener stops listening (barge-in, cut session). Returns the samples it heard.

        A stall that was going on ends unrelieved; the utterance's fate tells whether it counts.
        """
        consumed = self.counters(now).consumed
        if self.state is ListenerState.STALLED:
            self.stalls.append(Stall(self._dry_since, now - self._dry_since, -1))
        self._drain(now)
        return consumed

    def listened(self) -> tuple[float, float]:
        """Seconds from the first sound to the end, pauses and stalls included, and the seconds of
        audio that were held and not played in that time, on average. Once it is over."""
        if self.first_playable is None or self._ended is None or self._ended <= self.first_playable:
            return 0.0, 0.0
        span = self._ended - self.first_playable
        return span, self._unplayed / span * self.habits.rate / self._speed

    def _drain(self, now: float) -> None:
        self.state = ListenerState.DRAINED
        if self._ended is None:
            self._ended = now

    def next_change(self) -> float:
        """When the state changes by itself, if nothing arrives before; infinity if never."""
        if self.over:
            return math.inf
        times = [time for time in self._hold_times() if time > self._at]
        if self.state is ListenerState.PLAYING:
            times.append(self._at + max(self.held, _ROUNDING) / self._speed)
        return min(times, default=math.inf)

    def _hold_times(self) -> list[float]:
        first = self.first_playable
        if first is None:
            return []
        return [first + time for hold in self.habits.holds for time in (hold.start, hold.end)]

    def _held_by(self, now: float) -> ListenerState | None:
        if self.first_playable is None:
            return None
        since = now - self.first_playable
        for hold in self.habits.holds:
            # Sums of floats: a change that was announced for ``end`` must find the hold over.
            if hold.start - 1e-9 <= since < hold.end - 1e-9:
                return hold.state
        return None

    def _settle(self, now: float) -> None:
        """Take the state that follows from what is held and what is going on at ``now``."""
        if self.over:
            return
        state = self._next_state(now)
        if state is self.state:
            return
        if self.state is ListenerState.STALLED:
            self._starved += now - self._dry_since
            self._note_stall(now, state)
        if state is ListenerState.STALLED:
            self._underruns += 1
            self._dry_since = now
        if state is ListenerState.PLAYING and self.started is None:
            self.started = now
        self.state = state
        if state is ListenerState.DRAINED:
            self._drain(now)

    def _next_state(self, now: float) -> ListenerState:
        dry = self.held <= _ROUNDING
        if dry and self._final:
            return ListenerState.DRAINED
        held_by = self._held_by(now)
        if held_by is not None:
            return held_by
        if dry:
            if self.started is not None:
                return ListenerState.STALLED
            return ListenerState.PREBUFFER if self.received else ListenerState.IDLE
        if self._enough():
            return ListenerState.PLAYING
        stalled = self.state is ListenerState.STALLED
        return ListenerState.STALLED if stalled else ListenerState.PREBUFFER

    def _enough(self) -> bool:
        if self._final:
            return True
        if self.started is None:
            return self.held >= self._threshold - _ROUNDING
        return self.state is not ListenerState.STALLED or self.held >= self._rebuffer - _ROUNDING

    def _note_stall(self, now: float, after: ListenerState) -> None:
        # Silence that only an empty last message ends was the utterance's end: no gap was heard.
        # Nor is less than one sample a gap: the audio came just in time.
        if after is ListenerState.DRAINED or (now - self._dry_since) * self._speed < 1:
            return
        chunk = self._chunk if after is ListenerState.PLAYING else -1
        self.stalls.append(Stall(self._dry_since, now - self._dry_since, chunk))
