"""A simulated client: one connection, several utterances, one player each."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from playhead.engine.sim_listener import Habits, Listener, Network
from playhead.engine.types import ListenerState, Report, Request

CLOCK_OFFSET = 1_000.0
"""Seconds between a client's clock and ours: nothing may depend on it."""


@dataclass(slots=True)
class Caller:
    """One client; ``left`` utterances are still to come."""

    name: str
    network: Network
    left: int


def draw_frames(rng: random.Random, frame: float) -> int:
    """Length of an utterance in frames of ``frame`` seconds: lognormal, mean 5.7 s, 1 to 15 s."""
    seconds = rng.lognormvariate(math.log(5.7) - 0.125, 0.5)
    return round(min(15.2, max(0.96, seconds)) / frame)


def poisson(seed: int, rate: float, end: float) -> Iterator[float]:
    """Arrivals at random before ``end``, ``rate`` a second on average."""
    rng = random.Random(seed)
    now = rng.expovariate(rate)
    while now < end:
        yield now
        now += rng.expovariate(rate)


@dataclass(slots=True)
class Call:
    """One utterance of a client. Times in seconds, ``sent`` in seconds of audio."""

    utterance: int
    caller: Caller
    habits: Habits
    frames: int
    asked: float
    counted: bool = False
    stepped: int = 0
    sent: float = 0.0
    generated: bool = False
    over: bool = False
    watched: float = -1.0
    reported_state: ListenerState = ListenerState.IDLE
    listener: Listener = field(init=False)
    first_sent: float | None = None
    _last_arrival: float = 0.0
    _lies: int = 0

    def __post_init__(self) -> None:
        self.listener = Listener(self.habits, self.asked)

    @property
    def request(self) -> Request:
        """What the client asks for."""
        return Request(
            self.utterance, self.caller.name, "any", start_threshold=self.habits.threshold
        )

    def arrival(self, now: float) -> float:
        """When something sent now, either way, is there: in order, and not during a cut."""
        if self.first_sent is None:
            self.first_sent = now
        there = now + self.caller.network.one_way
        if self.habits.cut_at is not None:
            start = self.first_sent + self.habits.cut_at
            if start <= there < start + self.habits.cut_for:
                there = start + self.habits.cut_for
        self._last_arrival = max(self._last_arrival + 1e-6, there)
        return self._last_arrival

    def report(self, now: float, sample_rate: int) -> Report:
        """What the player says of itself."""
        player = self.listener
        received, consumed = self._claim(player.received, player.consumed)
        return Report(
            self.utterance,
            received=round(received * sample_rate),
            consumed=round(consumed * sample_rate),
            heard=round(consumed * sample_rate),
            buffered=round(received * sample_rate) - round(consumed * sample_rate),
            discarded=0,
            state=self._claimed_state(),
            underruns=player.underruns,
            starved=player.starved,
            client_time=now + CLOCK_OFFSET,
        )

    def _lie(self) -> str | None:
        if self.habits.lies == "flip":
            return "empty" if self._lies % 4 < 2 else "full"
        return self.habits.lies

    def _claim(self, received: float, consumed: float) -> tuple[float, float]:
        self._lies += 1
        lie = self._lie()
        if lie == "empty":
            return received, received
        if lie == "full":
            return received, 0.0
        return received, consumed

    def _claimed_state(self) -> ListenerState:
        lie = self._lie()
        if lie == "empty" and not self.listener.done:
            return ListenerState.STALLED
        return self.listener.state
