"""Where a listener is in one utterance, as far as the session can tell. Wire samples, seconds.

The last report is the truth where there is one. Without any, playback is assumed to start
``threshold`` seconds after the first send and to go on at the declared rate (open loop).
"""

import math

from playhead.engine.types import ListenerState, Source
from playhead.gateway.messages import PlaybackReport

_STILL = (ListenerState.PAUSED, ListenerState.SUSPENDED)


class Playback:
    """``rate``: wire samples per second at which the listener plays."""

    def __init__(self, *, rate: float, threshold: float, fresh: float, quantum: int) -> None:
        self._rate = rate
        self._threshold = threshold
        self._fresh = fresh
        self._quantum = quantum
        self._dry_at: float | None = None  # open loop: when all that was sent is played
        self._held_left: float | None = None  # open loop: seconds left to play, while held
        self._starts_at = -math.inf  # when the utterance before will have been played
        self._moved_at = 0.0  # last send, report or release
        self._reported_at = 0.0
        self.report: PlaybackReport | None = None
        self.sent = 0

    def on_sent(self, samples: int, now: float) -> None:
        seconds = samples / self._rate
        if self._held_left is not None:
            self._held_left += seconds
        elif self._dry_at is None:
            self._dry_at = max(now + self._threshold, self._starts_at) + seconds
        else:
            self._dry_at = max(self._dry_at, now) + seconds
        self.sent += samples
        self._moved_at = now

    def follow(self, before: "Playback", now: float) -> float:
        """Playback starts when ``before`` has been played; seconds until then."""
        ends_at = before.ends_at()
        if ends_at is None or ends_at <= now:
            return 0.0
        self._starts_at = ends_at
        return ends_at - now

    def on_report(self, report: PlaybackReport, now: float) -> None:
        """A checked report (session_report.check)."""
        # What is inferred is told again and again, also when all has been played: that is no
        # movement, and must not put off the end.
        again = self.report is not None and report.consumed == self.report.consumed
        if not (again and report.source is Source.SOCKET):
            self._moved_at = max(self._moved_at, now)
        self.report = report
        self._reported_at = now

    def hold(self, now: float) -> None:
        """Playback stands still from now on: paused, or the socket is gone. Idempotent."""
        if self._held_left is None:
            self._held_left = self._left(now)

    def release(self, now: float) -> None:
        if self._held_left is None:
            return
        self._dry_at = now + self._held_left if self.sent else None
        self._held_left = None
        self._moved_at = now

    def heard(self, now: float) -> tuple[int, bool]:
        """Samples that left the speaker, and whether that is only an estimate."""
        if self.report is None:
            return max(0, self.sent - round(self._left(now) * self._rate)), self.sent > 0
        moving = self.report.state not in (*_STILL, ListenerState.DRAINED)
        stale = now - self._reported_at > self._fresh
        inferred = self.report.source is Source.SOCKET
        heard = self.report.heard
        if self.report.source is Source.MARK and moving:
            # A mark is exact when it comes, and the next one is a piece of sound away.
            heard += round(min(now - self._reported_at, self._fresh) * self._rate)
        return min(heard, self.sent), inferred or (moving and stale)

    def has_ended(self) -> bool:
        """Whether reports say that all of a completely sent utterance has been played."""
        if self.report is None or self.report.source is Source.SOCKET:
            return self.sent == 0
        played = self.report.consumed + self.report.discarded
        drained = self.report.state is ListenerState.DRAINED
        return played >= self.sent - (self._quantum if drained else 0)

    def ends_at(self) -> float | None:
        """When a completely sent utterance will have been played, if nothing more is heard of
        the listener. ``None``: not while it stands still."""
        if self._held_left is not None:
            return None
        if self.report is None:
            return self._dry_at
        if self.report.state in _STILL:
            return None
        left = self.sent - self.report.consumed - self.report.discarded
        return self._moved_at + max(0, left) / self._rate

    def _left(self, now: float) -> float:
        if self._held_left is not None:
            return self._held_left
        return 0.0 if self._dry_at is None else max(0.0, self._dry_at - now)
