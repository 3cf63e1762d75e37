"""Numbered messages kept until the client acknowledges them, for replay after a cut socket.

Bounded by bytes and by seconds of audio; what is pushed out can no longer be replayed, and a
client that lacks it cannot resume.
"""

from collections import deque
from dataclasses import dataclass

from playhead.gateway.messages import Audio, Cancelled, Failed, NumberedMessage

#: Cost of one message beside its data and texts: a map of a dozen small fields.
OVERHEAD = 256


@dataclass(frozen=True, slots=True)
class _Kept:
    message: NumberedMessage
    size: int
    seconds: float


def weigh(message: NumberedMessage) -> int:
    """Bytes that keeping a message costs, roughly, whatever the encoding."""
    if isinstance(message, Audio):
        return OVERHEAD * (1 + len(message.words)) + len(message.data)
    if isinstance(message, Cancelled | Failed):
        return OVERHEAD + 4 * (len(message.heard_text) + len(message.unheard_text))
    return OVERHEAD


class Outbox:
    """Ring of the messages after ``floor``. ``last``: the highest number given out."""

    def __init__(self, *, most_bytes: int, most_seconds: float) -> None:
        self._most_bytes = most_bytes
        self._most_seconds = most_seconds
        self._kept: deque[_Kept] = deque()
        self._bytes = 0
        self._seconds = 0.0
        self.last = 0
        self.floor = 0

    def add(self, message: NumberedMessage, seconds: float = 0.0) -> None:
        """Keep a message numbered ``last + 1`` that holds ``seconds`` of audio."""
        assert message.seq == self.last + 1, "numbers are given out without gaps"
        self.last = message.seq
        kept = _Kept(message, weigh(message), seconds)
        self._kept.append(kept)
        self._bytes += kept.size
        self._seconds += seconds
        while self._kept and (self._bytes > self._most_bytes or self._seconds > self._most_seconds):
            self._drop_oldest()

    def acknowledge(self, seq: int) -> bool:
        """Forget all up to ``seq``. False: the client claims what was never sent."""
        if seq > self.last:
            return False
        while self.floor < seq:
            self._drop_oldest()
        return True

    def covers(self, seq: int) -> bool:
        """Whether everything after ``seq`` is still here."""
        return self.floor <= seq <= self.last

    def after(self, seq: int) -> list[NumberedMessage]:
        """What a client lacks that has all up to ``seq``; needs ``covers(seq)``."""
        return [kept.message for kept in self._kept if kept.message.seq > seq]

    def clear(self) -> None:
        self.acknowledge(self.last)

    def _drop_oldest(self) -> None:
        gone = self._kept.popleft()
        self.floor = gone.message.seq
        self._bytes -= gone.size
        # An empty ring holds no audio: rounding must not build up over a long session.
        self._seconds = self._seconds - gone.seconds if self._kept else 0.0
