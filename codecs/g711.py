"""ITU-T G.711 mu-law and A-law (RFC 3551 PCMU and PCMA), by table.

The standard maps 14-bit (mu-law) and 13-bit (A-law) samples to 8 bits: sign, 3-bit segment
number, 4-bit step within the segment. The tables take 16-bit samples, whose surplus low bits
never cross a decision level. A negative sample is coded as its one's complement, as in ITU-T's
own reference software (G.191), so that the two halves mirror each other.
"""

import numpy as np
import numpy.typing as npt

from .base import Pcm
from .pcm import FULL_SCALE, to_int16

MULAW_BIAS = 132  # 33 at 14 bits: makes every segment start at a power of two
MULAW_CLIP = 32767  # largest biased magnitude that still has a code
ALAW_INVERT = 0x55  # A-law sends every other bit inverted
POSITIVE = 0x80

Codes = npt.NDArray[np.uint8]
Levels = npt.NDArray[np.float32]


def _segment(magnitude: npt.NDArray[np.int32], first_bit: int) -> npt.NDArray[np.int32]:
    """How many bits above ``first_bit`` the highest set bit of each magnitude is (at least 0)."""
    above = np.zeros_like(magnitude)
    for bit in range(first_bit + 1, 15):
        above += magnitude >= 1 << bit
    return above


def _samples() -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Every 16-bit pattern read as a signed sample: its sign bit (0x80: positive), magnitude."""
    sample = np.arange(1 << 16, dtype=np.uint16).view(np.int16).astype(np.int32)
    return np.where(sample >= 0, POSITIVE, 0), np.where(sample < 0, ~sample, sample)


def _mulaw_codes() -> Codes:
    """uint8 [65536]: mu-law code of each 16-bit pattern (G.711 tables 2a and 2b)."""
    sign, magnitude = _samples()
    biased = np.minimum(magnitude + MULAW_BIAS, MULAW_CLIP)
    segment = _segment(biased, 7)
    step = (biased >> (segment + 3)) & 0x0F
    inverted = ~(segment << 4 | step) & 0x7F
    return (sign | inverted).astype(np.uint8)


def _alaw_codes() -> Codes:
    """uint8 [65536]: A-law code of each 16-bit pattern (G.711 tables 1a and 1b)."""
    sign, magnitude = _samples()
    segment = _segment(magnitude, 7)
    step = (magnitude >> np.maximum(segment + 3, 4)) & 0x0F
    return ((sign | segment << 4 | step) ^ ALAW_INVERT).astype(np.uint8)


def _mulaw_levels() -> Levels:
    """float32 [256]: the sample that each mu-law code stands for."""
    code = np.arange(256)
    segment, step = ~code >> 4 & 0x07, ~code & 0x0F
    magnitude = ((step << 3) + MULAW_BIAS << segment) - MULAW_BIAS
    return _signed(magnitude, code)


def _alaw_levels() -> Levels:
    """float32 [256]: the sample that each A-law code stands for."""
    code = np.arange(256) ^ ALAW_INVERT
    segment, step = code >> 4 & 0x07, code & 0x0F
    leading_one = np.where(segment > 0, 0x100, 0)
    magnitude = ((step << 4) + 8 + leading_one) << np.maximum(segment - 1, 0)
    return _signed(magnitude, code)


def _signed(magnitude: npt.NDArray[np.int64], code: npt.NDArray[np.int64]) -> Levels:
    signed = np.where(code & POSITIVE, magnitude, -magnitude)
    return (signed / FULL_SCALE).astype(np.float32)


_MULAW_CODES = _mulaw_codes()
_ALAW_CODES = _alaw_codes()
_MULAW_LEVELS = _mulaw_levels()
_ALAW_LEVELS = _alaw_levels()


def pack_mulaw(pcm: Pcm) -> bytes:
    """float32 [n] in -1..1 to n bytes."""
    return _MULAW_CODES[to_int16(pcm).view(np.uint16)].tobytes()


def unpack_mulaw(data: bytes) -> Pcm:
    """n bytes to float32 [n]."""
    return _MULAW_LEVELS[np.frombuffer(data, np.uint8)]


def pack_alaw(pcm: Pcm) -> bytes:
    """float32 [n] in -1..1 to n bytes."""
    return _ALAW_CODES[to_int16(pcm).view(np.uint16)].tobytes()


def unpack_alaw(data: bytes) -> Pcm:
    """n bytes to float32 [n]."""
    return _ALAW_LEVELS[np.frombuffer(data, np.uint8)]
