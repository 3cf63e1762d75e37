"""When a connection that says nothing is asked, and when it is given up."""

import pytest
from playhead.client.vigil import IN_USE, PATIENCE, SILENCE, Vigil


def test_a_connection_in_use_is_asked_when_it_falls_silent() -> None:
    vigil = Vigil(100.0)
    assert vigil.wait(100.5) == pytest.approx(SILENCE - 0.5)
    vigil.heard(101.0)
    assert vigil.wait(102.0) == pytest.approx(SILENCE - 1.0)
    vigil.said(103.5)
    assert vigil.wait(103.5) == 0.0, "what is said is no sign of life of the other side"
    vigil.answered(103.6)
    assert vigil.wait(103.6) == pytest.approx(SILENCE)


def test_one_in_which_nothing_happens_is_left_alone() -> None:
    vigil = Vigil(0.0)
    vigil.heard(1.0)
    vigil.answered(4.0)
    assert vigil.wait(0.9 + IN_USE) is not None
    assert vigil.wait(1.0 + IN_USE) is None, "an answer is no use"
    vigil.said(20.0)
    assert vigil.wait(20.0) == 0.0


def test_it_is_lost_when_nothing_comes_in_time() -> None:
    vigil = Vigil(0.0)
    assert not vigil.lost(3.0, 3.0 + 0.9 * PATIENCE)
    assert vigil.lost(3.0, 3.0 + PATIENCE)
    assert not vigil.lost(3.0, 3.0 + 2 * PATIENCE), "this process stood still itself"
    vigil.heard(4.0)
    assert not vigil.lost(3.0, 3.0 + PATIENCE), "the answer waits behind sound"
