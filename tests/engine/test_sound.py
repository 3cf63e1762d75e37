"""What is no sound never gets near a speaker."""

import numpy as np
import pytest
from playhead.engine import sound
from playhead.engine.sound import LOUDEST, NotSound, all_checked, checked
from playhead.engine.types import Pcm


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


def parts(whole: Pcm) -> list[Pcm | BaseException]:
    return [whole[at : at + 100] for at in range(0, len(whole), 100)]


def test_chunks_of_one_array_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    monkeypatch.setattr(sound, "checked", lambda pcm: (looked.append(len(pcm)), pcm)[1])
    chunks = [*parts(np.full(600, 0.1, np.float32)), ValueError("x")]
    found = all_checked(chunks)
    assert all(one is other for one, other in zip(found, chunks, strict=True))
    assert looked == [600]


@pytest.mark.parametrize("bad", [np.nan, 9.0])
def test_one_bad_chunk_of_an_array_fails_alone(bad: float) -> None:
    whole = np.full(600, 0.1, np.float32)
    whole[250] = bad
    found = all_checked(parts(whole))
    assert [isinstance(pcm, NotSound) for pcm in found] == [at == 2 for at in range(6)]


@pytest.mark.parametrize("cut", ["little of much", "of two", "whole", "faults", "nothing"])
def test_only_what_is_heard_is_looked_at(cut: str) -> None:
    much, other = np.full(1000, np.nan, np.float32), np.zeros(100, np.float32)
    much[:100] = 0.0
    chunks: dict[str, list[Pcm | BaseException]] = {
        "little of much": [much[:100]],
        "of two": [much[:50], other[:50]],
        "whole": [other],
        "faults": [ValueError("x")],
        "nothing": [],
    }
    found = all_checked(chunks[cut])
    assert all(one is other for one, other in zip(found, chunks[cut], strict=True))


def test_sound_in_foreign_memory_is_looked_at_one_by_one() -> None:
    quiet = np.frombuffer(bytes(400), np.float32)
    assert not isinstance(quiet.base, np.ndarray)
    assert all_checked([quiet])[0] is quiet
