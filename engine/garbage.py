"""When garbage is looked for: by hand, once there must be some, and if it can wait in silence.

Whatever ends is freed by its reference count (``tests/reliability/test_no_cycles.py``), so a
collection finds nothing, and takes its time from everybody: even one of the youngest generation
looks at all that was made since the last one and is still there, which is everybody once sessions
have come and gone for a while. So automatic collection is off, and what is looked at instead is
``gc.get_count()[0]``. It goes on counting meanwhile: containers made less containers freed since
the last collection, never below zero (CPython 3.11 to 3.14 alike: ``_PyObject_GC_Link`` and
``PyObject_GC_Del``, in ``Modules/gcmodule.c`` and ``Python/gc.c``). What is more than those who
have come since may hold does not go: cycles, it may be. Only then everything is looked through.

So without a leak there is no pause at all, however many are here. With one, what nobody can reach
is bounded in number, not in bytes, and the pause for it grows with those who are here and with what
has leaked, not with time. Two ways to shorten it were left: to look at the young alone, or to
freeze what is left after a look. What had a name at one look and leaks afterwards would then be
kept for good.
"""

import gc
import logging
from collections.abc import Callable
from typing import Final

from playhead.engine import clock

log: Final = logging.getLogger(__name__)

FLOOR: Final = 50_000
"""Containers that may come and stay without being looked at, whatever they hold. Freed tuples that
Python keeps for their next use are among them, up to 40,000: all that grew in 3,000 utterances."""
EACH: Final = 250
"""Containers that each who has come since may hold besides. Measured: 125 of a session and its
connection, 160 to 220 of one that speaks."""
GUARD: Final = 4
"""While somebody speaks, this many times the floor: a pause is a stall then, yet so is a process
without memory."""


def due(grown: int, come: int, *, speaking: bool) -> bool:
    """Whether to look. ``grown``: containers made and not freed since the last look. ``come``: how
    many more there are than there were then who may hold some (sessions, connections, utterances).
    ``speaking``: somebody would notice."""
    return grown - EACH * come >= FLOOR * (GUARD if speaking else 1)


def settle() -> None:
    """What is here stays, and is never looked at again; nor is anything else but by a
    :class:`Keeper`."""
    gc.disable()
    gc.collect()
    gc.freeze()


class Keeper:
    """Looks for a process's garbage when it is :func:`due`. One thread."""

    def __init__(
        self,
        living: Callable[[], int],
        speaking: Callable[[], bool],
        *,
        now: Callable[[], float] = clock.monotonic,
    ) -> None:
        """``living``: how many are here who may hold containers. ``speaking``: see :func:`due`; it
        is asked when it matters."""
        self._living = living
        self._speaking = speaking
        self._now = now
        self._fewest = 0  # of them since the last look: before it, whatever is here is frozen
        self.looks = 0
        self.freed = 0
        """Containers that nobody could reach."""
        self.longest = 0.0
        """Seconds that the longest look took."""

    @staticmethod
    def grown() -> int:
        """Containers made and not freed since the last look."""
        return gc.get_count()[0]

    def look(self) -> float:
        """Look if it is time to; seconds that it took, 0.0 where it was not."""
        grown, living = self.grown(), self._living()
        # Nobody has gone without what they held being taken off the count, down to nothing: it
        # tells what has come since it was lowest, and so must this.
        self._fewest = min(self._fewest, living)
        come = living - self._fewest
        if not due(grown, come, speaking=False):
            return 0.0
        if not due(grown, come, speaking=self._speaking()):
            return 0.0
        began = self._now()
        found = gc.collect()
        took = self._now() - began
        self._fewest = self._living()
        self.looks += 1
        self.freed += found
        self.longest = max(self.longest, took)
        log.warning(
            "%d containers more than %d who have come may hold: %d were garbage, in %.0f ms",
            grown - EACH * come,
            come,
            found,
            1e3 * took,
        )
        return took
