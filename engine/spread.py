"""When to come again, for many who are sent away at the same moment. Pure.

Were all told the same, all would be back at the same moment. So each is told a little more than the
one before, round and round: multiples of the golden ratio fill an interval evenly, however many
there are (Weyl's sequence), where random numbers leave gaps and heaps.
"""

import itertools
from typing import Final

GOLDEN: Final = 0.6180339887498949


def spread(seconds: float, number: int, share: float = 0.5) -> float:
    """``seconds``, or up to ``share`` longer, for the ``number``-th who is sent away."""
    return seconds * (1.0 + share * (number * GOLDEN % 1.0))


class Spread:
    """The same for those who have no number of their own: each call is for the next of them."""

    def __init__(self, share: float = 0.5) -> None:
        self._share = share
        self._sent_away = itertools.count()

    def __call__(self, seconds: float) -> float:
        """``seconds``, or up to the share longer."""
        return spread(seconds, next(self._sent_away), self._share)
