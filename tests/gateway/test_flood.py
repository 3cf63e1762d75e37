"""How many frames one connection may send."""

from playhead.gateway.flood import CONTROL_BURST, MOST_FRAGMENTS, FrameBudget
from playhead.gateway.limits import Limits


def test_control_frames() -> None:
    budget = FrameBudget()
    assert [budget.control(0.0) for _ in range(int(CONTROL_BURST))] == [None] * 40
    assert budget.control(0.0) == "control_flood"
    assert budget.control(0.05) is None
    assert budget.data(0.05, final=True) is None


def test_messages() -> None:
    budget = FrameBudget()
    burst = int(Limits().frame_burst)
    assert {budget.data(0.0, final=True) for _ in range(burst)} == {None}
    assert budget.data(0.0, final=True) == "message_flood"
    assert budget.data(0.002, final=True) is None


def test_fragments_of_one_message() -> None:
    budget = FrameBudget()
    for _ in range(2):
        assert {budget.data(0.0, final=False) for _ in range(MOST_FRAGMENTS - 1)} == {None}
        assert budget.data(0.0, final=True) is None
    assert {budget.data(0.0, final=False) for _ in range(MOST_FRAGMENTS)} == {None}
    assert budget.data(0.0, final=False) == "too_many_fragments"
