"""How long to wait between two attempts to reach a server. Pure.

When a server goes, all its clients lose it at the same moment. Were they all to wait equally long,
they would all be back at the same moments too, each time.
"""

from collections.abc import Callable, Iterator
from typing import Final

FIRST: Final = 0.05
LONGEST: Final = 2.0
ASKED: Final = 10.0
"""Longest pause that is made because a server asks for it (``Retry-After``)."""
REACH: Final = 3.0
"""Seconds for the other machine to take the first attempt; twice as long each time."""
SPREAD: Final = 0.25
"""Share by which a pause may be shorter or longer."""


def pauses(draw: Callable[[], float]) -> Iterator[float]:
    """Seconds to wait after each failed attempt, twice as long each time; ``draw`` gives numbers
    from 0 to 1 at random."""
    pause = FIRST
    while True:
        yield pause * (1.0 - SPREAD + 2.0 * SPREAD * draw())
        pause = min(2.0 * pause, LONGEST)


def reaches() -> Iterator[float]:
    """Seconds for the other machine to take each attempt: for its name to be looked up and its
    kernel to answer, neither of which a busy server delays. What takes longer was sent into
    nothing."""
    reach = REACH
    while True:
        yield reach
        reach *= 2.0
