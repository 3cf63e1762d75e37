"""Turns on the event loop for many who have a little to do each, by one callback for all of them.

A callback of its own for each costs some 300 bytes while it waits: when a full house speaks at
once, which it does when it leaves, that is memory which the process keeps.
"""

import asyncio
from collections import deque
from typing import Final, Protocol

SHARE: Final = 16
"""Short messages in one go, some 5 ms of reports, whosever they are: a go ends once that much has
been done, so what ends it may be longer, up to 17 ms for a message of 64 KiB that is nothing but
lists of numbers. After a pause of 100 ms a third of all sessions have a message waiting, and sound
that the lanes have made meanwhile must not wait for all of them."""


class Busy(Protocol):
    """Who has something to do."""

    def turn(self) -> int:
        """Do a little of it: how much that was, in short messages. Who has more to do asks for
        another turn. Raises nothing."""


class Turns:
    """One turn after the other, a go of them in every round of the loop. Event loop only."""

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
        done = 0
        try:
            for _ in range(len(self._waiting)):  # who joins meanwhile has its turn in the next
                done += max(1, self._waiting.popleft().turn())
                if done >= SHARE:
                    break
        finally:
            self._due = False
            if self._waiting:  # a turn that fails is one's own affair
                self._arm()
