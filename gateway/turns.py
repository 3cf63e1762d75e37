"""Turns on the event loop for many who have a little to do each, by one callback for all of them.

A callback of its own for each costs some 300 bytes while it waits: when a full house speaks at
once, which it does when it leaves, that is memory which the process keeps.
"""

import asyncio
from collections import deque
from typing import Final, Protocol

SHARE: Final = 16
"""Turns in one go, some 5 ms of reports. After a pause of 100 ms a third of all sessions have a
message waiting, and sound that the lanes have made meanwhile must not wait for all of them."""


class Busy(Protocol):
    """Who has something to do."""

    def turn(self) -> bool:
        """Do a little of it; whether there is more. Raises nothing."""


class Turns:
    """One turn after the other, a few in every round of the loop. Event loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Busy] = deque()
        self._due = False

    def add(self, who: Busy) -> None:
        """A turn for ``who`` after all that wait already."""
        self._waiting.append(who)
        self._arm()

    def _arm(self) -> None:
        if not self._due:
            self._due = True
            self._loop.call_soon(self._round)

    def _round(self) -> None:
        self._due = False
        try:
            for _ in range(min(SHARE, len(self._waiting))):
                who = self._waiting.popleft()
                if who.turn():
                    self._waiting.append(who)
        finally:
            if self._waiting:  # a turn that fails is one's own affair
                self._arm()
