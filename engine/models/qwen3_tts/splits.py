"""Which of a few prepared parts of the device the background codec lane decodes on.

Pure: times (seconds) are told. A part that is too small lets streams run dry; one that is larger
than it need be takes multiprocessors from the LM lane. Judged by what was measured lately: how many
seconds of speech are asked of the lane each second against what a part yields when its batches are
full, for what share of the time the lane was at work, and how much slack its chunks had left; and
by how many streams are open, each of which will ask for a second of speech a second: a crowd that
has just come is not heard in what is decoded yet. A stream whose listener has paused counts too:
then the LM lane has less to do as well.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

WHOLE: Final = 0
"""Of a part: all of the device, shared with the other lanes."""
PER_MULTIPROCESSOR: Final = 32.0
"""Seconds of speech that a multiprocessor decodes in a second in full batches: 770 on 24 of one
H200 (docs/benchmarks.md). Where each part starts from; what it then yields is measured."""
MOST_KEPT: Final = 1024
"""Dispatches of a window: it gets shorter where there are more."""


@dataclass(frozen=True, slots=True)
class Rules:
    """When to change. Shares are of what a part yields; seconds.

    A larger part is taken at once when the load exceeds ``full``, or slack falls below ``lean``
    while the lane is at work for more than ``busy`` of the time (else something else is late): the
    smallest on which the load is at most ``aim``. A smaller part, one size at a time, only after
    the load on it would have been at most ``spare`` and slack above ``ample`` for ``stay`` without
    interruption. Who had to return within twice that time waits twice as long the next time, up to
    ``longest``.
    """

    window: float = 1.0
    settle: float = 0.25
    """After a change, until the new part has shown what it does."""
    full: float = 0.85
    aim: float = 0.7
    spare: float = 0.6
    busy: float = 0.6
    lean: float = 0.25
    ample: float = 0.4
    stay: float = 5.0
    longest: float = 60.0


class Done(NamedTuple):
    """A dispatch: when, seconds of speech, the mean slack of its chunks (None: no deadlines), and
    whether its batch was at least half of what the lane takes at once."""

    begin: float
    end: float
    speech: float
    slack: float | None
    full: bool


class Load(NamedTuple):
    """Of a window: seconds of speech per second, share of the time at work, mean slack."""

    demand: float
    busy: float
    slack: float | None


class Window:
    """What was dispatched lately. A dispatch that reaches into the window counts whole, so that
    nothing is walked through: sums are kept."""

    def __init__(self, seconds: float, now: float) -> None:
        self._seconds, self._from = seconds, now
        self._kept: deque[Done] = deque()
        self._speech = self._busy = self._slack = 0.0
        self._slacks = 0

    def restart(self, now: float) -> None:
        """What was before counts no more."""
        self._from = now
        self._kept.clear()
        self._speech = self._busy = self._slack = 0.0
        self._slacks = 0

    def add(self, done: Done) -> None:
        """It is over."""
        self._count(done, 1)
        self._kept.append(done)
        if len(self._kept) > MOST_KEPT:
            self._from = self._kept[0].end
            self._count(self._kept.popleft(), -1)

    def load(self, now: float) -> Load:
        """As of ``now``."""
        since = max(self._from, now - self._seconds)
        while self._kept and self._kept[0].end <= since:
            self._count(self._kept.popleft(), -1)
        if not self._kept or now <= since:
            return Load(0.0, 0.0, None)
        span = now - since
        slack = self._slack / self._slacks if self._slacks else None
        return Load(self._speech / span, min(1.0, self._busy / span), slack)

    def _count(self, done: Done, sign: int) -> None:
        self._speech += sign * done.speech
        self._busy += sign * (done.end - done.begin)
        if done.slack is not None:
            self._slack += sign * done.slack
            self._slacks += sign


class Yields:
    """What each part yields in full batches: in proportion to its size, until it has been seen.

    All of the device, which the LM lane uses too, yields far less for each multiprocessor (some
    1,700 in all at 250 requests a second, 5,700 alone): that says nothing of the parts.
    """

    def __init__(self, sizes: Sequence[int], multiprocessors: int) -> None:
        self._sizes = {size: size or multiprocessors for size in sizes}
        self._seen: dict[int, float] = {}
        self._each = PER_MULTIPROCESSOR

    def note(self, size: int, done: Done) -> None:
        """A dispatch on that part has ended. Only full batches show what it yields at most."""
        if not done.full or done.end <= done.begin:
            return
        rate = done.speech / (done.end - done.begin)
        before = self._seen.get(size, rate)
        self._seen[size] = before + (rate - before) / 16
        if size != WHOLE:
            self._each += (rate / self._sizes[size] - self._each) / 16

    def of(self, size: int) -> float:
        """Seconds of speech per second."""
        return self._seen.get(size, self._each * self._sizes[size])


class Splits:
    """The part in use. One thread at a time; ``choose`` only where nothing is at work on it."""

    def __init__(
        self, sizes: Sequence[int], multiprocessors: int, now: float, rules: Rules | None = None
    ) -> None:
        """``sizes`` of the parts, ascending, and ``WHOLE`` last where it is one of them; the device
        has so many ``multiprocessors``. Begins with the largest: nothing is known yet."""
        self._rules = rules or Rules()
        self._sizes = tuple(sizes)
        self._at = len(self._sizes) - 1
        self._yields = Yields(sizes, multiprocessors)
        self._window = Window(self._rules.window, now)
        self._since = self._calm_since = now
        self._shrunk_at: float | None = None
        self._stay = self._rules.stay
        self.switches = 0
        """Times that another part was taken."""

    @property
    def size(self) -> int:
        """Multiprocessors of the part in use, or ``WHOLE``."""
        return self._sizes[self._at]

    def note(self, done: Done) -> None:
        """A dispatch on the part in use has ended."""
        self._window.add(done)
        self._yields.note(self.size, done)

    def choose(self, now: float, streams: int = 0) -> int:
        """The part for what is dispatched from ``now`` on, when so many ``streams`` are open."""
        load = self._window.load(now)
        load = load._replace(demand=max(load.demand, float(streams)))
        short = self._short(load)
        if not self._calm(load):
            self._calm_since = now
        if now - self._since < self._rules.settle:
            return self.size
        if short and self._at + 1 < len(self._sizes):
            self._grow(load, now)
        elif self._at and now - self._calm_since >= self._stay:
            self._shrunk_at = now
            self._take(self._at - 1, now)
        return self.size

    def _short(self, load: Load) -> bool:
        """Whether streams lose slack for want of multiprocessors."""
        rules = self._rules
        lean = load.slack is not None and load.slack < rules.lean and load.busy > rules.busy
        return lean or load.demand > rules.full * self._yields.of(self.size)

    def _calm(self, load: Load) -> bool:
        """Whether the next smaller part would do."""
        rules = self._rules
        ample = load.slack is None or load.slack >= rules.ample or load.busy <= rules.busy
        smaller = self._sizes[max(0, self._at - 1)]
        return ample and load.demand <= rules.spare * self._yields.of(smaller)

    def _grow(self, load: Load, now: float) -> None:
        """To the smallest larger part that has room, or the largest."""
        if self._shrunk_at is not None and now - self._shrunk_at < 2 * self._stay:
            self._stay = min(2 * self._stay, self._rules.longest)
        else:
            self._stay = self._rules.stay
        larger = range(self._at + 1, len(self._sizes))
        room = (at for at in larger if load.demand <= self._aim(self._sizes[at]))
        self._take(next(room, larger[-1]), now)

    def _aim(self, size: int) -> float:
        return self._rules.aim * self._yields.of(size)

    def _take(self, at: int, now: float) -> None:
        self._at, self._since, self._calm_since = at, now, now
        self._window.restart(now)
        self.switches += 1


def mean_slack(slacks: Sequence[float | None]) -> float | None:
    """Of chunks; None where none has a deadline."""
    known = [slack for slack in slacks if slack is not None]
    return sum(known) / len(known) if known else None
