"""Heads of WAV streams, in any division into pieces."""

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playhead.loadgen.wav_head import NoWav, WavHead

ENDLESS = 0xFFFFFFFF


def wav(*chunks: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", ENDLESS) + b"WAVE" + b"".join(chunks)


def part(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def fmt(kind: int = 1, channels: int = 1, rate: int = 24_000, bits: int = 16) -> bytes:
    align = channels * bits // 8
    return part(b"fmt ", struct.pack("<HHIIHH", kind, channels, rate, rate * align, align, bits))


DATA = b"data" + struct.pack("<I", 0)
GOOD = wav(part(b"LIST", b"odd"), fmt(), DATA) + b"\1\2\3\4"


@given(st.lists(st.integers(1, len(GOOD) - 1), max_size=6))
def test_the_samples_behind_it_come_through(cuts: list[int]) -> None:
    head = WavHead()
    edges = sorted({0, *cuts, len(GOOD)})
    pieces = [GOOD[a:b] for a, b in pairwise(edges)]
    assert b"".join(head.feed(piece) for piece in pieces) + head.feed(b"\5\6") == bytes(range(1, 7))
    assert head.rate == 24_000


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\0" * 12, "does not begin a WAV stream"),
        (b"RIFF\0\0\0\0AVI ", "does not begin a WAV stream"),
        (wav(DATA), "its data comes before its format"),
        (wav(part(b"fmt ", b"\1\0")), "its format has 2 bytes"),
        (wav(fmt(kind=3, bits=32)), "format 3, 1 channels of 32 bits at 24000 Hz"),
        (wav(fmt(channels=2)), "2 channels"),
        (wav(fmt(rate=0)), "at 0 Hz"),
        (wav(b"LIST", struct.pack("<I", 100_000), b"x" * 5_000), "its head does not end"),
    ],
)
def test_what_is_no_stream_of_16_bit_mono_is_said(data: bytes, says: str) -> None:
    with pytest.raises(NoWav, match=says):
        WavHead().feed(data)
