"""How often parts of the model were called operation by operation.

A replayed graph runs none of this code. So whatever is counted once all graphs are captured went
the slow way, a thousand times slower than it looks: the host launches each operation by itself.
"""

import functools
from collections import Counter
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_counts: Counter[str] = Counter()


def counted(part: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Count the calls of a function as calls of ``part``."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **more: P.kwargs) -> R:
            _counts[part] += 1
            return function(*args, **more)

        return call

    return decorate


class Uncaptured:
    """The calls since this was made, of the whole process."""

    def __init__(self) -> None:
        self._before = _counts.copy()

    @property
    def parts(self) -> dict[str, int]:
        """Calls by part, those that were called."""
        return dict(_counts - self._before)

    def __call__(self) -> int:
        """How many."""
        return sum(self.parts.values())
