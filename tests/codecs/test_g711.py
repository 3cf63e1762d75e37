"""G.711 against the standard's own tables.

The expected codes are derived here from what tables 1a to 2b of ITU-T G.711 state: the number
and width of the intervals in each segment, outputs at the intervals' middles. No bit arithmetic
is shared with the product.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from playhead.codecs import g711

ALL_SAMPLES = range(-32768, 32768)
# (intervals, width) of the positive segments, in 14-bit (mu-law) and 13-bit (A-law) steps.
MULAW_SEGMENTS = [(1, 1), (15, 2), *((16, 4 << n) for n in range(7))]
ALAW_SEGMENTS = [(32, 2), *((16, 4 << n) for n in range(6))]


def decision_levels(segments: Sequence[tuple[int, int]], scale: int) -> list[int]:
    """Lower edges of the 128 positive intervals, and the upper edge of the last, as 16 bit."""
    edges = [0]
    for intervals, width in segments:
        for _ in range(intervals):
            edges.append(edges[-1] + width)
    return [edge * scale for edge in edges]


MULAW_EDGES = decision_levels(MULAW_SEGMENTS, 4)
ALAW_EDGES = decision_levels(ALAW_SEGMENTS, 8)


def interval(edges: Sequence[int], sample: int) -> int:
    """Which interval a sample's magnitude is in. On an edge, negative samples go inwards."""
    if sample >= 0:
        return min(bisect_right(edges, sample) - 1, 127)
    return min(bisect_left(edges, -sample) - 1, 127)


def mulaw_code(sample: int) -> int:
    return (0xFF if sample >= 0 else 0x7F) - interval(MULAW_EDGES, sample)


def alaw_code(sample: int) -> int:
    return ((0x80 if sample >= 0 else 0x00) | interval(ALAW_EDGES, sample)) ^ 0x55


def as_floats(samples: Sequence[int]) -> np.ndarray:
    return np.array(samples, np.float32) / np.float32(32768)


def test_the_tables_end_where_the_standard_says() -> None:
    assert (len(MULAW_EDGES), MULAW_EDGES[-1]) == (129, 8159 * 4)
    assert (len(ALAW_EDGES), ALAW_EDGES[-1]) == (129, 4096 * 8)


@pytest.mark.parametrize(
    ("pack", "expected"), [(g711.pack_mulaw, mulaw_code), (g711.pack_alaw, alaw_code)]
)
def test_every_sample_gets_the_code_of_its_interval(
    pack: Callable[[np.ndarray], bytes], expected: Callable[[int], int]
) -> None:
    assert pack(as_floats(ALL_SAMPLES)) == bytes(map(expected, ALL_SAMPLES))


def test_every_mulaw_code_decodes_to_the_middle_of_its_interval() -> None:
    middles = [0] + [(a + b) // 2 for a, b in pairwise(MULAW_EDGES[1:])]
    assert g711.unpack_mulaw(bytes(range(0xFF, 0x7F, -1))).tolist() == as_floats(middles).tolist()
    negative = as_floats([-middle for middle in middles])
    assert g711.unpack_mulaw(bytes(range(0x7F, -1, -1))).tolist() == negative.tolist()


def test_every_alaw_code_decodes_to_the_middle_of_its_interval() -> None:
    middles = [(a + b) // 2 for a, b in pairwise(ALAW_EDGES)]
    positive = bytes((0x80 | n) ^ 0x55 for n in range(128))
    assert g711.unpack_alaw(positive).tolist() == as_floats(middles).tolist()
    negative = bytes(n ^ 0x55 for n in range(128))
    assert g711.unpack_alaw(negative).tolist() == as_floats([-m for m in middles]).tolist()


def test_mulaw_literals() -> None:
    samples = [0, 3, 4, 8, -1, -4, -5, 1000, -1000, 8031 * 4, 32767, -32768]
    codes = "ff ff fe fe 7f 7f 7e ce 4e 80 80 00"
    assert g711.pack_mulaw(as_floats(samples)) == bytes.fromhex(codes)
    decoded = g711.unpack_mulaw(bytes.fromhex("ff 7f fe 7e 80 00")) * 32768
    assert decoded.tolist() == [0, 0, 8, -8, 32124, -32124]


def test_alaw_literals() -> None:
    samples = [0, 15, 16, -1, -16, -17, 1000, -1000, 32767, -32768]
    codes = "d5 d5 d4 55 55 54 fa 7a aa 2a"
    assert g711.pack_alaw(as_floats(samples)) == bytes.fromhex(codes)
    decoded = g711.unpack_alaw(bytes.fromhex("d5 55 aa 2a")) * 32768
    assert decoded.tolist() == [8, -8, 32256, -32256]


@pytest.mark.parametrize(
    ("pack", "unpack"),
    [(g711.pack_mulaw, g711.unpack_mulaw), (g711.pack_alaw, g711.unpack_alaw)],
)
def test_a_decoded_code_is_coded_as_itself(
    pack: Callable[[np.ndarray], bytes], unpack: Callable[[bytes], np.ndarray]
) -> None:
    codes = bytes(n for n in range(256) if n != 0x7F or pack is g711.pack_alaw)
    assert pack(unpack(codes)) == codes
    assert unpack(codes).dtype == np.float32
