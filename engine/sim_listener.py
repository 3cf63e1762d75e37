"""Ground truth for the simulator: players that are not ideal, and what they say of themselves.

Shares no code with the engine's belief (playhead.py): belief and truth must not share a mistake.
Times are seconds of virtual time, amounts seconds of audio.
"""

import random
from dataclasses import dataclass, field

from playhead.engine.types import ListenerState


@dataclass(frozen=True, slots=True)
class Network:
    """A client's connection."""

    one_way: float = 0.030
    shaky: bool = False  # suffers one pause in each utterance


@dataclass(frozen=True, slots=True)
class Habits:
    """What one listener does during one utterance."""

    threshold: float = 0.0  # audio collected before playing starts
    rate: float = 1.0  # how fast its clock plays
    blocked_until: float = 0.0  # after the first audio: suspended page, seconds
    pause_at: float | None = None  # after the first audio
    pause_for: float = 0.0
    cut_at: float | None = None  # the network stops, after the first audio
    cut_for: float = 0.0
    lies: str | None = None  # "empty", "full" or "flip"


@dataclass(frozen=True, slots=True)
class Mix:
    """How listeners are drawn."""

    ideal: bool = False
    blocked: float = 0.10
    pauses: float = 0.10
    shaky: float = 0.15
    liars: float = 0.0
    sticky: bool = True  # a client's network is the same in all its utterances

    def network(self, rng: random.Random) -> Network:
        """A client's connection."""
        return Network(shaky=not self.ideal and rng.random() < self.shaky)

    def habits(self, rng: random.Random, network: Network) -> Habits:
        """One utterance's listener."""
        if self.ideal:
            return Habits()
        shaky = network.shaky if self.sticky else rng.random() < self.shaky
        pauses = rng.random() < self.pauses
        return Habits(
            threshold=rng.choice((0.0, 0.1, 0.2, 0.4, 0.6)),
            rate=rng.uniform(0.95, 1.05),
            blocked_until=rng.uniform(1.0, 3.0) if rng.random() < self.blocked else 0.0,
            pause_at=rng.uniform(0.5, 4.0) if pauses else None,
            pause_for=rng.uniform(0.5, 4.0),
            cut_at=rng.uniform(0.2, 5.0) if shaky else None,
            cut_for=rng.uniform(0.3, 1.5),
            lies=rng.choice(("empty", "full", "flip")) if rng.random() < self.liars else None,
        )


@dataclass(slots=True)
class Truth:
    """What happened to one utterance."""

    first_audio: float | None = None
    stalls: list[float] = field(default_factory=list)

    @property
    def worst(self) -> float:
        """Longest stall."""
        return max(self.stalls, default=0.0)


class Listener:
    """One player. Feed it arrivals and let it run up to any later time with :meth:`advance`."""

    def __init__(self, habits: Habits, now: float) -> None:
        self.habits = habits
        self.truth = Truth()
        self.state = ListenerState.IDLE
        self.received = 0.0
        self.consumed = 0.0
        self.underruns = 0
        self.starved = 0.0
        self._final = False
        self._at = now
        self._dry_since = now

    @property
    def held(self) -> float:
        """Seconds in the buffer."""
        return self.received - self.consumed

    @property
    def done(self) -> bool:
        """Everything was played."""
        return self.state is ListenerState.DRAINED

    def arrive(self, audio: float, final: bool, now: float) -> None:
        """Audio reaches the player."""
        self.advance(now)
        self.received += audio
        self._final = self._final or final
        if self.truth.first_audio is None and audio > 0:
            self.truth.first_audio = now
        if self.state in (ListenerState.IDLE, ListenerState.PREBUFFER, ListenerState.STALLED):
            self._try_start(now)

    def advance(self, now: float) -> None:
        """Play up to ``now``, through every change of state on the way."""
        while self._at < now:
            change = min(now, self._next_change())
            if self.state is ListenerState.PLAYING:
                self.consumed = min(
                    self.received, self.consumed + (change - self._at) * self.habits.rate
                )
            self._at = change
            self._turn(change)

    def next_change(self) -> float:
        """When the state changes by itself, if nothing arrives before."""
        return self._next_change()

    def _next_change(self) -> float:
        times = [t for t in self._own_times() if t > self._at]
        if self.state is ListenerState.PLAYING:
            times.append(self._at + max(self.held, 1e-9) / self.habits.rate)
        return min(times, default=float("inf"))

    def _own_times(self) -> list[float]:
        first = self.truth.first_audio
        if first is None:
            return []
        times = [first + self.habits.blocked_until]
        if self.habits.pause_at is not None:
            start = first + self.habits.pause_at
            times += [start, start + self.habits.pause_for]
        return times

    def _held_by(self, now: float) -> ListenerState | None:
        first = self.truth.first_audio
        if first is None:
            return None
        if now < first + self.habits.blocked_until:
            return ListenerState.SUSPENDED
        if self.habits.pause_at is not None:
            since = now - first - self.habits.pause_at
            if 0 <= since < self.habits.pause_for:
                return ListenerState.PAUSED
        return None

    def _turn(self, now: float) -> None:
        held_by = self._held_by(now)
        if held_by is not None:
            if self.state is ListenerState.STALLED:
                self._end_stall(now)
            self.state = held_by
            return
        if self.state in (ListenerState.PAUSED, ListenerState.SUSPENDED):
            self.state = ListenerState.PREBUFFER
            self._try_start(now)
        elif self.state is ListenerState.PLAYING and self.held <= 1e-6:
            self._run_dry(now)

    def _try_start(self, now: float) -> None:
        held_by = self._held_by(now)
        if held_by is not None:
            self.state = held_by
            return
        if self.held <= 1e-6 and self._final:
            if self.state is ListenerState.STALLED:
                self._end_stall(now)
            self.state = ListenerState.DRAINED
        elif self.held > 0 and (self.held >= self.habits.threshold or self._final):
            if self.state is ListenerState.STALLED:
                self._end_stall(now)
            self.state = ListenerState.PLAYING
        elif self.state is not ListenerState.STALLED:
            self.state = ListenerState.PREBUFFER

    def _run_dry(self, now: float) -> None:
        self.consumed = self.received
        if self._final:
            self.state = ListenerState.DRAINED
            return
        self.state = ListenerState.STALLED
        self.underruns += 1
        self._dry_since = now

    def _end_stall(self, now: float) -> None:
        length = now - self._dry_since
        self.starved += length
        self.truth.stalls.append(length)
