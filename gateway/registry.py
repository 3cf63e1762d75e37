"""Which sessions exist, which have lately ended, and the secrets that open them again.

Event loop only. What it keeps is bounded: ended sessions are remembered for a time and in
number.
"""

import secrets
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, Generic, Protocol, TypeVar

from playhead.gateway.session import Tombstone

MAX_TOMBSTONES: Final = 10_000


class Identified(Protocol):
    """Anything with the id of a session."""

    @property
    def id(self) -> str:
        """The session's public id."""


Host = TypeVar("Host", bound=Identified)


def new_secret() -> str:
    """128 random bits in URL-safe characters: a session id or a resume token."""
    return secrets.token_urlsafe(16)


class Registry(Generic[Host]):
    """Sessions by id, and tombstones of those that ended."""

    def __init__(self, *, max_tombstones: int = MAX_TOMBSTONES) -> None:
        self._live: dict[str, Host] = {}
        self._stones: OrderedDict[str, tuple[Tombstone, str]] = OrderedDict()
        self._max = max_tombstones

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[Host]:
        """A snapshot: sessions may end while it is walked."""
        return iter(list(self._live.values()))

    def add(self, host: Host) -> None:
        """A session has begun."""
        self._live[host.id] = host

    def get(self, session: str) -> Host | None:
        """The live session of that id."""
        return self._live.get(session)

    def discard(self, session: str) -> None:
        """Forget a session without a trace. Unknown ones are ignored."""
        self._live.pop(session, None)

    def bury(self, stone: Tombstone, owner: str, now: float) -> None:
        """A session of ``owner`` has ended; remember what it still tells, if anything."""
        self._live.pop(stone.session, None)
        if stone.outcome is None:
            return  # it never spoke: its owner hears no more than a stranger would
        self._stones[stone.session] = (stone, owner)
        self._expire(now)

    def tombstone(self, session: str, owner: str, now: float) -> Tombstone | None:
        """What is remembered of an ended session, if it was ``owner``'s."""
        self._expire(now)
        stone, its_owner = self._stones.get(session, (None, owner))
        return stone if its_owner == owner else None

    def _expire(self, now: float) -> None:
        # Every stone is kept equally long, so the first is the one to go.
        while self._stones:
            oldest, _ = next(iter(self._stones.values()))
            if oldest.expires > now and len(self._stones) <= self._max:
                return
            self._stones.popitem(last=False)
