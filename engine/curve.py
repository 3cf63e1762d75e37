"""What a lane that works in batches takes, by the size of its batches. Pure.

A batch costs something fixed and something for each stream in it, so a lane that is never idle may
still have room: its batches only have to grow. What counts is what a full batch would yield. The
measure is the *pace* of a batch of ``n`` streams: the lane seconds in which each of them gets a
second of speech. It is a line over ``n``, whatever the frames of a dispatch.

The line's shape is learned from batches of all sizes, each size counting alike however rare it has
become; by how much the machine is slower than the line just now (others share it, its host is
late) is learned from the last second of work, and multiplies it.
"""

from dataclasses import dataclass, field
from typing import Final

RECENT: Final = 1.0
"""Lane seconds over which slowness and the usual batch are averaged (by halves)."""

STEADY: Final = 10.0
"""Lane seconds over which the pace of a size is averaged: what is slow for a moment is no shape."""

ENOUGH: Final = 100
"""Dispatches, of two sizes at least, from which the line is taken to be known."""

GIVEN: Final = 500
"""Dispatches that the line counts for in a size that is new."""

RARE: Final = 4
"""Dispatches of one size that give it half of its weight."""


@dataclass(slots=True)
class Size:
    """Batches of about one size. Means."""

    count: int = 0
    streams: float = 0.0
    pace: float = 0.0

    def add(self, held: float, streams: int, pace: float) -> None:
        """Another one, that took ``held`` lane seconds."""
        self.count += 1
        share = min(1.0, max(1 / self.count, held / STEADY))
        self.streams += (streams - self.streams) * share
        self.pace += (pace - self.pace) * share

    @property
    def weight(self) -> float:
        """How much is known of it, 0 to 1."""
        return self.count / (self.count + RARE)


@dataclass(slots=True)
class Curve:
    """One lane. Tell it of each dispatch; ask what a stream takes."""

    audio: float = 0.0  # seconds of speech made in all
    _sizes: dict[int, Size] = field(default_factory=dict)  # by the batch's bits
    _fixed: float = 0.0  # of the line: pace of an empty batch
    _each: float = 0.0  # and what each stream adds
    _held: float = 0.0  # lane seconds of late
    _speech: float = 0.0  # seconds of speech made in them
    _steps: float = 0.0  # and those divided by the streams of each dispatch
    _streams: float = 0.0  # in the dispatches of late, by lane second
    _fruitless: float = 0.0  # lane seconds of dispatches that made nothing, since one that did

    def add(self, held: float, streams: int, audio: float) -> None:
        """A dispatch of ``streams`` held the lane for ``held`` seconds and made ``audio`` seconds
        of speech, of all of them together."""
        if not (audio > 0.0 and streams):
            self._fruitless += held
            return
        held, self._fruitless = held + self._fruitless, 0.0
        self.audio += audio
        self._held += held
        self._speech += audio
        self._steps += audio / streams
        self._streams += held * streams
        if self._held > RECENT:
            self._held, self._streams = self._held / 2, self._streams / 2
            self._speech, self._steps = self._speech / 2, self._steps / 2
        known = self._known
        size = self._sizes.setdefault(streams.bit_length(), Size())
        if known and not size.count:
            size.count, size.streams, size.pace = GIVEN, streams, self._line(streams)
        size.add(held, streams, held * streams / audio / (self._slowness if known else 1.0))
        self._fit()

    def cost(self, batch: float) -> float:
        """Lane seconds that a second of one stream's speech takes, in batches of ``batch`` streams,
        or as large as they are if that is more. Ask when something was made."""
        batch = max(batch, self._streams / self._held)
        return self._slowness * self._line(batch) / batch

    @property
    def _known(self) -> bool:
        """Whether there is a line to go by. Once there is, a new size begins on it, and what is
        slow just now is taken out of what a size is told: else each slow moment would count as the
        shape of the size that it met."""
        count = sum(size.count for size in self._sizes.values())
        return len(self._sizes) > 1 and count >= ENOUGH

    @property
    def _slowness(self) -> float:
        """Of the machine just now: times what the line says of the work of late."""
        foreseen = self._fixed * self._steps + self._each * self._speech
        return self._held / foreseen if foreseen > 0.0 else 1.0

    def _line(self, streams: float) -> float:
        return self._fixed + self._each * streams

    def _fit(self) -> None:
        """Least squares over the sizes. Nothing is free, and no stream makes others faster."""
        sizes = self._sizes.values()
        weight = sum(size.weight for size in sizes)
        mean = sum(size.weight * size.streams for size in sizes) / weight
        pace = sum(size.weight * size.pace for size in sizes) / weight
        spread = sum(size.weight * (size.streams - mean) ** 2 for size in sizes)
        tilt = sum(size.weight * (size.streams - mean) * (size.pace - pace) for size in sizes)
        slope = tilt / spread if spread > 0.0 else 0.0
        self._each = min(max(slope, 0.0), pace / mean)
        self._fixed = pace - self._each * mean
