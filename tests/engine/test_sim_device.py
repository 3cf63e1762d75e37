"""Pieces of work beside each other."""

import math

import pytest
from playhead.engine.plan import Dispatch
from playhead.engine.sim_device import Device
from playhead.engine.types import Lane

LM, CODEC = Dispatch(Lane.LM), Dispatch(Lane.BACKGROUND)


def test_alone_a_second_takes_a_second() -> None:
    device = Device({})
    assert device.next_end() == math.inf
    device.start(LM, 0.5, 10.0)
    assert device.next_end() == 10.5
    assert device.take_done(10.4) == []
    (piece,) = device.take_done(10.5)
    assert (piece.dispatch, piece.started) == (LM, 10.0)
    assert device.next_end() == math.inf


def test_beside_another_lane_it_takes_longer_for_as_long_as_that_works() -> None:
    device = Device({(Lane.LM, Lane.BACKGROUND): 2.0, (Lane.BACKGROUND, Lane.LM): 4.0})
    device.start(LM, 1.0, 0.0)
    device.start(CODEC, 0.1, 0.5)  # until 0.9: the step has done 0.2 of it meanwhile
    assert device.next_end() == pytest.approx(0.9)
    assert [piece.dispatch for piece in device.take_done(0.9)] == [CODEC]
    assert device.next_end() == pytest.approx(1.2)


def test_what_stops_another_lane_only_delays_it() -> None:
    device = Device({(Lane.LM, Lane.BACKGROUND): math.inf})
    device.start(LM, 1.0, 0.0)
    device.start(CODEC, 0.25, 0.5)
    assert device.next_end() == 0.75
    device.take_done(0.75)
    assert device.next_end() == pytest.approx(1.25)


def test_work_of_one_lane_does_not_slow_itself() -> None:
    device = Device({(Lane.LM, Lane.LM): 9.0})
    device.start(LM, 0.2, 0.0)
    device.start(Dispatch(Lane.LM, (1,)), 0.2, 0.0)
    assert [piece.dispatch.steps for piece in device.take_done(0.2)] == [(), (1,)]
