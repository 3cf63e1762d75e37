"""What a second of speech takes of the lanes, and so how many streams they carry. Pure.

On a processor, where several workers share what comes and batches stay small, a second costs what
it was measured to cost of late. Where a lane has one worker that makes large batches (an
accelerator), what one more stream takes is far less than one takes alone: capacity is not one over
latency, nor the time for which the lane is idle. There it is what a full batch would yield
(:mod:`playhead.engine.curve`), and the fullest lane counts.
"""

from dataclasses import dataclass

from playhead.engine.curve import Curve
from playhead.engine.policy import LaneLimits
from playhead.engine.types import Lane

MEMORY = 3.0
"""Lane seconds over which costs are averaged (by halves): the slice of a machine that others leave
changes within seconds, and so must what is promised."""

MOST_HELD = 1.0
"""Seconds of a dispatch that count: whatever takes longer was held up (the machine was suspended, a
process stopped), which says nothing of what speech costs, and would be remembered for minutes."""

KNOWN = 10.0
"""Seconds of speech to be made before the cost counts: first chunks are small and dear, and a burst
of them says little of what steady speech takes."""

MOST = 120.0
"""Seconds of speech over which costs are averaged at the most."""


@dataclass(slots=True)
class Stage:
    """One stage of the model, backbone or codec, on shared workers: what was made of late."""

    held: float = 0.0  # lane seconds
    audio: float = 0.0  # seconds of speech

    def add(self, held: float, audio: float) -> None:
        """A dispatch held its worker for ``held`` seconds and made ``audio`` seconds of speech."""
        self.held += held
        self.audio += audio
        if (self.held > MEMORY and self.audio > 2 * KNOWN) or self.audio > MOST:
            self.held, self.audio = self.held / 2, self.audio / 2

    @property
    def cost(self) -> float:
        """Lane seconds of a second of speech."""
        return self.held / self.audio


class Capacity:
    """What the lanes were measured to need. A rehearsal fills it before there are listeners."""

    def __init__(self, limits: LaneLimits) -> None:
        self._limits = limits
        self._backbone = Stage()
        self._codec = Stage()
        self._curves = {lane: Curve() for lane in Lane if batches(limits, lane)}

    def note(self, lane: Lane, held: float, items: int, audio: float) -> None:
        """A dispatch of ``items`` streams held its place in ``lane`` for ``held`` seconds and made
        ``audio`` seconds of speech."""
        held = min(held, MOST_HELD)
        stage = self._backbone if lane is Lane.LM else self._codec
        stage.add(held, audio)
        if lane in self._curves:
            self._curves[lane].add(held, items, audio)

    @property
    def known(self) -> bool:
        """Whether enough was made to go by."""
        return min(self._backbone.audio, self._codec.audio) >= KNOWN

    @property
    def backbone_part(self) -> float:
        """The backbone's part of what a second of speech takes, 0 while unknown."""
        if not self.known:
            return 0.0
        return self._backbone.cost / (self._backbone.cost + self._codec.cost)

    def cost(self, streams: int) -> float:
        """Lane seconds that a second of speech takes of all workers where ``streams`` speak at a
        time, 0 while unknown. Where a lane is narrower than they are together, it counts as wide as
        they are: that lane is full first."""
        if not self.known:
            return 0.0
        limits = self._limits
        backbone = self._cost(self._backbone, (Lane.LM,), streams)
        codec = self._cost(self._codec, (Lane.BACKGROUND, Lane.URGENT), streams)
        workers = limits.workers
        return max(
            backbone + codec,
            backbone * workers / limits.slots[Lane.LM],
            codec * workers / limits.slots[Lane.BACKGROUND],
        )

    def urgent(self, streams: int) -> float:
        """Lane seconds that a second of urgent speech takes of its lane where ``streams`` need it,
        0 while unknown, and where workers share what comes."""
        curve = self._curves.get(Lane.URGENT)
        if curve is None or not self.known or not curve.audio:
            return 0.0
        return curve.cost(min(max(streams, 1), self._limits.batch[Lane.URGENT]))

    def _cost(self, stage: Stage, lanes: tuple[Lane, ...], streams: int) -> float:
        """Of one stage: in full batches of the first of its lanes that has done something. The
        urgent lane is left out of the promise while the other one works: it is for bursts."""
        for lane in lanes:
            curve = self._curves.get(lane)
            if curve is not None and curve.audio > 0.0:
                return curve.cost(min(max(streams, 1), self._limits.batch[lane]))
        return stage.cost


def batches(limits: LaneLimits, lane: Lane) -> bool:
    """Whether ``lane`` makes batches that grow with the load: no other worker takes part of it."""
    return limits.slots[lane] == 1 and limits.batch[lane] > 1
