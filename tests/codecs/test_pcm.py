"""Linear PCM against literal bytes."""

import numpy as np
from playhead.codecs import pcm


def test_s16le_vectors() -> None:
    values = np.array([0.0, 0.5, -0.5, 1.0, -1.0, 1 / 32768, -1 / 32768], np.float32)
    assert pcm.pack_s16le(values) == bytes.fromhex("0000 0040 00c0 ff7f 0080 0100 ffff")


def test_s16le_rounds_to_nearest_ties_to_even() -> None:
    steps = np.array([0.5, 1.5, -0.5, -1.5, 0.49, 0.51, 32767.4], np.float32)
    assert pcm.to_int16(steps / np.float32(32768)).tolist() == [0, 2, 0, -2, 0, 1, 32767]


def test_every_16_bit_sample_survives_a_round_trip() -> None:
    samples = np.arange(-32768, 32768).astype("<i2").tobytes()
    floats = pcm.unpack_s16le(samples)
    assert floats.dtype == np.float32
    assert floats.min() == -1.0
    assert floats.max() < 1.0
    assert pcm.pack_s16le(floats) == samples


def test_f32le_vectors_are_bit_exact() -> None:
    values = np.array([0.0, -0.0, 1.0, -1.0, 0.1], np.float32)
    data = bytes.fromhex("00000000 00000080 0000803f 000080bf cdcccc3d")
    assert pcm.pack_f32le(values) == data
    assert pcm.pack_f32le(pcm.unpack_f32le(data)) == data


def test_f32le_from_a_broken_sender_does_not_reach_a_speaker() -> None:
    data = np.array([np.nan, np.inf, 3.0, 0.5], "<f4").tobytes()
    assert pcm.unpack_f32le(data).tolist() == [0.0, 0.0, 1.0, 0.5]
