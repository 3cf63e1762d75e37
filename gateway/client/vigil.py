"""When a connection that says nothing any more is asked whether it is still there. Pure; times are
monotonic seconds.

A cable that is pulled, or a phone that leaves the house and has another address, closes no socket:
the kernel sends into nothing for many minutes. While an utterance is unfinished, or messages have
just been exchanged, silence is worth a question; a session in which nothing happens asks nothing,
since its loss costs nobody anything.
"""

from typing import Final

SILENCE: Final = 2.0
"""Seconds after which a connection in use is asked. Sound comes oftener while it is spoken."""
PATIENCE: Final = 5.0
"""Seconds that the answer may take, and nothing else come either: half of what a server gives."""
IN_USE: Final = 5.0
"""Seconds since the last message of either side. A player reports more often than that."""


class Vigil:
    """Over one connection."""

    __slots__ = ("_alive", "_used")

    def __init__(self, now: float) -> None:
        self._alive = self._used = now

    def said(self, now: float) -> None:
        """A message goes out."""
        self._used = now

    def heard(self, now: float) -> None:
        """A message has come."""
        self._alive = self._used = now

    def came(self, at: float) -> None:
        """Bytes came at ``at``: the other side is there, which is no use of it."""
        self._alive = max(self._alive, at)

    def wait(self, now: float, awaiting: bool) -> float | None:
        """Seconds until it is to be asked, 0 for now; None: not before something is said.
        ``awaiting``: something is to come, so that it is in use however long nothing is said."""
        if not awaiting and now - self._used >= IN_USE:
            return None
        return max(0.0, self._alive + SILENCE - now)

    def lost(self, asked: float) -> bool:
        """Whether nothing at all has come since ``asked``: not even a part of what the answer to
        the question of that time waits behind."""
        return self._alive <= asked
