"""What speech costs, measured before anybody listens."""

import itertools
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue

import pytest
from doubles import MODEL, FakeRunner
from machine import PATIENCE
from playhead.engine import rehearsal
from playhead.engine.answers import Answer, Hear
from playhead.engine.clock import monotonic
from playhead.engine.lanes import cpu_limits
from playhead.engine.policy import LaneLimits
from playhead.engine.rehearsal import CROWDS, EACH, ROUNDS, crowds, rehearse
from playhead.engine.types import Lane, Request, RunnerDead, StepResult

LANES = cpu_limits(2)
MANY = EACH * LANES.workers
BATCHED = LaneLimits(3, dict.fromkeys(Lane, 1), dict.fromkeys(Lane, 64))


def ticking(tick: float) -> Callable[[], float]:
    """A clock that goes on by ``tick`` seconds whenever it is asked."""
    times = itertools.count()
    return lambda: next(times) * tick


class Wordy(FakeRunner):
    """Speaks long enough to be measured, or nearly."""

    def __init__(self, words: int = 2000) -> None:
        super().__init__()
        self._words = words

    def push_text(self, utterance: int, delta: str, *, flush: bool, end: bool) -> bool:
        return super().push_text(utterance, "a" * self._words, flush=flush, end=end)


class Batched(Wordy):
    """A step takes its time however many are in it, as on a device. That is more than what a busy
    machine adds to one, so that large batches cost less here too."""

    def step(self, utterances: Sequence[int]) -> list[StepResult]:
        time.sleep(0.005)
        return super().step(utterances)


class Silent(FakeRunner):
    """Makes nothing of any text."""

    def push_text(self, utterance: int, delta: str, *, flush: bool, end: bool) -> bool:
        return False


class Closed(FakeRunner):
    """Takes nobody."""

    def open(self, request: Request) -> None:
        raise ValueError("closed today")


class Stuck(FakeRunner):
    """Does not come back."""

    def step(self, utterances: tuple[int, ...]) -> list[StepResult]:  # type: ignore[override]
        self.entered.release()
        self.gate.wait()
        return super().step(utterances)


class Later(Wordy):
    """Says later that a text can be spoken, or that it has ended."""

    hear: Hear
    dead = False

    def follow(self, hear: Hear) -> None:
        self.hear = hear

    def push_text(self, utterance: int, delta: str, *, flush: bool, end: bool) -> bool:
        steppable = super().push_text(utterance, delta, flush=flush, end=end)
        self.hear(RunnerDead("gone") if self.dead else [Answer(utterance, steppable)])
        return False


def test_a_rehearsal_measures_and_leaves_nothing_behind() -> None:
    runner = Wordy()
    capacity = rehearse(runner, LANES, monotonic, patience=60.0)
    assert capacity.known
    assert capacity.cost(1) > 0.0
    assert len(runner.opened) == MANY
    assert sorted(runner.closed) == sorted(runner.opened)
    assert runner.speeches == {}
    assert all(number < 0 for number in runner.opened), "no listener has such a number"


def test_a_model_that_says_little_is_asked_again() -> None:
    runner = Wordy(words=20)
    assert rehearse(runner, LANES, monotonic, patience=60.0).known
    assert MANY < len(runner.opened) <= ROUNDS * MANY
    assert sorted(runner.closed) == sorted(runner.opened)


def test_a_model_that_says_too_little_is_measured_as_it_serves() -> None:
    runner = Silent()
    assert not rehearse(runner, LANES, monotonic).known
    assert runner.speeches == {}


def test_a_model_that_takes_nobody_is_left_to_refuse_those_who_ask() -> None:
    assert not rehearse(Closed(), LANES, monotonic).known


def test_work_that_breaks_ends_what_it_was_for() -> None:
    runner = FakeRunner(MODEL)
    runner.push_text = lambda utterance, delta, *, flush, end: FakeRunner.push_text(  # type: ignore[method-assign]
        runner, utterance, "!", flush=flush, end=end
    )
    assert not rehearse(runner, LANES, monotonic).known
    assert runner.speeches == {}


def test_a_rehearsal_that_takes_too_long_is_given_up() -> None:
    runner = Wordy()
    assert not rehearse(runner, LANES, ticking(0.5), patience=2.0).known
    assert runner.speeches == {}


class Slow(Wordy):
    """Is at work when time is up."""

    def step(self, utterances: tuple[int, ...]) -> list[StepResult]:  # type: ignore[override]
        time.sleep(0.2)
        return super().step(utterances)


def test_work_that_ends_late_leaves_nothing_behind() -> None:
    runner = Slow()
    assert not rehearse(runner, LANES, monotonic, patience=0.05).known
    assert sorted(runner.closed) == sorted(runner.opened)
    assert runner.speeches == {}


def test_work_that_does_not_come_back_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Stuck()
    runner.gate.clear()

    class Begun(SimpleQueue[object]):
        """What workers bring back is waited for once all of them are at work."""

        def get(self, block: bool = True, timeout: float | None = None) -> object:
            assert all(runner.entered.acquire(timeout=PATIENCE) for _ in range(LANES.workers))
            return super().get(block, timeout)

    monkeypatch.setattr(rehearsal, "ENDS_WITHIN", 0.05)
    monkeypatch.setattr(rehearsal, "SimpleQueue", Begun)
    assert not rehearse(runner, LANES, monotonic, patience=0.05).known
    assert len(runner.closed) == MANY - LANES.workers, "those at work are left alone"
    runner.gate.set()


def test_lanes_that_work_in_batches_are_shown_few_some_and_many() -> None:
    runner = Batched(words=200)
    capacity = rehearse(runner, BATCHED, monotonic, patience=60.0, most=1000)
    assert len(runner.opened) == CROWDS[0] + CROWDS[1] + 64, "as many as the lane takes"
    assert sorted(runner.closed) == sorted(runner.opened)
    assert 0.0 < capacity.cost(64) < capacity.cost(1)


def test_no_more_are_spoken_to_than_there_are_slots() -> None:
    assert crowds(BATCHED, 8) == (2, 8, 8)
    assert crowds(BATCHED, 1) == (1, 1, 1)
    assert crowds(LANES, 1) == (MANY,) * ROUNDS


def test_a_model_that_answers_later_is_waited_for() -> None:
    runner = Later()
    assert rehearse(runner, LANES, monotonic, patience=60.0, follow=runner.follow).known
    assert sorted(runner.closed) == sorted(runner.opened)


def test_a_model_that_never_answers_is_not_waited_for_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rehearsal, "ANSWERED_WITHIN", 0.01)
    runner = Silent()
    follow = Later().follow
    assert not rehearse(runner, LANES, monotonic, patience=60.0, follow=follow).known
    assert sorted(runner.closed) == sorted(runner.opened)


def test_a_model_that_ends_is_left_for_the_engine_to_find() -> None:
    runner = Later()
    runner.dead = True
    assert not rehearse(runner, LANES, monotonic, patience=60.0, follow=runner.follow).known
