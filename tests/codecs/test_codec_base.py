"""What every encoder does to audio before it is coded."""

import numpy as np
import pytest
from playhead.codecs import base


def test_good_audio_passes_unchanged() -> None:
    pcm = np.array([-1.0, -0.25, 0.0, 0.5, 1.0], np.float32)
    cleaned, repaired = base.clean(pcm)
    assert cleaned.dtype == np.float32
    assert cleaned.tolist() == pcm.tolist()
    assert repaired == 0


def test_loud_audio_is_clipped_and_not_counted_as_broken() -> None:
    cleaned, repaired = base.clean(np.array([1.5, -7.0, 0.25], np.float32))
    assert cleaned.tolist() == [1.0, -1.0, 0.25]
    assert repaired == 0


def test_nan_and_infinity_become_silence_and_are_counted() -> None:
    pcm = np.array([np.nan, 0.5, np.inf, -np.inf, -0.5], np.float32)
    cleaned, repaired = base.clean(pcm)
    assert cleaned.tolist() == [0.0, 0.5, 0.0, 0.0, -0.5]
    assert repaired == 3
    assert np.isnan(pcm[0]), "the caller's array must not change"


def test_double_precision_beyond_float32_is_clipped_without_a_warning() -> None:
    cleaned, repaired = base.clean(np.array([1e300, -1e300, 0.5]))
    assert cleaned.dtype == np.float32
    assert cleaned.tolist() == [1.0, -1.0, 0.5]
    assert repaired == 0


def test_empty_audio_stays_empty() -> None:
    cleaned, repaired = base.clean(np.zeros(0, np.float32))
    assert (cleaned.shape, cleaned.dtype, repaired) == ((0,), np.float32, 0)


@pytest.mark.parametrize(
    ("audio", "shown"),
    [
        (np.zeros(4, np.int16), r"not int16 \(4,\)"),
        (np.zeros((2, 2), np.float32), r"not float32 \(2, 2\)"),
        ([0.0, 0.5], "not list"),
    ],
)
def test_what_is_not_a_row_of_floats_is_refused(audio: object, shown: str) -> None:
    with pytest.raises(TypeError, match=shown):
        base.clean(audio)  # type: ignore[arg-type]
