"""When to come again, for many who are sent away at the same moment. Pure.

Were all told the same, all would be back at the same moment. So each is told a little more than the
one before, round and round: multiples of the golden ratio fill an interval evenly, however many
there are (Weyl's sequence), where random numbers leave gaps and heaps.
"""

from typing import Final

GOLDEN: Final = 0.6180339887498949


def spread(seconds: float, number: int, share: float = 0.5) -> float:
    """``seconds``, or up to ``share`` longer, for the ``number``-th who is sent away."""
    return seconds * (1.0 + share * (number * GOLDEN % 1.0))
