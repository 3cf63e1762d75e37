"""Which sessions exist, which have lately ended, and the secrets that open them again.

Event loop only. What it keeps is bounded (tombstones.py).
"""

import secrets
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from playhead.gateway.session import Tombstone
from playhead.gateway.tombstones import Tombstones


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

    def __init__(self) -> None:
        self._live: dict[str, Host] = {}
        self._stones = Tombstones()

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
        self._stones.add(stone, owner, now)

    def tombstone(self, session: str, owner: str, now: float) -> Tombstone | None:
        """What is remembered of an ended session, if it was ``owner``'s."""
        return self._stones.get(session, owner, now)
