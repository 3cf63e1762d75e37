"""How many frames one connection may send, whatever is in them. Pure; times are monotonic seconds.

What a message costs beyond being a frame is the session's matter (``session_budget``).
"""

from typing import Final

from playhead.gateway.limits import Limits
from playhead.gateway.session_budget import TokenBucket

CONTROL_RATE: Final = 20.0
CONTROL_BURST: Final = 40.0
"""Pings and pongs a second, and at once: an honest client sends one in seconds."""
MOST_FRAGMENTS: Final = 64
"""Frames of one message. Clients that split do so by their own buffer, of kilobytes."""
_LIMITS: Final = Limits()


class FrameBudget:
    """Counts the frames of one connection."""

    __slots__ = ("_control", "_data", "_fragments")

    def __init__(self) -> None:
        self._control = TokenBucket(CONTROL_RATE, CONTROL_BURST)
        self._data = TokenBucket(_LIMITS.frame_rate, _LIMITS.frame_burst)
        self._fragments = 0

    def control(self, now: float) -> str | None:
        """A ping or pong came: why that is one too many, or None."""
        return None if self._control.take(now) else "control_flood"

    def data(self, now: float, *, final: bool) -> str | None:
        """A frame of a message came, ``final`` the last of it: what is wrong with that, or None."""
        self._fragments += 1
        if self._fragments > MOST_FRAGMENTS:
            return "too_many_fragments"
        if final:
            self._fragments = 0
        return None if self._data.take(now) else "message_flood"
