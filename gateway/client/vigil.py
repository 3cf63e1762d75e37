"""When a connection that says nothing any more is asked whether it is still there. Pure; times are
monotonic seconds.

A cable that is pulled, or a phone that leaves the house and has another address, closes no socket:
the kernel sends into nothing for many minutes. While something is going on, silence is worth a
question; a session in which nothing happens asks nothing, since its loss costs nobody anything.
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

    def answered(self, now: float) -> None:
        """The other side has answered a question: it is there, which is no use of it."""
        self._alive = now

    def wait(self, now: float) -> float | None:
        """Seconds until it is to be asked, 0 for now; None: not before something is said."""
        if now - self._used >= IN_USE:
            return None
        return max(0.0, self._alive + SILENCE - now)

    def lost(self, asked: float, now: float) -> bool:
        """Whether a question of ``asked`` has had its time and nothing at all has come since. Not
        when ``now`` is much later than that: then this process stood still, and what came
        meanwhile has not been read yet."""
        return self._alive <= asked and PATIENCE <= now - asked < 1.5 * PATIENCE
