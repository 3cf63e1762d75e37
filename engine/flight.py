"""What was handed to the network and is not yet known to have arrived."""

from collections import deque
from collections.abc import Iterator

HELD_BACK = 0.060
"""Seconds of audio that a wire codec may keep until more follows (an Opus packet and its
look-ahead, a resampler's tail): sent by us, yet not late."""


class Flight:
    """Send stamps of the audio whose arrival no report has confirmed. Times are seconds, amounts
    samples; ``total`` counts from the utterance's first sample."""

    def __init__(self, sample_rate: int) -> None:
        self.total = 0
        self._held_back = HELD_BACK * sample_rate
        self._confirmed = 0
        self._sent: deque[tuple[float, int]] = deque()  # (send stamp, total after it)

    def add(self, samples: int, now: float) -> None:
        """``samples`` were sent at ``now``."""
        self.total += samples
        self._sent.append((now, self.total))

    def confirm(self, received: int) -> None:
        """The listener has ``received`` samples."""
        self._confirmed = min(received, self.total)
        while self._sent and self._sent[0][1] <= received:
            self._sent.popleft()

    def parts(self) -> Iterator[tuple[int, float]]:
        """What is in flight, in order: samples and when they were sent."""
        done = self._confirmed
        for stamp, total in self._sent:
            yield total - done, stamp
            done = total

    def arrived(self, sent_by: float) -> int:
        """Samples there if all that was sent by that time has arrived."""
        there = self._confirmed
        for stamp, total in self._sent:
            if stamp > sent_by:
                break
            there = total
        return there

    def forget(self, sent_by: float) -> None:
        """Take for granted what was sent by that time, where no report will ever confirm it."""
        while self._sent and self._sent[0][0] <= sent_by:
            self._confirmed = self._sent.popleft()[1]

    def late(self, sent_by: float) -> float:
        """Seconds by which the oldest audio in flight was sent before ``sent_by``, when it should
        have been confirmed by now; 0 where the wire codec may explain it."""
        for stamp, total in self._sent:
            if total > self._confirmed + self._held_back:
                return max(0.0, sent_by - stamp)
        return 0.0
