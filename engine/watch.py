"""Which streams must be looked at now, and when the others wake.

A plan should cost what changed, not what exists: a stream whose listener is far enough ahead, or
whose work is all in the lanes, is left alone until its time comes or something happens to it. One
that was looked at and only lacks a free lane waits in that lane's queue, and when the lane is free
no more are woken from there than it may take. One that came when no lane was free that it has use
for was not looked at, so that its turn is not known: it waits on the shelf, and all of those wake.
"""

import math
from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from itertools import count

from playhead.engine.policy import Key
from playhead.engine.stream import Stream
from playhead.engine.types import Lane

Entry = tuple[Key, int, int]
"""Of a lane's queue: the turn, the ticket of this wait, the utterance."""

OUTDATED = 64
"""Entries of waits that are over, beside as many as there are waits, that a queue may hold."""


class Watch:
    """Awake and idle streams. The scheduler touches what changes; a look puts the rest to rest."""

    def __init__(self) -> None:
        self._awake: dict[int, Stream] = {}
        self._idle: dict[int, tuple[float, Stream]] = {}
        self._alarms: list[tuple[float, int]] = []
        self._queues: dict[Lane, list[Entry]] = {lane: [] for lane in Lane}
        self._tickets: dict[int, int] = {}  # of the idle ones that wait for a lane
        self._waits = dict.fromkeys(Lane, 0)
        self._wants: dict[int, frozenset[Lane]] = {}
        self._shelves: dict[frozenset[Lane], dict[int, Stream]] = {}
        self._shelved: dict[int, frozenset[Lane]] = {}
        self._settled: set[int] = set()  # of those that wait: what they want is known
        self._numbers = count()

    def touch(self, stream: Stream) -> None:
        """Something happened to ``stream``: it must be looked at."""
        utterance = stream.request.utterance
        self._rouse(utterance)
        self._awake[utterance] = stream

    def rest(self, stream: Stream, until: float) -> None:
        """Nothing can start for ``stream`` before ``until`` (``inf``: until it is touched)."""
        utterance = stream.request.utterance
        del self._awake[utterance]
        self._idle[utterance] = (until, stream)
        if until < math.inf:
            heappush(self._alarms, (until, utterance))

    def leave(self, stream: Stream, until: float) -> None:
        """``stream`` got what it wanted: nothing more before ``until``."""
        if stream.request.utterance in self._awake:
            self.rest(stream, until)

    def block(
        self,
        stream: Stream,
        lanes: frozenset[Lane],
        key: Key,
        until: float,
        *,
        settled: bool = False,
    ) -> None:
        """``stream`` waits for one of ``lanes``, none of which is free, with the turn ``key``; at
        ``until`` it may want another. ``settled``: until then, or until it is touched, it wants
        this and nothing else."""
        self.rest(stream, until)
        utterance, ticket = stream.request.utterance, next(self._numbers)
        self._tickets[utterance] = ticket
        self._wants[utterance] = lanes
        if settled:
            self._settled.add(utterance)
        for lane in lanes:
            self._waits[lane] += 1
            heappush(self._queues[lane], (key, ticket, utterance))
            self._sweep(lane)

    def shelve(self, stream: Stream, lanes: frozenset[Lane]) -> None:
        """``stream``, awake, has use for ``lanes`` alone, none of which is free: it is not looked
        at before one is."""
        utterance = stream.request.utterance
        self._shelves.setdefault(lanes, {})[utterance] = self._awake.pop(utterance)
        self._shelved[utterance] = lanes

    def release(self, free: Mapping[Lane, int]) -> set[int]:
        """These lanes take so many streams: those who wait, first come the first turns, are awake,
        and all from the shelf. Returns the utterances that still want what they waited for."""
        for lanes in [lanes for lanes in self._shelves if not lanes.isdisjoint(free)]:
            for stream in list(self._shelves[lanes].values()):
                self.touch(stream)
        settled: set[int] = set()
        for lane, room in free.items():
            queue = self._queues[lane]
            while room > 0 and queue:
                _, ticket, utterance = heappop(queue)
                if self._tickets.get(utterance) == ticket:
                    settled |= self._settled & {utterance}
                    self.touch(self._idle[utterance][1])
                    room -= 1
        return settled

    def blocked(self, lane: Lane) -> int:
        """Streams that wait for ``lane``. Of those on the shelf it is not known which codec lane
        they will want: they count for background; for LM if they may want a step."""
        shelves = self._shelves.items()
        return self._waits[lane] + sum(len(s) for lanes, s in shelves if _first(lanes) is lane)

    @property
    def parked(self) -> int:
        """Streams that time alone wakes: their listeners hold enough."""
        return sum(
            until < math.inf and utterance not in self._tickets
            for utterance, (until, _) in self._idle.items()
        )

    def forget(self, stream: Stream) -> None:
        """``stream`` is over."""
        self._rouse(stream.request.utterance)
        self._awake.pop(stream.request.utterance, None)

    def awake(self, now: float) -> list[Stream]:
        """The streams to look at, those whose time has come among them."""
        self.ring(now)
        return list(self._awake.values())

    def ring(self, now: float) -> None:
        """Wake those whose time has come."""
        while self._alarms and self._alarms[0][0] <= now:
            until, utterance = heappop(self._alarms)
            entry = self._idle.get(utterance)
            if entry is not None and entry[0] == until:
                self.touch(entry[1])

    def next_alarm(self) -> float:
        """When the next idle stream wakes by itself; ``inf`` for never."""
        while self._alarms:
            until, utterance = self._alarms[0]
            entry = self._idle.get(utterance)
            if entry is not None and entry[0] == until:
                return until
            heappop(self._alarms)
        return math.inf

    def _rouse(self, utterance: int) -> None:
        self._idle.pop(utterance, None)
        if lanes := self._shelved.pop(utterance, None):
            del self._shelves[lanes][utterance]
        if self._tickets.pop(utterance, None) is not None:
            self._settled.discard(utterance)
            for lane in self._wants.pop(utterance):
                self._waits[lane] -= 1

    def _sweep(self, lane: Lane) -> None:
        """Waits that are over leave their entries behind: drop them before they pile up."""
        queue = self._queues[lane]
        if len(queue) > 2 * self._waits[lane] + OUTDATED:
            queue[:] = [entry for entry in queue if self._tickets.get(entry[2]) == entry[1]]
            heapify(queue)


def _first(lanes: frozenset[Lane]) -> Lane:
    return Lane.LM if Lane.LM in lanes else Lane.BACKGROUND
