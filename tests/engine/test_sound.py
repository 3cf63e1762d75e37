"""What is no sound never gets near a speaker."""

import numpy as np
import pytest
from playhead.engine.sound import LOUDEST, NotSound, checked


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30, -LOUDEST * 1.01, LOUDEST * 1.01])
@pytest.mark.parametrize("place", [0, 50, 99])
def test_one_bad_sample_spoils_the_chunk(bad: float, place: int) -> None:
    pcm = np.zeros(100, np.float32)
    pcm[place] = bad
    fault = checked(pcm)
    assert isinstance(fault, NotSound)
    assert "no sound" in str(fault)


@pytest.mark.parametrize("peak", [0.0, 1.0, 1.5, -LOUDEST, LOUDEST])
def test_speech_passes_as_it_is(peak: float) -> None:
    pcm = np.full(100, peak, np.float32)
    assert checked(pcm) is pcm


def test_a_fault_and_an_empty_chunk_pass() -> None:
    fault, empty = ValueError("x"), np.zeros(0, np.float32)
    assert checked(fault) is fault
    assert checked(empty) is empty
