"""Streaming sample-rate conversion between the model's rate and the wire's.

libsoxr's constant-rate filters work block-wise: at 24 kHz input they keep back up to 38 ms (48
and 16 kHz output) or 71 ms (8 kHz) of audio, and how much changes from call to call. The
listener would hold that much less than was routed to it. Its variable-rate filters, run at a
constant ratio, keep back a constant and short stretch, at similar quality (pass band flat to
0.95 of the lower Nyquist frequency, images and aliases below -115 dB):

    24 -> 48 kHz   10 ms    1.8 ms of CPU per second of audio
    24 -> 16 kHz   10 ms    1.2 ms
    24 ->  8 kHz   25 ms    1.9 ms

When they go down in rate their output is two samples late (the half-band stage is recursive);
those are dropped here, which leaves less than half a sample. The bytes do not depend on how the
input is cut into chunks.
"""

import threading

import numpy as np
import soxr

from .base import EMPTY_PCM, Pcm

LATE_SAMPLES = 2  # output samples by which the filters are late when they go down in rate

# The filters' coefficient tables are global in libsoxr and are filled, without a lock, when the
# first stream is opened.
_opening = threading.Lock()


def scaled(samples: int, from_rate: int, to_rate: int) -> int:
    """Sample count ``samples`` at ``from_rate`` expressed at ``to_rate``, to the nearest."""
    return round(samples * to_rate / from_rate)


class Resampler:
    """Converts one utterance from ``from_rate`` to ``to_rate`` (Hz, different from each other)."""

    def __init__(self, from_rate: int, to_rate: int) -> None:
        self.from_rate = from_rate
        self.to_rate = to_rate
        self._taken = 0
        self._given = 0
        self._late = LATE_SAMPLES if to_rate < from_rate else 0
        with _opening:
            self._stream = soxr.ResampleStream(from_rate, to_rate, 1, dtype="float32", vr=True)

    def push(self, pcm: Pcm) -> Pcm:
        """Take float32 [n]; give what is ready, float32 [m]. ``m`` may be 0: that is no end."""
        if not len(pcm):
            return EMPTY_PCM
        self._taken += len(pcm)
        return self._give(self._stream.resample_chunk(np.ascontiguousarray(pcm)))

    def flush(self) -> Pcm:
        """The rest, so that all output adds up to ``scaled(all input)``. Call once, last."""
        owed = scaled(self._taken, self.from_rate, self.to_rate) - self._given
        # Silence pushes the dropped samples' worth and the rounding out of the filters.
        silence = np.zeros((LATE_SAMPLES + 2) * self.from_rate // self.to_rate + 2, np.float32)
        return self._give(self._stream.resample_chunk(silence, last=True))[:owed]

    def _give(self, pcm: Pcm) -> Pcm:
        dropped = min(self._late, len(pcm))
        self._late -= dropped
        self._given += len(pcm) - dropped
        return pcm[dropped:]
