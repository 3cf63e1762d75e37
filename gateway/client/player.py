"""The listener's player as a model: utterances in order, counters, and when to report them.

No audio passes through here and no clock is read; whoever feeds a loudspeaker, writes a file or
drives a test calls in with ``now`` in monotonic seconds.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from playhead.client.track import Counters, PlayerConfig, Track
from playhead.engine.types import ListenerState

_KEPT = 8  # ended utterances whose counters stay readable


class Player:
    """Plays utterances one after the other, in the order of their epochs.

    A report is due at every change of an utterance's state, every ``report_interval`` for the
    one that is playing, and once more when its last sample has been heard.
    """

    def __init__(self, config: PlayerConfig | None = None) -> None:
        self.config = config or PlayerConfig()
        self._tracks: dict[int, Track] = {}
        self._reported: dict[int, _Reported] = {}
        self._paused = False
        self._suspended = False
        self._rolling = False

    def begin(self, epoch: int, now: float) -> None:
        """A new utterance was opened; it plays when those before it are over.

        An epoch that is not newer than all others is dead and is ignored.
        """
        self.advance(now)
        if self._tracks and epoch <= max(self._tracks):
            return
        self._tracks[epoch] = track = Track(epoch, self.config)
        track.hold(self._hold(), now)
        self._forget()
        self.advance(now)

    def add(self, epoch: int, samples: int, final: bool, now: float) -> None:
        """Audio arrived, in order. ``samples`` may be 0; ``final`` ends the utterance."""
        self.begin(epoch, now)
        track = self._tracks.get(epoch)
        if track is not None:
            track.add(samples, final, now)
        self.advance(now)

    def clear(self, now: float, first: int = 0, last: float = math.inf) -> None:
        """Drop unplayed audio of the epochs ``first`` to ``last`` (default: all)."""
        self.advance(now)
        for track in self._tracks.values():
            if first <= track.epoch <= last:
                track.clear(now)

    def start(self, now: float) -> None:
        """The device has begun to play, whatever is buffered, and goes on with what follows."""
        self.advance(now)
        self._rolling = True
        current = self._current()
        if current is not None:
            self._tracks[current].start(now)

    def stop(self, now: float) -> None:
        """The device plays nothing any more; the next utterance waits for it again."""
        self.advance(now)
        self._rolling = False

    def pause(self, now: float) -> None:
        """The user holds playback."""
        self._paused = True
        self._apply_hold(now)

    def resume(self, now: float) -> None:
        """The user lets playback go on."""
        self._paused = False
        self._apply_hold(now)

    def suspend(self, now: float) -> None:
        """The platform holds playback."""
        self._suspended = True
        self._apply_hold(now)

    def wake(self, now: float) -> None:
        """The platform lets playback go on."""
        self._suspended = False
        self._apply_hold(now)

    def advance(self, now: float) -> None:
        """Let playback run up to ``now``; each utterance starts the moment its turn comes."""
        turn = -math.inf
        for track in self._tracks.values():
            track.release(turn)
            if self._rolling:
                track.start(turn)
            track.advance(now)
            if track.ended_at is None:
                return
            turn = max(turn, track.ended_at)

    def next_change(self, now: float) -> float | None:
        """When a state will change by itself (runs dry, drained); None if never."""
        self.advance(now)
        return _earliest(track.next_change() for track in self._tracks.values())

    def counters(self, epoch: int, now: float) -> Counters | None:
        """The counters of an utterance; None when it is unknown or long over."""
        self.advance(now)
        track = self._tracks.get(epoch)
        return None if track is None else track.counters(now)

    def next_report(self, now: float) -> float | None:
        """When :meth:`reports` will have something to say; None while nothing is going on."""
        self.advance(now)
        return _earliest(self._due_at(track, now) for track in self._tracks.values())

    def reports(self, now: float) -> list[Counters]:
        """The reports due at ``now``, each of them once."""
        self.advance(now)
        due = []
        for track in self._tracks.values():
            at = self._due_at(track, now)
            if at is not None and at <= now:
                counters = track.counters(now)
                self._reported[track.epoch] = _Reported(now, counters.state, counters.heard)
                due.append(counters)
        return due

    def report_again(self) -> None:
        """What was reported may not have arrived: every utterance's state is due anew."""
        self._reported.clear()

    def _due_at(self, track: Track, now: float) -> float | None:
        last = self._reported.get(track.epoch, _NEVER)
        counters = track.counters(now)
        if counters.state is not last.state:
            return now
        if track.ended_at is not None:
            drained = counters.state is ListenerState.DRAINED
            return track.settled_at if drained and last.heard < counters.consumed else None
        current = track.epoch == self._current() and counters.received > 0
        beat = last.at + self.config.report_interval if current else None
        return _earliest((track.next_change(), beat))

    def _current(self) -> int | None:
        live = (track.epoch for track in self._tracks.values() if track.ended_at is None)
        return next(live, None)

    def _apply_hold(self, now: float) -> None:
        self.advance(now)
        for track in self._tracks.values():
            track.hold(self._hold(), now)

    def _hold(self) -> ListenerState | None:
        if self._suspended:
            return ListenerState.SUSPENDED
        return ListenerState.PAUSED if self._paused else None

    def _forget(self) -> None:
        ended = [track.epoch for track in self._tracks.values() if track.ended_at is not None]
        for epoch in ended[:-_KEPT]:
            del self._tracks[epoch]
            self._reported.pop(epoch, None)


@dataclass(frozen=True, slots=True)
class _Reported:
    at: float
    state: ListenerState
    heard: int


_NEVER = _Reported(-math.inf, ListenerState.IDLE, 0)


def _earliest(times: Iterable[float | None]) -> float | None:
    return min((at for at in times if at is not None), default=None)
