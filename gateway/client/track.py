"""One utterance in the listener's hands: what arrived, what was played, what was heard.

Time is an argument. Playback is a list of knots ``(time, consumed, speed)``: from each knot on,
samples leave the jitter buffer at ``speed`` per second. What has been *heard* is what had been
consumed one output latency ago, so pauses and stalls reach the ear with the same delay.
"""

import math
from dataclasses import dataclass

from playhead.engine.types import ListenerState

_ROUNDING = 1e-6  # samples; keeps 0.1 s * 24000 Hz from counting as 2399


@dataclass(frozen=True, slots=True)
class PlayerConfig:
    """How a player behaves. Times in seconds, ``sample_rate`` in Hz."""

    sample_rate: int = 24000
    start_threshold: float = 0.1
    playback_rate: float = 1.0
    output_latency: float = 0.0
    report_interval: float = 0.25

    @property
    def threshold(self) -> int:
        """Samples to collect before playback starts."""
        return math.ceil(self.start_threshold * self.sample_rate - _ROUNDING)

    @property
    def speed(self) -> float:
        """Samples that leave the jitter buffer per second of playing."""
        return self.sample_rate * self.playback_rate


@dataclass(frozen=True, slots=True)
class Counters:
    """Cumulative playback counters of one utterance, in samples at the wire rate.

    ``received == consumed + discarded + buffered`` holds exactly. ``starved`` is in seconds.
    """

    epoch: int
    received: int
    consumed: int
    heard: int
    buffered: int
    discarded: int
    state: ListenerState
    underruns: int
    starved: float


class Track:
    """The jitter buffer and the counters of one utterance.

    ``now`` must not go backwards; an earlier ``now`` is taken as the latest one seen.
    """

    def __init__(self, epoch: int, config: PlayerConfig) -> None:
        self.epoch = epoch
        self.ended_at: float | None = None  # drained or cleared
        self._config = config
        self._now = -math.inf
        self._knots: list[tuple[float, int, float]] = []
        self._received = 0
        self._discarded = 0
        self._final = False
        self._turn = False
        self._cleared = False
        self._started = False
        self._running = False
        self._hold: ListenerState | None = None
        self._underruns = 0
        self._starved = 0.0
        self._stalled_since: float | None = None

    @property
    def settled_at(self) -> float | None:
        """When the last consumed sample has left the speaker; None while not ended."""
        return None if self.ended_at is None else self.ended_at + self._config.output_latency

    def advance(self, now: float) -> None:
        """Let playback run up to ``now``."""
        now = self._now = max(now, self._now)
        dry = self.next_change()
        if dry is None or now < dry:
            return
        self._knots.append((dry, self._consumed(dry), 0.0))
        self._running = False
        if self._final:
            self.ended_at = dry
        else:
            self._underruns += 1
            self._stalled_since = dry

    def next_change(self) -> float | None:
        """When the state will change by itself: the moment the buffer runs dry."""
        if not self._running:
            return None
        start, consumed, speed = self._knots[-1]
        return start + (self._received - consumed) / speed

    def add(self, samples: int, final: bool, now: float) -> None:
        """``samples`` arrived; ``final`` says that nothing of this utterance follows."""
        self.advance(now)
        self._received += samples
        if self._cleared or self._final:
            self._discarded += samples
            return
        self._final = final
        self._settle()

    def release(self, now: float) -> None:
        """The utterance before this one is over: playback may start."""
        if self._turn:
            return
        self.advance(now)
        self._turn = True
        self._settle()

    def start(self, now: float) -> None:
        """Playback has begun, whatever the threshold. Nothing happens before audio is there."""
        self.advance(now)
        if self._received and self._turn:
            self._started = True
            self._settle()

    def hold(self, state: ListenerState | None, now: float) -> None:
        """Freeze playback as ``PAUSED`` or ``SUSPENDED``; None lets it go on."""
        self.advance(now)
        self._hold = state
        self._settle()

    def clear(self, now: float) -> None:
        """Throw away what has not been played, and whatever still arrives."""
        self.advance(now)
        if self.ended_at is not None:
            return
        self._cleared = True
        self._settle()
        self._discarded += self._buffered(self._now)
        self.ended_at = self._now

    def counters(self, now: float) -> Counters:
        """Everything a playback report needs, as of ``now``."""
        self.advance(now)
        now = self._now
        stalled = 0.0 if self._stalled_since is None else now - self._stalled_since
        return Counters(
            epoch=self.epoch,
            received=self._received,
            consumed=self._consumed(now),
            heard=self._consumed(now - self._config.output_latency),
            buffered=self._buffered(now),
            discarded=self._discarded,
            state=self._state(),
            underruns=self._underruns,
            starved=self._starved + stalled,
        )

    def _state(self) -> ListenerState:
        if self._cleared:
            return ListenerState.IDLE
        if self.ended_at is not None:
            return ListenerState.DRAINED
        if self._hold is not None:
            return self._hold
        if self._running:
            return ListenerState.PLAYING
        if self._started:
            return ListenerState.STALLED
        return ListenerState.PREBUFFER if self._received else ListenerState.IDLE

    def _settle(self) -> None:
        """Start, stop or end playback according to what is known at ``self._now``."""
        now = self._now
        buffered = self._buffered(now)
        if self.ended_at is None and self._final and not buffered:
            self.ended_at = now
        active = self._turn and self._hold is None and not self._cleared
        enough = self._started or self._final or buffered >= self._config.threshold
        self._set_running(active and enough and buffered > 0, now)
        dry = active and self._started and not self._running and self.ended_at is None
        self._set_stalled(dry, now)

    def _set_running(self, running: bool, now: float) -> None:
        if running == self._running:
            return
        speed = self._config.speed if running else 0.0
        self._knots.append((now, self._consumed(now), speed))
        self._running = running
        self._started = self._started or running

    def _set_stalled(self, stalled: bool, now: float) -> None:
        if self._stalled_since is not None and not stalled:
            self._starved += now - self._stalled_since
            self._stalled_since = None
        elif self._stalled_since is None and stalled:
            self._stalled_since = now

    def _buffered(self, now: float) -> int:
        return self._received - self._discarded - self._consumed(now)

    def _consumed(self, at: float) -> int:
        """Samples that had left the jitter buffer at time ``at``."""
        for start, consumed, speed in reversed(self._knots):
            if start <= at:
                played = math.floor((at - start) * speed + _ROUNDING)
                return min(consumed + played, self._received - self._discarded)
        return 0
