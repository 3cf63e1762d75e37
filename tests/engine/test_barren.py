"""Who gets neither a sound nor an end from the model, for how long, and what it costs others."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from doubles import HZ, FakeRunner, Rig, machine, ramp, request
from playhead.engine.barren import AT_ONCE, FEWEST, PATIENCE, PAUSE, Barren
from playhead.engine.lead import LeadLearner, LeadLimits
from playhead.engine.playhead import Playhead
from playhead.engine.stream import Stream
from playhead.engine.types import Finish, Request, StepResult

BEGAN = 100.0


def stream(number: int = 1, *, complete: bool = True, steppable: bool = True) -> Stream:
    made = Stream(request(number), Playhead(HZ, 0.0), LeadLearner(LeadLimits()))
    made.complete, made.steppable = complete, steppable
    return made


def answer(frames: int = 0, *, hungry: bool = False, ended: bool = False) -> StepResult:
    return StepResult(1, frames, False, hungry, ended)


class Bench:
    """A judge, and a stream that is stepped when it may be."""

    def __init__(self, **how: bool) -> None:
        self.woken: list[Stream] = []
        self.charged = 0.0
        self.barren = Barren(self.woken.append, self.charge)
        self.stream = stream(**how)
        self.now = BEGAN

    def charge(self, wanted: Request, seconds: float) -> None:
        assert wanted is self.stream.request
        self.charged += seconds

    def step(self, result: StepResult, took: float = 0.01) -> None:
        self.now += took
        self.stream.steppable = False
        self.stream.made(result)
        self.barren.stepped(self.stream, result, took, self.now)

    def over(self) -> bool:
        return self.barren.look(self.now) == [self.stream]


def test_steps_without_a_frame_are_ended_after_ten_seconds() -> None:
    bench, steps = Bench(), 0
    while not bench.over():
        if bench.stream.steppable:
            bench.step(answer())
            steps += 1
        else:
            bench.now = bench.barren.next_alarm()
    assert bench.now - BEGAN == pytest.approx(PATIENCE, abs=2 * PAUSE)
    quick = AT_ONCE / 0.01
    assert steps == pytest.approx(quick + (PATIENCE - AT_ONCE) / (PAUSE + 0.01), rel=0.05)
    assert set(map(id, bench.woken)) == {id(bench.stream)}
    assert bench.charged == pytest.approx(0.01 * steps)


def test_long_steps_get_a_fair_number_of_tries() -> None:
    bench, steps = Bench(), 0
    while not bench.over():
        if bench.stream.steppable:
            bench.step(answer(), took=2.0)
            steps += 1
        else:
            bench.now = bench.barren.next_alarm()
    assert steps == FEWEST


def test_a_frame_in_time_forgives_all() -> None:
    bench = Bench()
    for _ in range(3):
        for _ in range(20):
            bench.step(answer(), took=0.04)
            assert bench.stream.steppable, "there is a second for it"
        charged = bench.charged
        bench.step(answer(1), took=0.5)
        assert bench.charged == charged, "what was made is charged when it is decoded"
    assert not bench.over()
    assert bench.barren.next_alarm() == math.inf


def test_who_waits_for_text_may_wait() -> None:
    bench = Bench(complete=False)
    bench.step(answer(hungry=True))
    bench.now += 10 * PATIENCE
    assert not bench.over()
    assert bench.barren.next_alarm() == math.inf


@pytest.mark.parametrize("frames", [0, 3])
def test_hunger_for_more_than_all_of_the_text_is_ended(frames: int) -> None:
    bench = Bench()
    bench.step(answer(frames, hungry=True))
    until = bench.now + PATIENCE
    assert bench.barren.next_alarm() == until
    bench.now = until - 0.01
    assert not bench.over()
    bench.now = until
    assert bench.over()
    assert not bench.over(), "told once"


def test_a_model_that_takes_all_of_a_text_and_has_nothing_to_step_is_ended() -> None:
    bench = Bench(complete=False, steppable=False)
    bench.barren.told(bench.stream, end=False)
    assert not bench.over()
    assert bench.barren.next_alarm() == math.inf
    bench.barren.told(bench.stream, end=True)
    assert not bench.over()
    bench.now += PATIENCE
    assert bench.over()


def test_what_is_said_of_a_text_later_counts() -> None:
    """A model in another process says a moment later that it can be stepped."""
    bench = Bench(steppable=False)
    bench.barren.told(bench.stream, end=True)
    assert not bench.over()
    bench.now += PATIENCE / 2
    bench.stream.steppable = True
    bench.now += PATIENCE
    assert not bench.over()
    bench.step(answer(1, ended=True))
    bench.now += PATIENCE
    assert not bench.over()


def test_said_before_anybody_looks() -> None:
    bench = Bench(steppable=False)
    bench.barren.told(bench.stream, end=True)
    bench.stream.steppable = True
    assert not bench.over()
    assert bench.barren.next_alarm() == math.inf


def test_a_stream_that_is_over_is_left_alone() -> None:
    bench = Bench()
    bench.step(answer(hungry=True))
    bench.barren.forget(bench.stream)
    bench.now += PATIENCE
    assert not bench.over()


@pytest.mark.parametrize("hungry", [False, True])
def test_a_stream_that_is_dead_is_not_ended_again(hungry: bool) -> None:
    bench = Bench()
    for _ in range(150):
        bench.step(answer(hungry=hungry), took=PAUSE)
    bench.stream.dead = True
    bench.now += PATIENCE
    assert not bench.over()
    assert bench.woken == []


class Silent(FakeRunner):
    """Makes nothing of a text with a dash in it; others are as they were."""

    def step(self, utterances: Sequence[int]) -> list[StepResult]:
        return [
            StepResult(number, 0, False, False, False)
            if "-" in self.speeches[number].text
            else super(Silent, self).step([number])[0]
            for number in utterances
        ]


@pytest.mark.parametrize("silent", [(2,), (1, 2, 3)])
def test_others_are_spoken_meanwhile_and_the_slot_is_given_back(silent: tuple[int, ...]) -> None:
    rig = Rig(machine(reserve=0))
    rig.runner = Silent()
    for number in (1, 2, 3):
        rig.say(number, "-" if number in silent else "abcdefgh")
    until = rig.now + PATIENCE + 1.0
    while rig.scheduler.live and rig.now < until:
        rig.plan()
        for dispatch in list(rig.running):
            rig.finish(dispatch)
        rig.now += 0.005
    for number in (1, 2, 3):
        finished = rig.heard[number].finished
        assert finished is not None
        if number in silent:
            assert (finished.reason, finished.code) == (Finish.FAILED, "engine_error")
            assert "neither a sound nor an end" in finished.message
        else:
            assert finished.reason is Finish.COMPLETE
            pcm = np.concatenate([chunk.pcm for chunk in rig.heard[number].chunks])
            np.testing.assert_array_equal(pcm, ramp(0, 640))
    assert sorted(rig.closed) == [1, 2, 3]
    assert rig.now < until
    assert rig.scheduler._barren._waits == {}


def test_an_end_before_the_first_sound_of_a_text_that_has_one_is_told() -> None:
    rig = Rig()
    for number, text in ((1, "one"), (2, " ... ")):
        rig.submit(request(number))
        rig.text(number, text, end=True)
    for dispatch in [*rig.plan(), *rig.plan()]:
        rig.running.remove(dispatch)
        over = [StepResult(number, 0, False, False, True) for number in dispatch.steps]
        rig.scheduler.commit_steps(dispatch, over, 0.01, rig.now)
    rig.collect()
    assert [rig.heard[number].warnings for number in (1, 2)] == [1, 0]
    finished = rig.heard[1].finished
    assert finished is not None
    assert (finished.reason, finished.samples) == (Finish.COMPLETE, 0)
