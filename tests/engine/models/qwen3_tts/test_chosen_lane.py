"""The background lane changes its part between dispatches and never within one."""

import threading
from collections.abc import Iterator
from itertools import cycle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

from machine import PATIENCE
from playhead.engine.models.qwen3_tts.chosen_lane import ChosenLane
from playhead.engine.models.qwen3_tts.codec_rounds import Ints
from playhead.engine.models.qwen3_tts.splits import WHOLE, Done, Splits

ONE = np.array([0])


class Lane:
    """Notes what it is given; holds it until it is let go."""

    most = 4

    def __init__(self) -> None:
        self.began: list[int] = []
        self.working = threading.Semaphore(0)
        self.go: threading.Semaphore | None = None
        self.fault: Exception | None = None

    def decode(self, slots: Ints, first: Ints, frames: Ints) -> Any:
        self.began.append(int(first[0]))
        self.working.release()
        if self.go is not None:
            assert self.go.acquire(timeout=PATIENCE)
        if self.fault is not None:
            raise self.fault
        return f"{first[0]} of {frames.sum()}"


class Turns:
    """Wants another part whenever it is asked, and fails when asked while anything is at work."""

    def __init__(self, lanes: dict[int, Lane]) -> None:
        self._sizes = cycle(lanes)
        self.size = next(self._sizes)
        self.switches = 0
        self.asked = 0
        self.at_work = 0
        self.done: list[Done] = []
        self.told = threading.Semaphore(0)

    def choose(self, _: float, streams: int) -> int:
        assert streams == 7
        assert self.at_work == 0, "another part was chosen while one was at work"
        self.asked += 1
        self.switches += 1
        self.size = next(self._sizes)
        return self.size

    def note(self, done: Done) -> None:
        self.done.append(done)
        self.told.release()


def lab() -> tuple[ChosenLane, dict[int, Lane], Turns]:
    made = {24: Lane(), 48: Lane()}
    turns = Turns(made)
    times: Iterator[float] = iter(range(1000))
    chosen = ChosenLane(made, turns, lambda: float(next(times)), 0.08, lambda: 7)  # type: ignore[arg-type]
    return chosen, made, turns


def decode(chosen: ChosenLane, first: int) -> Any:
    return chosen.decode(ONE, np.array([first]), np.array([4]), [0.5])


def test_every_dispatch_goes_to_the_part_that_was_chosen_for_it() -> None:
    chosen, lanes, turns = lab()
    assert chosen.part == 24
    found = [decode(chosen, number) for number in range(4)]
    assert found == [f"{number} of 4" for number in range(4)]
    assert (lanes[48].began, lanes[24].began) == ([0, 2], [1, 3])
    assert (chosen.part, chosen.switches) == (24, turns.switches)


def test_what_was_done_is_told() -> None:
    chosen, _, turns = lab()
    chosen.decode(np.array([1, 2]), np.array([0, 0]), np.array([4, 2]), [0.5, None])
    decode(chosen, 0)
    assert turns.done == [
        Done(0.0, 1.0, pytest.approx(0.48), 0.5, full=True),
        Done(2.0, 3.0, pytest.approx(0.32), 0.5, full=False),
    ]


def test_no_other_part_is_taken_while_anything_is_at_work() -> None:
    """Dispatches that overlap share a part; the next one after all of them may change it."""
    chosen, lanes, turns = lab()
    lanes[48].go = threading.Semaphore(0)
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda n=number: found.append(decode(chosen, n)), daemon=True)
        for number in range(3)
    ]
    for thread in threads:
        thread.start()
        assert lanes[48].working.acquire(timeout=PATIENCE)
        turns.at_work = 1
    assert turns.asked == 1
    assert lanes[48].began == [0, 1, 2]
    lanes[48].go.release(2)
    for _ in range(2):  # the third holds the part still
        assert turns.told.acquire(timeout=PATIENCE)
    lanes[48].go.release()
    for thread in threads:
        thread.join(PATIENCE)
    turns.at_work = 0
    assert sorted(found) == ["0 of 4", "1 of 4", "2 of 4"]
    assert not lanes[24].began
    decode(chosen, 9)
    assert (lanes[24].began, turns.asked) == ([9], 2)


def test_a_dispatch_that_fails_holds_no_part_and_is_not_counted() -> None:
    chosen, lanes, turns = lab()
    lanes[48].fault = ValueError("the device is gone")
    with pytest.raises(ValueError, match="gone"):
        decode(chosen, 0)
    assert not turns.done
    decode(chosen, 1)
    assert lanes[24].began == [1]


def test_the_real_choice_begins_on_all_of_the_device() -> None:
    lanes: dict[int, Any] = {24: Lane(), WHOLE: Lane()}
    clock = SimpleNamespace(now=0.0, streams=0)
    chosen = ChosenLane(
        lanes, Splits(tuple(lanes), 132, 0.0), lambda: clock.now, 0.08, lambda: clock.streams
    )
    decode(chosen, 0)
    clock.now = 6.0
    decode(chosen, 1)
    assert (lanes[WHOLE].began, lanes[24].began) == ([0], [1])
    assert (chosen.part, chosen.switches) == (24, 1)
    clock.now, clock.streams = 7.0, 700
    decode(chosen, 2)
    assert (chosen.part, chosen.switches) == (WHOLE, 2)
