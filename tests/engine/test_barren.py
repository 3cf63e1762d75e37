"""Who gets neither a sound nor an end from the model, for how long, and what it costs others."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from doubles import HZ, FakeRunner, Rig, machine, ramp, request
from playhead.engine.barren import (
    AT_ONCE,
    FEWEST,
    NOTHING,
    PATIENCE,
    PAUSE,
    QUEUE,
    TICK,
    UNREAD,
    Barren,
)
from playhead.engine.events import Fault
from playhead.engine.lead import LeadLearner, LeadLimits
from playhead.engine.playhead import Playhead
from playhead.engine.policy import PolicyConfig
from playhead.engine.stream import Stream
from playhead.engine.types import Finish, Lane, Request, StepResult, TextWarning, Word

BEGAN = 100.0


def stream(number: int = 1, *, complete: bool = True, steppable: bool = True) -> Stream:
    made = Stream(request(number), Playhead(HZ, 0.0), LeadLearner(LeadLimits()))
    made.complete, made.steppable = complete, steppable
    return made


def answer(frames: int = 0, **more: bool) -> StepResult:
    return replace(StepResult(1, frames, False, False, False), **more)


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

    def over(self, why: Fault = NOTHING) -> bool:
        return self.barren.look(self.now) == [(self.stream, why)]

    def wait(self, seconds: float, why: Fault = NOTHING) -> float | None:
        """Look whenever it is time to, for ``seconds``; after how many it was over."""
        began = self.now
        while not self.over(why):
            alarm = self.barren.next_alarm()
            if alarm > began + seconds:
                self.now = began + seconds
                return None
            self.now = max(self.now, alarm)
        return self.now - began


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
    assert bench.wait(10 * PATIENCE) is None
    assert bench.barren.next_alarm() == math.inf


@pytest.mark.parametrize("frames", [0, 3])
def test_hunger_for_more_than_all_of_the_text_is_ended(frames: int) -> None:
    bench = Bench()
    bench.step(answer(frames, hungry=True))
    took = bench.wait(2 * PATIENCE)
    assert took is not None
    assert PATIENCE <= took <= PATIENCE + TICK
    assert bench.wait(2 * PATIENCE) is None, "told once"
    assert bench.barren.next_alarm() == math.inf


def test_a_model_that_takes_all_of_a_text_and_has_nothing_to_step_is_ended() -> None:
    bench = Bench(complete=False, steppable=False)
    bench.barren.told(bench.stream, end=False)
    assert not bench.over()
    assert bench.barren.next_alarm() == math.inf
    bench.barren.told(bench.stream, end=True)
    took = bench.wait(2 * PATIENCE)
    assert took is not None
    assert PATIENCE <= took <= PATIENCE + TICK


def test_what_is_said_of_a_text_later_counts() -> None:
    """It is steppable only a while after its last text: what went before is forgotten."""
    bench = Bench(steppable=False)
    bench.barren.told(bench.stream, end=True)
    assert bench.wait(AT_ONCE + 0.2) is None
    bench.stream.steppable = True
    bench.barren.told(bench.stream, end=False)
    assert bench.barren.next_alarm() == math.inf, "nothing is left to wake the engine for"
    bench.step(answer())
    assert bench.stream.steppable, "the first step that gives nothing"
    assert not bench.over()
    bench.barren.told(bench.stream, end=False)
    assert bench.barren.next_alarm() < math.inf, "text forgives no steps"
    bench.step(answer(1, ended=True))
    assert bench.wait(2 * PATIENCE) is None


@pytest.mark.parametrize("steps", [False, True])
def test_time_in_which_nobody_looked_does_not_count(steps: bool) -> None:
    """A process that was stopped finds nobody late when it goes on."""
    bench = Bench()
    for _ in range(FEWEST if steps else 0):
        bench.step(answer(), took=0.01)
    if not steps:
        bench.step(answer(hungry=True))
    assert not bench.over()
    bench.now += 3600.0
    assert not bench.over()
    if steps:
        bench.step(answer(), took=3600.0)
        assert not bench.over()
    assert bench.wait(PATIENCE - 4 * TICK - 1.0) is None


def test_a_pause_ends_by_itself_and_leaves_no_alarm_behind() -> None:
    bench = Bench()
    while bench.stream.steppable:
        bench.step(answer(), took=0.1)
    paused = bench.now
    assert not bench.over()
    assert bench.barren.next_alarm() == pytest.approx(paused + PAUSE)
    bench.stream.steppable = True  # by text that came
    bench.barren.told(bench.stream, end=False)
    bench.step(answer(), took=PAUSE / 2)
    assert bench.woken == []
    bench.now = paused + PAUSE
    assert not bench.over()
    assert bench.woken == [], "the pause is another one now"
    bench.step(answer(1))
    assert bench.barren.next_alarm() == math.inf


def test_who_waits_until_its_prompt_is_read_may_wait_while_prompts_are_read() -> None:
    bench, other = Bench(), stream(2)
    for turn in range(1_000):
        bench.step(answer(waiting=True), took=0.3)
        assert bench.stream.steppable, "no pause: all who wait read in turn"
        assert not bench.over()
        if turn % 100 == 0:  # another one's prompt is read
            other.steppable = True
            other.made(StepResult(2, 0, False, False, False, waiting=True))
            bench.barren.stepped(other, answer(waiting=True), 0.0, bench.now)
            other.made(StepResult(2, 1, False, False, False))
            bench.barren.stepped(other, answer(1), 0.0, bench.now)
    assert bench.charged == 0.0, "it had nothing of them"
    bench.step(answer(1))
    assert bench.barren.next_alarm() == math.inf


def test_a_model_that_lets_all_of_them_wait_for_ever_is_waited_for_no_longer() -> None:
    bench = Bench()
    while not bench.over(UNREAD):
        bench.step(answer(waiting=True), took=0.3)
        assert bench.now < BEGAN + 2 * QUEUE
    assert bench.now - BEGAN == pytest.approx(QUEUE, abs=2 * TICK)
    assert bench.barren.next_alarm() == math.inf


def test_who_says_now_that_it_waits_and_now_nothing_is_ended_like_others() -> None:
    bench, turn = Bench(), 0
    while not bench.over():
        if bench.stream.steppable:
            bench.step(answer(waiting=turn % 2 == 0), took=0.2)
            turn += 1
        else:
            bench.now = bench.barren.next_alarm()
    assert bench.now - BEGAN == pytest.approx(2 * FEWEST * 0.2, abs=FEWEST * PAUSE + 1.0)


def test_hunger_counts_for_more_than_waiting() -> None:
    bench = Bench()
    bench.step(answer(hungry=True, waiting=True))
    assert bench.wait(2 * PATIENCE) == pytest.approx(PATIENCE, abs=TICK)


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
    assert bench.wait(2 * PATIENCE) is None


@pytest.mark.parametrize("hungry", [False, True])
def test_a_stream_that_is_dead_is_not_ended_again(hungry: bool) -> None:
    bench = Bench()
    for _ in range(150):
        bench.step(answer(hungry=hungry), took=PAUSE)
    bench.stream.dead = True
    assert bench.wait(2 * PATIENCE) is None
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


def test_a_warning_that_came_a_step_before_the_end_is_the_only_one() -> None:
    rig = Rig()
    rig.submit(request(1))
    rig.text(1, "one", end=True)
    warning = TextWarning(1, "unspeakable_text", "nothing of it can be spoken", "one")
    for result in (
        StepResult(1, 0, False, False, False, warnings=(warning,)),
        StepResult(1, 0, False, False, True),
    ):
        (dispatch,) = rig.plan()
        rig.running.remove(dispatch)
        rig.scheduler.commit_steps(dispatch, [result], 0.01, rig.now)
    rig.collect()
    assert rig.heard[1].warnings == 1
    assert rig.heard[1].finished is not None


@pytest.mark.parametrize("ends", [3, 4])
def test_a_word_beyond_the_text_fails_its_utterance(ends: int) -> None:
    rig = Rig()
    rig.submit(request(1))
    rig.text(1, "one", end=True)
    (dispatch,) = rig.plan()
    rig.running.remove(dispatch)
    result = StepResult(1, 1, True, False, True, words=(Word("one", 0, 0, ends),))
    rig.scheduler.commit_steps(dispatch, [result], 0.01, rig.now)
    rig.settle()
    finished = rig.heard[1].finished
    assert finished is not None
    beyond = finished.message == "the model told of a word beyond the end of its text"
    assert (finished.reason, beyond) == (
        (Finish.COMPLETE, False) if ends == 3 else (Finish.FAILED, True)
    )


ROWS, READ, OPENED = 700, 256, 6
"""Rows of each prompt, rows read in a step, and prompts begun in a step."""


class Reader(FakeRunner):
    """Has a queue for prompts, as a model on an accelerator has."""

    def __init__(self) -> None:
        super().__init__()
        self.left: dict[int, int] = {}

    def step(self, utterances: Sequence[int]) -> list[StepResult]:
        new = [number for number in utterances if number not in self.left]
        self.left.update(dict.fromkeys(new[:OPENED], ROWS))
        room = READ
        for number in utterances:
            read = min(room, self.left.get(number, 0))
            if read:
                room -= read
                self.left[number] -= read
        return [
            super(Reader, self).step([number])[0]
            if self.left.get(number) == 0
            else StepResult(number, 0, False, False, False, waiting=True)
            for number in utterances
        ]


def test_a_queue_of_prompts_is_read_as_fast_as_it_can_be_and_nobody_fails() -> None:
    policy = PolicyConfig(max_utilisation=math.inf)
    rig, prompts = Rig(machine(workers=1, reserve=0, batch=64), policy), 50
    rig.runner = Reader()
    for number in range(prompts):
        rig.say(number, "ab")
    steps = 0
    while rig.scheduler.live and rig.now < BEGAN + 3 * PATIENCE:
        started = rig.plan()
        for dispatch in started:
            steps += dispatch.lane is Lane.LM
            rig.now += 0.1 if dispatch.lane is Lane.LM else 0.0
            rig.finish(dispatch, 0.1)
        rig.now += 0.0 if started else 0.01
    assert all(
        heard.finished is not None and heard.finished.reason is Finish.COMPLETE
        for heard in rig.heard.values()
    )
    assert rig.now - BEGAN > PATIENCE, "else it shows nothing"
    assert steps <= prompts * ROWS / READ + 10
