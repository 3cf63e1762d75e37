"""What a second of speech takes of the lanes, and so how many streams they carry. Pure.

A dispatch costs something fixed and something for each stream in it. On a processor, where several
workers share what comes and batches stay small, a second costs what it was measured to cost of
late. Where one lane makes large batches (an accelerator), what one more stream takes is far less
than one takes alone: capacity is not one over latency. There the fixed part, found by a fit through
the dispatches of late, is shared out among as many streams as a full lane would batch.
"""

from dataclasses import dataclass, field

from playhead.engine.policy import LaneLimits
from playhead.engine.types import Lane

MEMORY = 3.0
"""Lane seconds over which costs are averaged (by halves): the slice of a machine that others leave
changes within seconds, and so must what is promised."""

KNOWN = 10.0
"""Seconds of speech to be made before the cost counts: first chunks are small and dear, and a burst
of them says little of what steady speech takes."""

MOST = 120.0
"""Seconds of speech over which costs are averaged at the most."""

FORGETS = 0.998
"""By what a dispatch makes those before it count less in the fit."""

SPREAD = 0.05
"""Variance of batch sizes, in squares of their mean, below which no fit is tried."""


@dataclass(slots=True)
class Fit:
    """Seconds of a dispatch over the streams in it: least squares, the latest counting most."""

    weight: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0

    def add(self, streams: int, seconds: float) -> None:
        """A dispatch of so many streams took so long."""
        self.weight = FORGETS * self.weight + 1.0
        self.x = FORGETS * self.x + streams
        self.y = FORGETS * self.y + seconds
        self.xx = FORGETS * self.xx + streams * streams
        self.xy = FORGETS * self.xy + streams * seconds

    def each(self, batch: float) -> float:
        """Seconds that each stream of a ``batch`` takes. While all batches were alike, all of a
        dispatch's cost counts as fixed: a busier lane shows it."""
        mean, seconds = self.x / self.weight, self.y / self.weight
        variance = self.xx / self.weight - mean * mean
        slope = 0.0
        if variance > SPREAD * mean * mean:
            slope = (self.xy / self.weight - mean * seconds) / variance
        slope = min(max(slope, 0.0), seconds / mean)
        return (seconds - slope * mean) / batch + slope


@dataclass(slots=True)
class Stage:
    """One stage of the model, backbone or codec: what was made of late, and for what."""

    held: float = 0.0  # lane seconds
    audio: float = 0.0  # seconds of speech
    items: float = 0.0  # streams in all dispatches
    dispatches: float = 0.0
    fit: Fit = field(default_factory=Fit)

    def add(self, held: float, items: int, audio: float) -> None:
        """A dispatch of ``items`` streams held its lane for ``held`` seconds and made ``audio``
        seconds of speech."""
        self.held += held
        self.audio += audio
        self.items += items
        self.dispatches += 1
        if items:
            self.fit.add(items, held)
        if (self.held > MEMORY and self.audio > 2 * KNOWN) or self.audio > MOST:
            self.held, self.audio = self.held / 2, self.audio / 2
            self.items, self.dispatches = self.items / 2, self.dispatches / 2

    def cost(self, batch: float | None) -> float:
        """Lane seconds of a second of speech, as measured, or in batches of ``batch`` streams."""
        measured = self.held / self.audio
        if batch is None or not self.items:
            return measured
        usual = self.items / self.dispatches
        return measured * self.fit.each(max(batch, usual)) / self.fit.each(usual)


class Capacity:
    """What the lanes were measured to need. A rehearsal fills it before there are listeners."""

    def __init__(self, limits: LaneLimits) -> None:
        self._limits = limits
        self._backbone = Stage()
        self._codec = Stage()

    def note(self, lane: Lane, held: float, items: int, audio: float) -> None:
        """A dispatch came back, see :meth:`Stage.add`."""
        stage = self._backbone if lane is Lane.LM else self._codec
        stage.add(held, items, audio)

    @property
    def known(self) -> bool:
        """Whether enough was made to go by."""
        return min(self._backbone.audio, self._codec.audio) >= KNOWN

    @property
    def backbone_part(self) -> float:
        """The backbone's part of what a second of speech takes, 0 while unknown."""
        if not self.known:
            return 0.0
        backbone = self._backbone.cost(None)
        return backbone / (backbone + self._codec.cost(None))

    def cost(self, streams: int) -> float:
        """Lane seconds that a second of speech takes of all workers where ``streams`` speak at a
        time, 0 while unknown. Where a lane is narrower than they are together, it counts as wide as
        they are: that lane is full first."""
        if not self.known:
            return 0.0
        limits = self._limits
        backbone = self._backbone.cost(_batch(limits, Lane.LM, streams))
        codec = self._codec.cost(_batch(limits, Lane.BACKGROUND, streams))
        workers = limits.workers
        return max(
            backbone + codec,
            backbone * workers / limits.slots[Lane.LM],
            codec * workers / limits.slots[Lane.BACKGROUND],
        )


def _batch(limits: LaneLimits, lane: Lane, streams: int) -> float | None:
    """Streams in each dispatch when the lane is full; None where workers share what comes."""
    if limits.slots[lane] > 1 or limits.batch[lane] == 1:
        return None
    return float(min(max(streams, 1), limits.batch[lane]))
