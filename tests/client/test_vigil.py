"""When a connection that says nothing is asked, and when it is given up."""

import pytest
from playhead.client.vigil import IN_USE, SILENCE, Vigil


def test_a_connection_in_use_is_asked_when_it_falls_silent() -> None:
    vigil = Vigil(100.0)
    assert vigil.wait(100.5, False) == pytest.approx(SILENCE - 0.5)
    vigil.heard(101.0)
    assert vigil.wait(102.0, False) == pytest.approx(SILENCE - 1.0)
    vigil.said(103.5)
    assert vigil.wait(103.5, False) == 0.0, "what is said is no sign of life of the other side"
    vigil.came(103.6)
    assert vigil.wait(103.6, False) == pytest.approx(SILENCE)


def test_one_in_which_nothing_happens_is_left_alone() -> None:
    vigil = Vigil(0.0)
    vigil.heard(1.0)
    vigil.came(4.0)
    assert vigil.wait(0.9 + IN_USE, False) is not None
    assert vigil.wait(1.0 + IN_USE, False) is None, "an answer is no use"
    vigil.said(20.0)
    assert vigil.wait(20.0, False) == 0.0


def test_one_over_which_something_is_to_come_is_asked_however_long_that_takes() -> None:
    vigil = Vigil(0.0)
    vigil.said(1.0)
    vigil.came(1000.0)
    assert vigil.wait(1000.5, False) is None
    assert vigil.wait(1000.5, True) == pytest.approx(SILENCE - 0.5)
    assert vigil.wait(1000.0 + SILENCE, True) == 0.0


def test_it_is_lost_when_nothing_comes_in_time() -> None:
    vigil = Vigil(0.0)
    assert vigil.lost(3.0)
    vigil.said(4.0)
    assert vigil.lost(3.0), "what is said is no sign of life of the other side"
    vigil.came(2.0)
    assert vigil.lost(3.0), "it came before the question"
    vigil.came(4.0)
    assert not vigil.lost(3.0), "the answer waits behind sound"
    vigil.came(2.0)
    assert not vigil.lost(3.0)
