"""The live engine with two background dispatches at a time: what is said, and how it ends."""

import contextlib
import math
import threading
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from doubles import FakeRunner, ramp, request
from machine import PATIENCE, until
from playhead.engine.lead import LeadLimits
from playhead.engine.loop import Engine, EngineConfig
from playhead.engine.policy import LaneLimits, PolicyConfig
from playhead.engine.types import (
    AudioChunk,
    ChunkWork,
    EngineEvent,
    Finish,
    Finished,
    Lane,
    Pcm,
    RunnerDead,
    Urgency,
)

LIMITS = LaneLimits(
    3, dict.fromkeys(Lane, 1), dict.fromkeys(Lane, 4), pipelined=frozenset({Lane.BACKGROUND})
)
FOLLOWS_WITHIN = 0.12
"""Seconds for which a dispatch waits for one behind it."""


class Device(FakeRunner):
    """Does background dispatches in the order in which they come; each takes its time, or until
    there is one behind it. ``fault``: what both get when there are two."""

    def __init__(self) -> None:
        super().__init__()
        self._in_order = threading.Condition()
        self._there = 0
        self._at_it = threading.Lock()
        self.twice = 0
        self.follows_within = FOLLOWS_WITHIN
        self.fault: Exception | None = None
        self.hangs = threading.Event()  # set: nothing hangs
        self.hangs.set()

    def decode(self, chunks: Sequence[ChunkWork]) -> list[Pcm | BaseException]:
        if chunks[0].lane is not Lane.BACKGROUND:
            return super().decode(chunks)
        with self._in_order:
            self._there += 1
            self.twice += self._there == 2
            self._in_order.notify_all()
            self._in_order.wait_for(lambda: self._there == 2, self.follows_within)
            both = self._there == 2
        try:
            if both and self.fault is not None:
                raise self.fault
            assert not both or self.hangs.wait(PATIENCE)
            with self._at_it:
                return super().decode(chunks)
        finally:
            with self._in_order:
                self._there -= 1


@contextlib.contextmanager
def engine(
    device: Device, stuck_after: float = PATIENCE
) -> Iterator[tuple[Engine, list[EngineEvent]]]:
    heard: list[EngineEvent] = []
    policy = PolicyConfig(
        Urgency.NONE, LeadLimits(fixed=1000.0), max_live=1000, max_utilisation=math.inf
    )
    made = Engine(device, EngineConfig(LIMITS, policy, stuck_after), heard.extend)
    made.start()
    try:
        yield made, heard
    finally:
        device.hangs.set()
        made.stop()


def say(made: Engine, numbers: range) -> None:
    for number in numbers:
        made.submit(request(number))
        made.push_text(number, "a" * 40, end=True)


def ends(heard: list[EngineEvent]) -> list[Finished]:
    return [event for event in list(heard) if isinstance(event, Finished)]


def test_everybody_hears_what_one_at_a_time_says() -> None:
    device = Device()
    with engine(device) as (made, heard):
        say(made, range(24))
        until(lambda: len(ends(heard)) == 24)
        assert made.dead is None
    assert {end.reason for end in ends(heard)} == {Finish.COMPLETE}
    assert device.twice > 0
    for number in range(24):
        mine = [e for e in heard if isinstance(e, AudioChunk) and e.utterance == number]
        assert [chunk.index for chunk in mine] == list(range(len(mine)))
        sound = np.concatenate([chunk.pcm for chunk in mine])
        np.testing.assert_array_equal(sound, ramp(0, 40 * 80))


def test_the_device_s_end_under_two_is_told_to_everybody_once() -> None:
    device = Device()
    device.fault = RunnerDead("the device is gone")
    with engine(device) as (made, heard):
        say(made, range(24))
        until(lambda: len(ends(heard)) == 24)
        until(lambda: made.dead is not None)
        assert str(made.dead) == "the device is gone"
    told = ends(heard)
    assert sorted(end.utterance for end in told) == list(range(24))
    assert {end.reason for end in told if "the engine stopped" in end.message} == {Finish.FAILED}


def test_two_batches_that_break_cost_those_in_them() -> None:
    device = Device()
    device.fault = ArithmeticError("broken")
    with engine(device) as (made, heard):
        say(made, range(24))
        until(lambda: Finish.FAILED in {end.reason for end in ends(heard)})
        device.fault, device.follows_within = None, 0.0
        say(made, range(100, 112))
        until(lambda: len(ends(heard)) == 36)
        assert made.dead is None
    assert {(e.reason, e.message) for e in ends(heard) if e.utterance >= 100} == {
        (Finish.COMPLETE, "")
    }


@pytest.mark.parametrize("how", ["cancelled", "stuck"])
def test_two_that_hang(how: str) -> None:
    """Who is cancelled is told at once; the watchdog notices them as it does a single one."""
    device = Device()
    device.hangs.clear()
    with engine(device, PATIENCE if how == "cancelled" else 0.3) as (made, heard):
        say(made, range(24))
        if how == "cancelled":
            until(lambda: device.twice)
            for number in range(24):
                made.cancel(number)
        until(lambda: len(ends(heard)) == 24)
        assert (made.dead is None) == (how == "cancelled")
        device.hangs.set()
        if how == "cancelled":
            until(lambda: not made._scheduler.live)
            assert {end.reason for end in ends(heard)} <= {Finish.CANCELLED, Finish.COMPLETE}
