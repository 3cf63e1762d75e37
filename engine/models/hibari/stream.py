"""One segment as a stream of audio: latents in, any number of frames at a time out."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from playhead.engine.models.hibari.shape import BINS, HOP
from playhead.engine.models.hibari.spectra import LatentSource, SpectrumDecoder
from playhead.engine.models.hibari.vocoder import (
    AHEAD,
    PulseTrain,
    Voicing,
    excite,
    overlap_add,
    render,
)
from playhead.engine.types import Pcm

Floats = npt.NDArray[np.float32]
FADE = 60
"""Samples (2.5 ms) over which a segment fades in and out where its silence was cut."""
_RISE = (0.5 - 0.5 * np.cos(np.pi * (np.arange(FADE) + 0.5) / FADE)).astype(np.float32)


class SegmentStream:
    """Decodes frames [start, stop) of a segment, in order. Not thread-shared.

    ``latents`` float32 [F, 130], ``f0`` float32 [F] in Hz. The same ``seed`` gives the same
    samples for any division into chunks.
    """

    def __init__(
        self, latents: Floats, f0: Floats, start: int, stop: int, seed: Sequence[int]
    ) -> None:
        front = start - 1  # its window still reaches into the first frame
        random = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed)))
        self._source = LatentSource.of(latents, front)
        self._voicing = Voicing(PulseTrain(f0), random, len(latents), front)
        self._start = start
        self._next = start
        self._stop = stop

    @property
    def remaining(self) -> int:
        """Frames not yet decoded."""
        return self._stop - self._next

    def needed(self, frames: int) -> int:
        """Spectra to compute for the next ``frames`` frames. Streams batch when this is equal."""
        return self._next + frames + AHEAD - self._source.front

    @staticmethod
    def decode(
        decoder: SpectrumDecoder, streams: Sequence["SegmentStream"], frames: int
    ) -> list[Pcm]:
        """Next ``frames`` frames of each stream: float32 [frames * 300] each.

        The streams must agree in ``needed(frames)``. Raises ValueError past a segment's end.
        """
        if frames < 1 or any(frames > stream.remaining for stream in streams):
            left = min(stream.remaining for stream in streams)
            raise ValueError(f"{frames} frames asked of a segment that has {left} left")
        count = streams[0].needed(frames)
        parts = decoder.advance([stream._source for stream in streams], count)
        return [
            stream._sound([part[row, :, :BINS] for part in parts], count)
            for row, stream in enumerate(streams)
        ]

    def _sound(self, parts: list[Floats], count: int) -> Pcm:
        # Per stream, although one transform could take all: SIMD groups its rows, so that the
        # last bits of a row would depend on how many there are.
        return self._finish(render(*excite(self._voicing, count), parts))

    def _finish(self, fresh: Floats) -> Pcm:
        out = overlap_add(self._voicing, fresh)
        if self._next == self._start:
            out[0, :FADE] *= _RISE
        self._next += len(out)
        if self._next == self._stop:
            out[-1, HOP - FADE :] *= _RISE[::-1]
        return out.reshape(-1)
