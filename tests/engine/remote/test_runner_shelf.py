"""Memory that two processes share: what is laid on one side is what the other takes."""

import os
import sys

import numpy as np
import pytest
from playhead.engine.remote import runner_shelf
from playhead.engine.remote.runner_shelf import Shelf, descriptors, shelves
from playhead.engine.remote.wire import WireError
from playhead.engine.types import Lane

needs_memory = pytest.mark.skipif(sys.platform != "linux", reason="memfd_create is Linux's")


def sides(room: int) -> tuple[Shelf, Shelf]:
    first, *others = descriptors(room)
    for other in others:
        os.close(other)
    return Shelf(os.dup(first)), Shelf(first)


@needs_memory
def test_what_is_laid_is_what_is_taken_and_what_was_taken_stays() -> None:
    model, engine = sides(64)
    assert model.lay([np.arange(3, dtype=np.float32), np.arange(5, 10, dtype=np.float32)]) == 32
    first = engine.take(32)
    assert model.lay([np.zeros(16, np.float32)]) == 64
    np.testing.assert_array_equal(first, [0, 1, 2, 5, 6, 7, 8, 9])
    np.testing.assert_array_equal(engine.take(64), np.zeros(16))


@needs_memory
def test_there_is_room_for_so_much_and_nothing_is_no_sound() -> None:
    model, engine = sides(64)
    assert model.lay([np.zeros(17, np.float32)]) == 0
    assert model.lay([]) == model.lay([np.empty(0, np.float32)]) == 0
    with pytest.raises(WireError, match="68 bytes of sound cannot lie in 64"):
        engine.take(68)


@needs_memory
def test_each_lane_has_a_piece_that_nobody_else_inherits() -> None:
    made = descriptors(64)
    assert not any(os.get_inheritable(descriptor) for descriptor in made)
    model = shelves([os.dup(descriptor) for descriptor in made])
    engine = shelves(made)
    assert len(model) == len(engine) == len(Lane)
    for number, one in enumerate(model):
        assert one is not None
        one.lay([np.full(2, number, np.float32)])
    found = [one.take(8)[0] for one in engine if one is not None]
    assert found == list(range(len(Lane)))


def test_where_there_is_no_such_memory_sound_goes_by_the_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner_shelf.sys, "platform", "darwin")
    assert descriptors() == []
    assert shelves([]) == [None] * len(Lane)
