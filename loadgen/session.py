"""What a run needs of a server, whatever it speaks. One file per kind of target implements it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Protocol

from playhead.engine.clock import monotonic
from playhead.gateway.redact import redact
from playhead.loadgen.habits import Caller
from playhead.loadgen.reporting import Link
from playhead.loadgen.turn import Turn

OPEN_TIMEOUT = 10.0
"""Seconds for a session to be ready."""
GRACE = 1.0
"""Seconds after an utterance's deadline, for a socket that takes nothing more."""


class SessionError(Exception):
    """No session came about. ``fault`` names the reason for the record."""

    def __init__(self, fault: str, message: str) -> None:
        self.fault = fault
        self.message = redact(message)  # goes into a file
        super().__init__(self.message)


class Session(Protocol):
    """One connection on which utterances are spoken, one after the other.

    ``offset``: the server's clock minus ours in seconds, measured with ``round_trip``; ``None``
    where the target has no stamps. ``stamped``: arrivals are the kernel's (line.py).
    """

    caller: Caller
    number: int
    turns: int  # spoken so far
    offset: float | None
    round_trip: float | None

    @property
    def stamped(self) -> bool:
        """Known once the session is open."""

    @property
    def link(self) -> Link:
        """What reports on this session need to know."""

    async def speak(self, turn: Turn, deadline: float) -> None:
        """Carry one turn to its end; its record tells how that went. ``deadline`` on our clock."""

    async def close(self) -> None:
        """End it; a socket that is gone is no trouble."""


@contextlib.asynccontextmanager
async def in_time(turn: Turn, deadline: float) -> AsyncIterator[None]:
    """For what carries ``turn``: a little after its ``deadline`` the turn counts as lost."""
    try:
        async with asyncio.timeout(deadline + GRACE - monotonic()):
            yield
    except TimeoutError:
        turn.lost("the socket took nothing more", monotonic(), "timeout")
