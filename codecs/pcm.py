"""Linear PCM on the wire: 16-bit integer and 32-bit float, both little-endian.

Full scale is 32768, as in Opus and Web Audio decoders, so integers survive a round trip through
float32 unchanged; +1.0 becomes 32767.
"""

import numpy as np
import numpy.typing as npt

from .base import Pcm, clean

FULL_SCALE = 32768.0


def to_int16(pcm: Pcm) -> npt.NDArray[np.int16]:
    """float32 [n] in -1..1 to int16 [n], rounded to nearest (ties to even)."""
    steps: Pcm = pcm * np.float32(FULL_SCALE)
    np.rint(steps, out=steps)
    np.minimum(steps, np.float32(32767.0), out=steps)
    return steps.astype(np.int16)


def pack_s16le(pcm: Pcm) -> bytes:
    """float32 [n] in -1..1 to 2n bytes."""
    return to_int16(pcm).astype("<i2", copy=False).tobytes()


def unpack_s16le(data: bytes) -> Pcm:
    """2n bytes to float32 [n]."""
    return np.frombuffer(data, "<i2").astype(np.float32) / np.float32(FULL_SCALE)


def pack_f32le(pcm: Pcm) -> bytes:
    """float32 [n] to 4n bytes, bit for bit."""
    return pcm.astype("<f4", copy=False).tobytes()


def unpack_f32le(data: bytes) -> Pcm:
    """4n bytes to float32 [n]. The sender is not trusted: clipped, NaN and infinity become 0."""
    return clean(np.frombuffer(data, "<f4").astype(np.float32))[0]
