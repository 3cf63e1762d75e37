"""Where a listener is that never says so, from what its machine has acknowledged. No I/O.

The stream that a client hears is what its machine has received, in order. Assuming that it plays
what it has without a break, the time it runs dry follows Lindley's recursion over the *arrivals*,
``dry = max(dry, arrival) + length``. An open-loop estimate uses the times of sending instead, and
so goes on playing through a network that stands still. Positions are samples at the wire rate,
times seconds.
"""

from collections import deque
from dataclasses import dataclass

from playhead.engine.types import ListenerState, Source
from playhead.gateway.messages import PlaybackReport


@dataclass(slots=True)
class _Part:
    epoch: int
    samples: int
    end: int  # position on the wire after it
    sent_at: float


@dataclass(slots=True)
class _Utterance:
    epoch: int
    sent: int = 0
    received: int = 0
    final: bool = False


class Delivery:
    """One session's stream. ``rate``: wire samples a second; ``threshold``: seconds from the first
    arrival to the first sound."""

    def __init__(self, rate: float, threshold: float = 0.0) -> None:
        self._rate = rate
        self._threshold = threshold
        self._parts: deque[_Part] = deque()  # on their way
        self._utterances: deque[_Utterance] = deque()  # sent, and not yet played
        self._dry_at: float | None = None  # when all that was received has been played
        self._looked_at = 0.0

    @property
    def busy(self) -> bool:
        """Whether something is on its way or still to be played."""
        return bool(self._utterances)

    def on_audio(self, epoch: int, samples: int, end: int, *, final: bool, now: float) -> None:
        """``samples`` of an utterance were sent; ``end``: position on the wire after them."""
        if not self._utterances or self._utterances[-1].epoch != epoch:
            self._utterances.append(_Utterance(epoch))
        utterance = self._utterances[-1]
        utterance.sent += samples
        utterance.final = final
        self._parts.append(_Part(epoch, samples, end, now))

    def on_delivered(self, position: int, now: float) -> None:
        """The peer's machine has everything up to ``position``."""
        while self._parts and self._parts[0].end <= position:
            part = self._parts.popleft()
            self._arrive(part, max(part.sent_at, self._looked_at))
        self._looked_at = now

    def _arrive(self, part: _Part, at: float) -> None:
        for utterance in self._utterances:
            if utterance.epoch == part.epoch:
                utterance.received += part.samples
        start = at + self._threshold if self._dry_at is None else max(self._dry_at, at)
        self._dry_at = start + part.samples / self._rate

    def cut(self, epoch: int, now: float) -> None:
        """An utterance was cut short: what the client holds of it, and of later ones, is gone."""
        left = self._left(now)
        self._parts = deque(part for part in self._parts if part.epoch < epoch)
        while self._utterances and self._utterances[-1].epoch >= epoch:
            left = max(0, left - self._utterances.pop().received)
        self._dry_at = now + left / self._rate if self._utterances else None

    def report(self, now: float) -> PlaybackReport | None:
        """The utterance that plays now, or the last one; None when there is nothing to tell."""
        left = self._left(now)
        told = None
        for utterance in reversed(self._utterances):
            unplayed = min(left, utterance.received)
            left -= unplayed
            if told is None or unplayed or utterance.received < utterance.sent:
                told = (utterance, unplayed)
        self._forget(told[0].epoch if told is not None else 0)
        return None if told is None else _report(*told, now)

    def _left(self, now: float) -> int:
        """Samples received and not yet played."""
        return 0 if self._dry_at is None else max(0, round((self._dry_at - now) * self._rate))

    def _forget(self, before: int) -> None:
        """Utterances that have been played need no telling any more."""
        while self._utterances and self._utterances[0].epoch < before:
            self._utterances.popleft()

    def ended(self, epoch: int) -> None:
        """The session has told that an utterance was played to its end."""
        self._forget(epoch + 1)
        if not self._utterances:
            self._dry_at = None


def _report(utterance: _Utterance, unplayed: int, now: float) -> PlaybackReport:
    played = utterance.received - unplayed
    return PlaybackReport(
        epoch=utterance.epoch,
        received=utterance.received,
        consumed=played,
        heard=played,
        buffered=unplayed,
        state=_state(utterance, unplayed),
        time=now * 1_000,
        source=Source.SOCKET,
    )


def _state(utterance: _Utterance, unplayed: int) -> ListenerState:
    if unplayed:
        return ListenerState.PLAYING
    if utterance.final and utterance.received == utterance.sent:
        return ListenerState.DRAINED
    return ListenerState.STALLED if utterance.received else ListenerState.IDLE
