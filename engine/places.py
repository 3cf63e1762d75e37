"""Places of listeners that are cut off: theirs for a while, then whoever's who needs one. Pure.

A cut listener takes nothing of the lanes, but its utterance holds a slot. For ``PLACE_KEPT``
seconds it counts as if it were there. Afterwards it keeps its slot while there is room; in a full
house the one that has been gone longest gives it to a newcomer. Who comes back later than that goes
on if the lanes still have its share.
"""

from collections.abc import Iterable
from typing import Final

from playhead.engine.stream import Stream
from playhead.engine.types import PLACE_KEPT, ListenerState

GIVEN_AWAY: Final = "its listener was cut off and the place was needed"
TAKEN: Final = "others have taken the place while its listener was cut off"


def note_hold(stream: Stream, state: ListenerState | None, now: float) -> None:
    """A listener was frozen, or goes on; remember since when it is cut off."""
    if state is not ListenerState.SUSPENDED:
        stream.away_since = None
    elif stream.away_since is None:
        stream.away_since = now


def gone(stream: Stream, now: float) -> bool:
    """Cut off for so long that nothing is kept for it."""
    return stream.away_since is not None and now - stream.away_since >= PLACE_KEPT


def expendable(stream: Stream, now: float) -> bool:
    """Its slot can be had at once."""
    return gone(stream, now) and not stream.dead and not stream.running


def takes_part(stream: Stream, now: float) -> bool:
    """It takes the lanes' time, or may do so again any moment."""
    if stream.away_since is not None:
        return not gone(stream, now)
    return not stream.playhead.frozen


def longest_gone(streams: Iterable[Stream], now: float) -> Stream | None:
    """Who gives its slot away."""
    found = [stream for stream in streams if expendable(stream, now)]
    return min(found, key=lambda stream: stream.away_since or 0.0, default=None)
