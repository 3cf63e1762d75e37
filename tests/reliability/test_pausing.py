"""Quick form of bench/reliability/pauses.py: leads cover the machine's own pauses."""

from pausing import play, without_floor
from playhead.engine import costs


def test_a_lead_covers_the_pauses_of_the_machine() -> None:
    bare = without_floor(costs.cpu(2), 1.0, 40.0, 12.0)
    covered = play(costs.cpu(2), 1.0, 40.0, 12.0)
    assert covered.utterances == bare.utterances
    assert bare.stalled >= 4
    assert covered.stalled <= bare.stalled / 2
    assert covered.waste < bare.waste + 0.8


def test_a_machine_that_never_pauses_holds_no_more() -> None:
    bare = without_floor(costs.cpu(2), 1.0, 20.0, 1e-6)
    covered = play(costs.cpu(2), 1.0, 20.0, 1e-6)
    assert covered.stalled == bare.stalled == 0
    assert covered.waste < bare.waste + 0.05
