"""Which streams must be looked at now, and when the others wake.

A plan should cost what changed, not what exists: a stream whose listener is far enough ahead, or
whose work is all in the lanes, is left alone until its time comes or something happens to it, and
one that only lacks a free lane until there is one.
"""

import math
from heapq import heappop, heappush

from playhead.engine.stream import Stream
from playhead.engine.types import Lane


class Watch:
    """Awake and idle streams. The scheduler touches what changes; a look puts the rest to rest."""

    def __init__(self) -> None:
        self._awake: dict[int, Stream] = {}
        self._idle: dict[int, tuple[float, Stream]] = {}
        self._alarms: list[tuple[float, int]] = []
        self._blocked: dict[frozenset[Lane], dict[int, Stream]] = {}
        self._wants: dict[int, frozenset[Lane]] = {}  # of the blocked

    def touch(self, stream: Stream) -> None:
        """Something happened to ``stream``: it must be looked at."""
        utterance = stream.request.utterance
        self._idle.pop(utterance, None)
        self._unblock(utterance)
        self._awake[utterance] = stream

    def rest(self, stream: Stream, until: float) -> None:
        """Nothing can start for ``stream`` before ``until`` (``inf``: until it is touched)."""
        utterance = stream.request.utterance
        del self._awake[utterance]
        self._idle[utterance] = (until, stream)
        if until < math.inf:
            heappush(self._alarms, (until, utterance))

    def block(self, stream: Stream, lanes: frozenset[Lane]) -> None:
        """``stream`` waits for one of ``lanes``, none of which is free."""
        utterance = stream.request.utterance
        del self._awake[utterance]
        self._blocked.setdefault(lanes, {})[utterance] = stream
        self._wants[utterance] = lanes

    def release(self, free: frozenset[Lane]) -> None:
        """These lanes take work: whoever waits for one of them must be looked at."""
        for lanes, streams in self._blocked.items():
            if streams and not lanes.isdisjoint(free):
                for utterance, stream in streams.items():
                    del self._wants[utterance]
                    self._awake[utterance] = stream
                streams.clear()

    def blocked(self, lane: Lane) -> int:
        """Streams that wait for ``lane``."""
        return sum(len(streams) for lanes, streams in self._blocked.items() if lane in lanes)

    @property
    def parked(self) -> int:
        """Streams that time alone wakes: their listeners hold enough."""
        return sum(until < math.inf for until, _ in self._idle.values())

    def forget(self, stream: Stream) -> None:
        """``stream`` is over."""
        self._unblock(stream.request.utterance)
        self._awake.pop(stream.request.utterance, None)
        self._idle.pop(stream.request.utterance, None)

    def awake(self, now: float) -> list[Stream]:
        """The streams to look at, those whose time has come among them."""
        while self._alarms and self._alarms[0][0] <= now:
            until, utterance = heappop(self._alarms)
            entry = self._idle.get(utterance)
            if entry is not None and entry[0] == until:
                self.touch(entry[1])
        return list(self._awake.values())

    def next_alarm(self) -> float:
        """When the next idle stream wakes by itself; ``inf`` for never."""
        while self._alarms:
            until, utterance = self._alarms[0]
            entry = self._idle.get(utterance)
            if entry is not None and entry[0] == until:
                return until
            heappop(self._alarms)
        return math.inf

    def _unblock(self, utterance: int) -> None:
        lanes = self._wants.pop(utterance, None)
        if lanes is not None:
            del self._blocked[lanes][utterance]
