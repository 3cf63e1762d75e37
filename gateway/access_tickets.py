"""Tickets: what a browser shows instead of a key. Short-lived, good for one connection. Pure.

A page cannot set headers on a WebSocket, and a key in a page or a URL is a key given away. So
whoever holds the key asks for a ticket and hands that to the page. Times are monotonic seconds.
"""

import secrets
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final

from playhead.gateway.access_keys import TICKET_PREFIX, digest

LIFETIME: Final = 60.0
MAX_PER_KEY: Final = 1_000
MAX_TICKETS: Final = 20_000


@dataclass(frozen=True, slots=True)
class _Ticket:
    owner: str
    expires: float


class Tickets:
    """Tickets that were given out and not yet used, by digest: a leaked memory dump opens nothing.

    The lookup is by hash, whose timing says nothing about a secret of 192 random bits.
    """

    def __init__(self, *, most: int = MAX_TICKETS, most_per_key: int = MAX_PER_KEY) -> None:
        self._open: OrderedDict[bytes, _Ticket] = OrderedDict()
        self._per_key: Counter[str] = Counter()
        self._most = most
        self._most_per_key = most_per_key

    def __len__(self) -> int:
        return len(self._open)

    def give(self, owner: str, now: float) -> str | None:
        """A new ticket of key ``owner``; None: too many are open already."""
        self._expire(now)
        if len(self._open) >= self._most or self._per_key[owner] >= self._most_per_key:
            return None
        text = TICKET_PREFIX + secrets.token_urlsafe(24)
        self._open[digest(text)] = _Ticket(owner, now + LIFETIME)
        self._per_key[owner] += 1
        return text

    def take(self, presented: str, now: float) -> str | None:
        """The id of the key whose ticket this is. It is used up by that."""
        self._expire(now)
        name = digest(presented)
        found = self._open.get(name)
        if found is None:
            return None
        self._drop(name)
        return found.owner

    def _expire(self, now: float) -> None:
        # All live equally long, so the first is the first to go.
        while self._open:
            name, oldest = next(iter(self._open.items()))
            if oldest.expires > now:
                return
            self._drop(name)

    def _drop(self, name: bytes) -> None:
        owner = self._open.pop(name).owner
        self._per_key[owner] -= 1
        if not self._per_key[owner]:
            del self._per_key[owner]
