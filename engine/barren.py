"""Streams of which the model makes nothing: no frame, no end, and no word that it waits for text.

Steps that come back with nothing are allowed for a while: a model may read a long prompt, or have
many to begin with. Who gets nothing but such steps for :data:`PATIENCE` is ended; after a second
of them it has one only now and then, so that others are not kept from their turns by it. The same
end comes to who has all its text and of whom the model says that there is nothing to step. Pure.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from playhead.engine.events import Fault, broken
from playhead.engine.stream import Stream
from playhead.engine.types import Request, StepResult

PATIENCE: Final = 10.0
"""Seconds without a frame or an end, from the first step that gave neither."""
FEWEST: Final = 32
"""Steps that must have given nothing: where each takes long, seconds alone say little."""
AT_ONCE: Final = 1.0
"""Seconds for which such steps follow each other as fast as they come back."""
PAUSE: Final = 0.1
"""Seconds between two of them from then on."""

NOTHING: Final[Fault] = broken(
    f"the model made neither a sound nor an end of it within {PATIENCE:.0f} s"
)


@dataclass(slots=True)
class _Wait:
    stream: Stream
    since: float
    steps: int = 0  # that gave nothing, in a row
    pausing: bool = False  # it is to be stepped again
    spent: bool = False  # it is to be ended


class Barren:
    """``wake`` is told of a stream that may be stepped again; ``charge`` of the seconds of a lane
    that one had for nothing, since others were as near to their turn."""

    def __init__(
        self, wake: Callable[[Stream], None], charge: Callable[[Request, float], None]
    ) -> None:
        self._wake = wake
        self._charge = charge
        self._waits: dict[int, _Wait] = {}
        self._silent: list[Stream] = []
        self._alarms: list[tuple[float, int]] = []

    def told(self, stream: Stream, *, end: bool) -> None:
        """Text came for ``stream``; ``end``: its last."""
        stream.complete = stream.complete or end
        if _mute(stream):
            self._silent.append(stream)

    def stepped(self, stream: Stream, result: StepResult, took: float, now: float) -> None:
        """A step of ``stream`` that took ``took`` seconds gave ``result``, which it has."""
        waits_for_text = not (stream.steppable or stream.complete)
        if result.frames or stream.ended or waits_for_text:
            self.forget(stream)
            if _mute(stream):  # there were frames, but no end, and none will come
                self._wait(stream, now)
            return
        self._charge(stream.request, took)
        wait = self._wait(stream, now)
        wait.steps += 1
        wait.spent = wait.steps >= FEWEST and now >= wait.since + PATIENCE
        wait.pausing = stream.steppable and now >= wait.since + AT_ONCE
        if wait.pausing:
            stream.steppable = False
            self._ring(wait, now if wait.spent else now + PAUSE)

    def forget(self, stream: Stream) -> None:
        """Nothing is amiss with it any more."""
        self._waits.pop(stream.request.utterance, None)

    def look(self, now: float) -> list[Stream]:
        """Those that are to be ended."""
        for stream in self._silent:
            if _mute(stream):
                self._wait(stream, now)
        self._silent.clear()
        over: list[Stream] = []
        while self._alarms and self._alarms[0][0] <= now:
            utterance = heappop(self._alarms)[1]
            wait = self._waits.get(utterance)
            if wait is not None and self._is_over(wait, now):
                over.append(self._waits.pop(utterance).stream)
        return over

    def next_alarm(self) -> float:
        """When to look again though nothing happens; ``inf`` for never."""
        return self._alarms[0][0] if self._alarms else math.inf

    def _wait(self, stream: Stream, now: float) -> _Wait:
        wait = self._waits.setdefault(stream.request.utterance, _Wait(stream, now))
        if _mute(stream):
            self._ring(wait, wait.since + PATIENCE)
        return wait

    def _ring(self, wait: _Wait, at: float) -> None:
        heappush(self._alarms, (at, wait.stream.request.utterance))

    def _is_over(self, wait: _Wait, now: float) -> bool:
        stream = wait.stream
        if wait.pausing and not (wait.spent or stream.dead):
            wait.pausing, stream.steppable = False, True
            self._wake(stream)
        return not stream.dead and (wait.spent or _is_due(wait, now))


def _is_due(wait: _Wait, now: float) -> bool:
    return _mute(wait.stream) and now >= wait.since + PATIENCE


def _mute(stream: Stream) -> bool:
    """Whether it has all its text and nothing is to be done with it that could make it end."""
    idle = not (stream.steppable or stream.stepping or stream.ended or stream.dead)
    return stream.complete and idle
