"""Streams of which the model makes nothing: no frame, no end, and no word that it waits for text.

Steps that come back with nothing are allowed for a while. Who gets nothing but such steps for
:data:`PATIENCE` is ended; after a second of them it has one only now and then, so that others are
not kept from their turns by it. The same end comes to who has all its text and of whom the model
says that there is nothing to step. Where the model says that it is reading the prompt, or those of
others before, a stream may wait as long as prompts get read. Seconds are watched ones: those in
which this process was stopped, or starved of the processor, are nobody's fault here. Pure.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from playhead.engine.events import Fault, broken
from playhead.engine.stream import Stream
from playhead.engine.types import Request, StepResult
from playhead.engine.watchdog import Watched

PATIENCE: Final = 10.0
"""Seconds without a frame or an end, from the first step that gave neither."""
FEWEST: Final = 32
"""Steps that must have given nothing: where each takes long, seconds alone say little."""
AT_ONCE: Final = 1.0
"""Seconds for which such steps follow each other as fast as they come back."""
PAUSE: Final = 0.1
"""Seconds between two of them from then on."""
QUEUE: Final = 60.0
"""Seconds of waiting in which nobody who waits for his prompt gets as far as a frame or an end."""
TICK: Final = 0.5
"""Seconds between two looks at who is to be ended; one look adds twice that at the most."""

NOTHING: Final[Fault] = broken(
    f"the model made neither a sound nor an end of it within {PATIENCE:.0f} s"
)
UNREAD: Final[Fault] = broken(f"the model has come to the end of no prompt for {QUEUE:.0f} s")


@dataclass(slots=True)
class _Wait:
    stream: Stream
    since: float  # on the watched clock
    steps: int = 0  # that gave nothing, in a row
    again: float | None = None  # when it is to be stepped again


class Barren:
    """``wake`` is told of a stream that may be stepped again; ``charge`` of the seconds of a lane
    that one had for nothing, since others were as near to their turn."""

    def __init__(
        self, wake: Callable[[Stream], None], charge: Callable[[Request, float], None]
    ) -> None:
        self._wake = wake
        self._charge = charge
        self._watched = Watched(2 * TICK)
        self._waits: dict[int, _Wait] = {}
        self._queued: dict[int, tuple[Stream, float]] = {}  # since when, watched
        self._read = -math.inf  # when one of them last got something, watched
        self._silent: list[Stream] = []
        self._spent: list[Stream] = []
        self._alarms: list[tuple[float, int]] = []
        self._next = -math.inf  # look at all

    def told(self, stream: Stream, *, end: bool) -> None:
        """The model has taken text of ``stream``; ``end``: its last."""
        stream.complete = stream.complete or end
        if _mute(stream):
            self._silent.append(stream)
            return
        wait = self._waits.get(stream.request.utterance)
        if wait is not None and not wait.steps:
            self.forget(stream)

    def stepped(self, stream: Stream, result: StepResult, took: float, now: float) -> None:
        """A step of ``stream`` that took ``took`` seconds gave ``result``, which it has."""
        seconds = self._watched.look(now)
        waits_for_text = not (stream.steppable or stream.complete)
        if result.frames or stream.ended or waits_for_text:
            if stream.request.utterance in self._queued:
                self._read = seconds
            self.forget(stream)
            if _mute(stream):  # there were frames, but no end, and none will come
                self._wait(stream, seconds)
        elif result.waiting and stream.steppable:
            self._queued.setdefault(stream.request.utterance, (stream, seconds))
        else:
            self._charge(stream.request, took)
            self._queued.pop(stream.request.utterance, None)
            self._barren(stream, seconds, now)

    def forget(self, stream: Stream) -> None:
        """Nothing is amiss with it any more."""
        self._waits.pop(stream.request.utterance, None)
        self._queued.pop(stream.request.utterance, None)

    def look(self, now: float) -> list[tuple[Stream, Fault]]:
        """Those that are to be ended, and why."""
        seconds = self._watched.look(now)
        for stream in self._silent:
            if _mute(stream):
                self._wait(stream, seconds)
        self._silent.clear()
        self._ring(now)
        over = [(stream, NOTHING) for stream in self._spent]
        self._spent.clear()
        if now >= self._next:
            self._next = now + TICK
            over += self._due(seconds)
        for stream, _ in over:
            self.forget(stream)
        return [(stream, why) for stream, why in over if not stream.dead]

    def next_alarm(self) -> float:
        """When to look again though nothing happens; ``inf`` for never."""
        while self._alarms and not self._rings(*self._alarms[0]):
            heappop(self._alarms)
        again = self._alarms[0][0] if self._alarms else math.inf
        return min(again, self._next) if self._waits or self._queued else again

    def _wait(self, stream: Stream, seconds: float) -> _Wait:
        return self._waits.setdefault(stream.request.utterance, _Wait(stream, seconds))

    def _barren(self, stream: Stream, seconds: float, now: float) -> None:
        wait = self._wait(stream, seconds)
        wait.steps += 1
        if wait.steps >= FEWEST and seconds >= wait.since + PATIENCE:
            self._spent.append(stream)
        elif stream.steppable and seconds >= wait.since + AT_ONCE:
            stream.steppable, wait.again = False, now + PAUSE
            heappush(self._alarms, (wait.again, stream.request.utterance))

    def _rings(self, at: float, utterance: int) -> bool:
        wait = self._waits.get(utterance)
        return wait is not None and wait.again == at and not wait.stream.dead

    def _ring(self, now: float) -> None:
        """Those whose pause is over may be stepped."""
        while self._alarms and self._alarms[0][0] <= now:
            at, utterance = heappop(self._alarms)
            if self._rings(at, utterance):
                wait = self._waits[utterance]
                wait.again, wait.stream.steppable = None, True
                self._wake(wait.stream)

    def _due(self, seconds: float) -> list[tuple[Stream, Fault]]:
        waits = [wait for wait in self._waits.values() if seconds >= wait.since + PATIENCE]
        over = [(w.stream, NOTHING) for w in waits if w.again is None and _mute(w.stream)]
        if seconds < self._read + QUEUE:
            return over
        queued = self._queued.values()
        return over + [(s, UNREAD) for s, since in queued if seconds >= since + QUEUE]


def _mute(stream: Stream) -> bool:
    """Whether it has all its text and nothing is to be done with it that could make it end."""
    idle = not (stream.steppable or stream.stepping or stream.ended or stream.dead)
    return stream.complete and idle
