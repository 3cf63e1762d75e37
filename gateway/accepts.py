"""New connections: how fast one address may open them, and how many may be half open. Pure."""

from collections import OrderedDict
from collections.abc import Iterator
from enum import Enum
from typing import Final, Generic, TypeVar

from playhead.gateway.access_quota import MAX_ACCOUNTS

LEAST_HALF_OPEN: Final = 64


class Pace(Enum):
    """What to do with one more connection of an address."""

    SERVE = "serve"
    REFUSE = "refuse"  # with an answer
    CUT = "cut"  # not even that


class Accepts:
    """``rate`` new connections a second and address, twice as many at once. Times in seconds."""

    def __init__(self, rate: float, *, most: int = MAX_ACCOUNTS) -> None:
        self.rate = rate
        self._burst = 2.0 * rate
        self._most = most
        self._saved: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, when

    def __len__(self) -> int:
        return len(self._saved)

    def arrive(self, key: str, now: float) -> Pace:
        """A connection of an address has come. Refused ones count too, down to a debt of one
        burst: who is turned away and comes again at once has to wait longer."""
        tokens, at = self._saved.pop(key, (self._burst, now))
        tokens = min(self._burst, tokens + max(0.0, now - at) * self.rate) - 1.0
        self._saved[key] = (max(tokens, -self._burst), now)
        if len(self._saved) > self._most:
            self._saved.popitem(last=False)
        if tokens >= 0.0:
            return Pace.SERVE
        return Pace.REFUSE if tokens > -self._burst else Pace.CUT

    def wait(self, key: str) -> float:
        """Seconds until a connection of that address is served again."""
        tokens, _ = self._saved.get(key, (self._burst, 0.0))
        return max(0.0, (1.0 - tokens) / self.rate)


Connection = TypeVar("Connection")


class HalfOpen(Generic[Connection]):
    """Connections whose request has not come, oldest first. An honest one is here for
    milliseconds, so when there are too many the oldest is the one to go."""

    def __init__(self, slots: int) -> None:
        self._most = max(LEAST_HALF_OPEN, slots // 10)
        self._waiting: dict[Connection, None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Connection]:
        """Those there are now."""
        return iter(list(self._waiting))

    def add(self, connection: Connection) -> Connection | None:
        """One more; the one to cut for it, or None."""
        self._waiting[connection] = None
        if len(self._waiting) <= self._most:
            return None
        oldest = next(iter(self._waiting))
        del self._waiting[oldest]
        return oldest

    def discard(self, connection: Connection) -> None:
        """Its request has come, or it has gone."""
        self._waiting.pop(connection, None)
