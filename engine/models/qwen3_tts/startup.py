"""Start-up on a device, bounded in memory and in time: what fits is worked out before anything is
loaded, and what is captured gets less when it does not fit or takes too long.

Pure: the device is in the hands of the caller.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from playhead.engine.models.qwen3_tts.config import CodecDecoderConfig, TalkerConfig

Plan = TypeVar("Plan")
Made = TypeVar("Made")
GIB = 1 << 30
CAPTURE_ROOM = 4 * GIB
"""Bytes for captured graphs and libraries' workspaces; fewer graphs need less."""
CAPTURE_LIMIT = 300.0
"""Seconds after which fewer graphs are captured: usual are some tens."""
RING_SLACK = 32
"""Columns of a codec slot's keys beyond its window: the longest chunk, rounded up."""
HISTORY = 1.15
"""A codec slot with its convolutions' histories, against its keys and values alone."""


class TooLarge(ValueError):
    """The slots do not fit the device; the message says how many would."""


class TooSlow(RuntimeError):
    """Capturing has taken longer than its limit."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Bytes: of the weights, and of one stream by positions of context."""

    weights: int
    fixed: int  # of a slot, whatever its context
    position: int  # of a slot, for each position

    def slot(self, positions: int) -> int:
        """Bytes of a slot with that much context."""
        return self.fixed + positions * self.position


def needs(
    talker: TalkerConfig, codec: CodecDecoderConfig, weights: int, itemsize: int = 2
) -> Needs:
    """What ``slots.SlotTable`` and the codec's arena take of a device, to a few percent.
    ``weights``: elements; ``itemsize``: bytes of an element."""
    keys = 2 * talker.layers * talker.kv_heads * talker.head_dim * itemsize
    numbers = 8 * talker.code_groups
    ring = 2 * codec.layers * (codec.window + RING_SLACK) * codec.kv_heads * codec.head_dim
    return Needs(
        weights=weights * itemsize,
        fixed=round(HISTORY * ring * itemsize) + talker.hidden * itemsize + talker.vocab,
        position=keys + numbers,
    )


def check_fits(need: Needs, slots: int, positions: int, free: int) -> None:
    """Raises :class:`TooLarge` when ``slots`` of ``positions`` do not fit ``free`` bytes beside the
    weights and ``CAPTURE_ROOM``."""
    left = free - need.weights - CAPTURE_ROOM
    wanted = slots * need.slot(positions)
    if wanted <= left:
        return
    most = max(0, left // need.slot(positions))
    context = max(0, (left // slots - need.fixed) // need.position)
    raise TooLarge(
        f"{slots} streams with {positions} positions of context take {wanted / GIB:.1f} GiB, and "
        f"{max(0, left) / GIB:.1f} of {free / GIB:.1f} GiB are left beside weights and graphs: "
        f"{most} streams would fit, or {context} positions"
    )


def thinner(sizes: Sequence[int]) -> tuple[int, ...]:
    """About half of the sizes, ascending: the largest always, since every smaller batch fits in
    it, and the smallest, which serves who is alone."""
    ordered = sorted(sizes)
    kept = {ordered[0], *ordered[::-1][::2]}
    return tuple(sorted(kept)) if len(kept) < len(ordered) else tuple(ordered[-1:])


class Capture:
    """Tells how capturing goes on, and ends it when it takes too long.

    ``tell`` gets a line for each thing captured, ``waiting`` a call. Without ``limit`` it may take
    what it takes.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        tell: Callable[[str], None],
        limit: float | None = CAPTURE_LIMIT,
        waiting: Callable[[], None] = lambda: None,
    ) -> None:
        self._clock, self._tell, self._limit, self._waiting = clock, tell, limit, waiting
        self._started = clock()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return self._clock() - self._started

    def done(self, what: str) -> None:
        """``what`` has been captured. Raises :class:`TooSlow` beyond the limit."""
        self._tell(f"captured {what} ({self.seconds:.1f} s)")
        self._waiting()
        if self._limit is not None and self.seconds > self._limit:
            raise TooSlow(f"capturing has taken {self.seconds:.0f} s, at most {self._limit:g}")


@dataclass(frozen=True, slots=True)
class Fallback:
    """What may go wrong with a plan so that a smaller one may work, and how to clean up after it
    (nothing of the failed attempt is referred to any more by then)."""

    faults: tuple[type[Exception], ...]
    release: Callable[[], None]
    tell: Callable[[str], None]


def make_largest(
    make: Callable[[Plan, bool], Made], plans: Sequence[Plan], fallback: Fallback
) -> Made:
    """What ``make`` gives for the first of ``plans`` that works, the largest first. Its second
    argument says that nothing smaller is left. Raises the last plan's fault, and any other than
    ``fallback.faults`` at once."""
    *larger, smallest = plans
    for plan in larger:
        made = _attempt(make, plan, fallback)
        if made is not None:
            return made
        fallback.release()
    return make(smallest, True)


def _attempt(make: Callable[[Plan, bool], Made], plan: Plan, fallback: Fallback) -> Made | None:
    """None after a fault, whose traceback, which holds on to what was made, is gone with it."""
    try:
        return make(plan, False)
    except fallback.faults as fault:
        why = str(fault).partition("\n")[0]
        fallback.tell(f"{type(fault).__name__}: {why}; trying again with fewer graphs")
        return None
