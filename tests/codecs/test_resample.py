"""The streaming resampler: exact totals, independence of chunking, alignment, delay."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playhead.codecs.resample import Resampler, scaled

WIRE_PAIRS = [(24000, 8000), (24000, 16000), (24000, 48000)]
OTHER_PAIRS = [
    (16000, 8000), (16000, 24000), (16000, 48000), (22050, 8000), (22050, 16000),
    (22050, 24000), (44100, 24000), (44100, 48000), (48000, 8000), (48000, 24000),
]  # fmt: skip
LENGTHS = [0, 1, 2, 3, 119, 479, 480, 481, 1919, 1920, 24001]


def noise(samples: int) -> np.ndarray:
    return np.random.default_rng(7).uniform(-0.5, 0.5, samples).astype(np.float32)


def resample(pcm: np.ndarray, from_rate: int, to_rate: int, cuts: list[int]) -> np.ndarray:
    resampler = Resampler(from_rate, to_rate)
    pieces = [resampler.push(piece) for piece in np.split(pcm, cuts)]
    return np.concatenate([*pieces, resampler.flush()])


def test_counts_are_scaled_to_the_nearest() -> None:
    assert scaled(24001, 24000, 8000) == 8000
    assert scaled(24002, 24000, 8000) == 8001
    assert scaled(1, 24000, 48000) == 2
    assert scaled(0, 24000, 8000) == 0


@pytest.mark.parametrize(("from_rate", "to_rate"), WIRE_PAIRS + OTHER_PAIRS)
def test_totals_are_exact(from_rate: int, to_rate: int) -> None:
    for length in LENGTHS:
        out = resample(noise(length), from_rate, to_rate, [])
        assert out.dtype == np.float32
        assert len(out) == round(length * to_rate / from_rate), length


@pytest.mark.parametrize(("from_rate", "to_rate"), WIRE_PAIRS)
def test_an_empty_return_is_no_end(from_rate: int, to_rate: int) -> None:
    pcm = noise(4000)
    resampler = Resampler(from_rate, to_rate)
    first = resampler.push(pcm[:5])
    nothing = resampler.push(pcm[:0])
    assert (len(first), len(nothing)) == (0, 0)
    rest = np.concatenate([resampler.push(pcm[5:]), resampler.flush()])
    np.testing.assert_array_equal(rest, resample(pcm, from_rate, to_rate, []))


@pytest.mark.parametrize(("from_rate", "to_rate"), WIRE_PAIRS)
@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, 6000), max_size=12).map(sorted))
def test_output_does_not_depend_on_chunking(from_rate: int, to_rate: int, cuts: list[int]) -> None:
    pcm = noise(6000)
    np.testing.assert_array_equal(
        resample(pcm, from_rate, to_rate, cuts), resample(pcm, from_rate, to_rate, [])
    )


def test_a_strided_view_gives_the_same_as_its_copy() -> None:
    pcm = noise(4000)
    every_other = resample(pcm[::2], 24000, 16000, [])
    np.testing.assert_array_equal(every_other, resample(pcm[::2].copy(), 24000, 16000, []))


@pytest.mark.parametrize(("from_rate", "to_rate"), WIRE_PAIRS + OTHER_PAIRS)
def test_output_is_aligned_with_input(from_rate: int, to_rate: int) -> None:
    """Within half a sample of the lower rate, at a frequency in the middle of speech."""
    tone = 500.0
    seconds = 0.5
    pcm = np.sin(2 * np.pi * tone * np.arange(int(from_rate * seconds)) / from_rate)
    out = resample(pcm.astype(np.float32), from_rate, to_rate, [1000])
    middle = np.arange(len(out))[len(out) // 4 : -len(out) // 4]
    angle = 2 * np.pi * tone * middle / to_rate
    basis = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    in_phase, quadrature = np.linalg.lstsq(basis, out[middle], rcond=None)[0]
    late = -np.arctan2(quadrature, in_phase) / (2 * np.pi * tone)
    assert abs(late) < 0.5 / min(from_rate, to_rate)
    assert np.hypot(in_phase, quadrature) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(("to_rate", "tone"), [(8000, 3600.0), (16000, 7200.0), (48000, 10800.0)])
def test_the_pass_band_is_flat_to_nine_tenths(to_rate: int, tone: float) -> None:
    pcm = np.sin(2 * np.pi * tone * np.arange(12000) / 24000).astype(np.float32)
    out = resample(pcm, 24000, to_rate, [])
    middle = out[len(out) // 4 : -len(out) // 4]
    assert np.sqrt(2 * np.mean(middle**2)) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(("to_rate", "tone"), [(8000, 4600.0), (16000, 9200.0)])
def test_what_the_wire_rate_cannot_carry_is_removed(to_rate: int, tone: float) -> None:
    pcm = np.sin(2 * np.pi * tone * np.arange(12000) / 24000).astype(np.float32)
    out = resample(pcm, 24000, to_rate, [])
    assert np.abs(out[len(out) // 4 : -len(out) // 4]).max() < 1e-4


@pytest.mark.parametrize(("to_rate", "most"), [(8000, 0.0255), (16000, 0.0105), (48000, 0.0105)])
def test_little_is_kept_back_at_any_time(to_rate: int, most: float) -> None:
    """Seconds of audio taken but not given, after each chunk of one codec frame."""
    resampler = Resampler(24000, to_rate)
    given = 0
    for chunk in range(1, 26):
        given += len(resampler.push(noise(1920)))
        assert chunk * 0.08 - given / to_rate <= most


def test_the_end_of_the_signal_is_not_lost() -> None:
    """A click in the last but one hundredth of a second comes out where it went in."""
    pcm = np.zeros(4800, np.float32)
    pcm[4800 - 120] = 1.0
    for _, to_rate in WIRE_PAIRS:
        out = resample(pcm, 24000, to_rate, [])
        peak = int(np.argmax(np.abs(out)))
        assert abs(peak - scaled(4800 - 120, 24000, to_rate)) <= 1
