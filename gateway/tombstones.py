"""What ended sessions still tell their owners: a few hundred bytes each, in bounded number, size
and time. Pure."""

import hashlib
import struct
from collections import deque
from typing import Final

from playhead.gateway.session_types import Outcome, Tombstone

MOST: Final = 10_000
MOST_BYTES: Final = 16 * 1024 * 1024
"""Of texts: an utterance has up to 20,000 code points, and whoever is about to return wants them
more than whoever did not for minutes."""

_NAME_BYTES: Final = 12
"""Of a hash: that two of 10,000 meet has a chance of 2 ** -70."""
_HEAD: Final = struct.Struct("<d32sIQI")
"""Expiry, digest of the token, epoch, heard samples, code points of the heard text; then comes the
text. A dataclass with its strings and its owner's takes three times as much."""


class Tombstones:
    """The oldest is forgotten first. Times are monotonic seconds."""

    def __init__(self, *, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._packed: dict[bytes, bytes] = {}
        self._order: deque[bytes] = deque()
        self._most, self._most_bytes = most, most_bytes
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._order)

    def add(self, stone: Tombstone, owner: str, now: float) -> None:
        """A session of ``owner`` has ended. Who never spoke leaves nothing: its owner hears no
        more than a stranger would. Needs stones in the order of their expiry."""
        if stone.outcome is not None and stone.expires > now:
            name, packed = _name(stone.session, owner), _pack(stone, stone.outcome)
            self._packed[name] = packed
            self._order.append(name)
            self._bytes += len(packed)
        self._expire(now)

    def get(self, session: str, owner: str, now: float) -> Tombstone | None:
        """What is remembered of an ended session, if it was ``owner``'s."""
        self._expire(now)
        packed = self._packed.get(_name(session, owner))
        return None if packed is None else _unpack(session, packed)

    def _expire(self, now: float) -> None:
        while self._order:
            oldest = self._packed[self._order[0]]
            fits = len(self._order) <= self._most and self._bytes <= self._most_bytes
            if fits and _HEAD.unpack_from(oldest)[0] > now:
                return
            del self._packed[self._order.popleft()]
            self._bytes -= len(oldest)


def _name(session: str, owner: str) -> bytes:
    both = f"{len(owner)} {owner}{session}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(both, digest_size=_NAME_BYTES).digest()


def _pack(stone: Tombstone, outcome: Outcome) -> bytes:
    heard, text = outcome.heard_text, outcome.heard_text + outcome.unheard_text
    head = _HEAD.pack(stone.expires, stone.token_digest, outcome.epoch, outcome.heard, len(heard))
    return head + text.encode("utf-8", "surrogatepass")


def _unpack(session: str, packed: bytes) -> Tombstone:
    expires, token_digest, epoch, heard, cut = _HEAD.unpack_from(packed)
    text = packed[_HEAD.size :].decode("utf-8", "surrogatepass")
    return Tombstone(session, token_digest, Outcome(epoch, heard, text[:cut], text[cut:]), expires)
