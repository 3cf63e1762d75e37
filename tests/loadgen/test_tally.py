"""What the progress line counts."""

import pytest
from loadgen_kit import record
from playhead.loadgen.listener import Stall
from playhead.loadgen.tally import Tally


def test_started_and_ended_add_up() -> None:
    tally = Tally(planned=3)
    tally.start()
    tally.start()
    assert tally.in_flight == 2
    tally.add(record(0, 1.0, dispatched=1.0, first_playable=1.2, stalls=[Stall(2.0, 0.1, 1)]))
    tally.add(record(1, 1.0, fault="unreachable"))
    assert (tally.started, tally.ended, tally.in_flight) == (3, 2, 1)
    assert (tally.faulty, tally.stalled) == (1, 1)
    assert tally.first_audio == [pytest.approx(0.2)]
