"""When one connection is pinged, and what its pongs tell. Pure; times are monotonic seconds."""

from typing import Final

ROUND_TRIPS: Final = 8
FIRST: Final = 0.05
"""Seconds until the first ping: the network's delay is wanted before the first sound."""
IDLE_FACTOR: Final = 3
"""How much rarer a connection is pinged that nothing was sent to since: its loss costs nobody
anything, and while audio flows the kernel notices by itself (TCP_USER_TIMEOUT)."""


class Pulse:
    """``interval``: seconds between pings of a connection in use; ``timeout``: until its pong."""

    __slots__ = ("_count", "_idle", "_interval", "_next", "_sent", "_timeout", "_told", "_trips")

    def __init__(self, interval: float, timeout: float) -> None:
        self._interval = interval
        self._timeout = timeout
        self._next = 0.0  # when to ping next
        self._sent: float | None = None  # when the ping was sent whose pong is awaited
        self._count = 0
        self._idle = False
        self._trips: tuple[float, ...] = ()
        self._told: float | None = None

    def start(self, now: float) -> None:
        """The connection is open."""
        self._next = now + FIRST

    def speaks(self) -> None:
        """Something was sent: the connection is in use."""
        self._idle = False

    def due(self, now: float) -> float:
        """When to look next."""
        if self._sent is None:
            return self._next
        late = self._sent + self._timeout
        # By the time of the next ping the pong has usually come.
        return min(self._next, late) if self._next > now else late

    def lost(self, now: float) -> bool:
        """Whether a pong is overdue."""
        return self._sent is not None and now - self._sent >= self._timeout

    def ping(self, now: float) -> bytes | None:
        """The payload of a ping that is to be sent now, or None."""
        if self._sent is not None or now < self._next:
            return None
        self._sent = now
        self._count += 1
        steady = self._interval * IDLE_FACTOR if self._idle else self._interval
        self._next = now + min(steady, 8.0 ** min(self._count - 1, 8))
        self._idle = True
        return self._payload

    def pong(self, payload: bytes, now: float) -> float | None:
        """A pong: a new bound of the one-way delay (seconds), or None when it says nothing new.

        Queued audio delays a ping, nothing makes it early: the least of the last ones is the best.
        """
        if self._sent is None or payload != self._payload:
            return None  # a pong that nobody asked for is allowed, and says nothing
        self._trips = (*self._trips[1 - ROUND_TRIPS :], max(0.0, now - self._sent))
        self._sent = None
        one_way = min(self._trips) / 2
        if one_way == self._told:
            return None
        self._told = one_way
        return one_way

    @property
    def _payload(self) -> bytes:
        return self._count.to_bytes(4, "big")
