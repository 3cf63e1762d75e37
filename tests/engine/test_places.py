"""Whose place is kept while its listener is cut off, and who gives it away."""

import pytest
from doubles import HZ, request
from playhead.engine.lead import LeadLearner, LeadLimits
from playhead.engine.places import (
    expendable,
    gone,
    longest_gone,
    note_hold,
    takes_part,
)
from playhead.engine.playhead import Playhead
from playhead.engine.stream import Stream
from playhead.engine.types import PLACE_KEPT, ListenerState


def cut(at: float | None) -> Stream:
    stream = Stream(request(1), Playhead(HZ, 0.0), LeadLearner(LeadLimits()))
    if at is not None:
        stream.playhead.hold(ListenerState.SUSPENDED, at)
        note_hold(stream, ListenerState.SUSPENDED, at)
    return stream


def test_the_first_moment_counts_until_it_is_back() -> None:
    stream = cut(3.0)
    note_hold(stream, ListenerState.SUSPENDED, 5.0)
    assert stream.away_since == 3.0
    note_hold(stream, ListenerState.PAUSED, 6.0)
    assert stream.away_since is None
    note_hold(stream, ListenerState.SUSPENDED, 7.0)
    note_hold(stream, None, 8.0)
    assert stream.away_since is None


def test_a_place_is_kept_for_a_while() -> None:
    stream = cut(3.0)
    assert not gone(stream, 3.0 + PLACE_KEPT - 0.01)
    assert takes_part(stream, 3.0 + PLACE_KEPT - 0.01)
    assert gone(stream, 3.0 + PLACE_KEPT)
    assert not takes_part(stream, 3.0 + PLACE_KEPT)
    assert not gone(cut(None), 1e9)


def test_who_is_there_takes_part_unless_it_is_paused() -> None:
    stream = cut(None)
    assert takes_part(stream, 1.0)
    stream.playhead.hold(ListenerState.PAUSED, 1.0)
    assert not takes_part(stream, 2.0)


@pytest.mark.parametrize("state", ["dead", "stepping", "decoding"])
def test_a_slot_that_work_still_uses_cannot_be_had(state: str) -> None:
    stream = cut(0.0)
    assert expendable(stream, PLACE_KEPT)
    setattr(stream, state, True)
    assert not expendable(stream, PLACE_KEPT)


def test_the_one_that_is_gone_longest_gives_its_slot() -> None:
    here, first, second, fresh = cut(None), cut(0.0), cut(1.0), cut(PLACE_KEPT)
    streams = [here, second, first, fresh]
    now = PLACE_KEPT + 2.0
    assert longest_gone(streams, now) is first
    assert longest_gone([here, fresh], now) is None
