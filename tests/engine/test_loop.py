"""The engine's thread: turns taken by hand, then the real thing with real threads."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from doubles import FRAME, FakeRunner, machine, report, request
from machine import PATIENCE
from playhead.engine import loop
from playhead.engine.lead import LeadLimits
from playhead.engine.loop import Engine, EngineConfig
from playhead.engine.picture import EnginePicture
from playhead.engine.places import GIVEN_AWAY
from playhead.engine.policy import PolicyConfig
from playhead.engine.types import (
    PLACE_KEPT,
    AudioChunk,
    EngineEvent,
    Finish,
    Finished,
    Lane,
    ListenerState,
    ModelCounts,
    Request,
    RunnerDead,
    StepResult,
    TextWarning,
)
from playhead.engine.watchdog import TICK, Watchdog

WAIT = PATIENCE
FAR = PolicyConfig(lead=LeadLimits(fixed=1000.0))


class Mailbox:
    """Takes events from the engine's thread; tests wait for what they need to see."""

    def __init__(self) -> None:
        self.calls: list[list[EngineEvent]] = []
        self.threads: set[str] = set()
        self._changed = threading.Condition()

    def __call__(self, events: list[EngineEvent]) -> None:
        with self._changed:
            self.calls.append(events)
            self.threads.add(threading.current_thread().name)
            self._changed.notify_all()

    def events(self, utterance: int) -> list[EngineEvent]:
        return [event for call in self.calls for event in call if event.utterance == utterance]

    def finished(self, utterance: int) -> list[Finished]:
        return [event for event in self.events(utterance) if isinstance(event, Finished)]

    def wait(self, ready: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(ready, WAIT)

    def end_of(self, utterance: int) -> Finished:
        """Wait for the terminal event and check that there is one only."""
        self.wait(lambda: bool(self.finished(utterance)))
        (finished,) = self.finished(utterance)
        return finished


def still(policy: PolicyConfig = FAR) -> tuple[Engine, Mailbox, FakeRunner]:
    """An engine that was not started: turns are taken by calling ``step``."""
    runner, mailbox = FakeRunner(), Mailbox()
    return Engine(runner, EngineConfig(machine(), policy), mailbox), mailbox, runner


@contextmanager
def running(
    policy: PolicyConfig = FAR, runner: FakeRunner | None = None
) -> Iterator[tuple[Engine, Mailbox, FakeRunner]]:
    runner, mailbox = runner or FakeRunner(), Mailbox()
    engine = Engine(runner, EngineConfig(machine(), policy), mailbox)
    engine.start()
    try:
        yield engine, mailbox, runner
    finally:
        runner.gate.set()
        engine.stop()


def say(engine: Engine, number: int, text: str, client: str | None = None) -> None:
    engine.submit(request(number, client))
    engine.push_text(number, text, end=True)


# -- turns by hand ----------------------------------------------------------------------------


def test_a_turn_delivers_all_its_events_in_one_call() -> None:
    engine, mailbox, runner = still()
    engine.submit(request(1, voice="nobody"))
    for number in (2, 3):
        say(engine, number, "abc")
        engine.cancel(number)
    engine.step(5.0)
    (call,) = mailbox.calls
    assert [event.utterance for event in call] == [1, 2, 3]
    assert runner.closed == [2, 3]
    engine.step(6.0)
    assert len(mailbox.calls) == 1, "nothing to tell, no call"


def test_an_unknown_voice_is_a_refusal_that_names_it() -> None:
    engine, mailbox, runner = still()
    engine.submit(request(1, voice="nobody"))
    engine.push_text(1, "abc", end=True)
    engine.step(5.0)
    (finished,) = mailbox.finished(1)
    assert (finished.reason, finished.code, finished.retry_after) == (
        Finish.FAILED,
        "bad_value",
        None,
    )
    assert "'nobody'" in finished.message
    assert runner.opened == []


def test_a_full_house_refuses_with_a_time_to_come_back() -> None:
    engine, mailbox, runner = still(PolicyConfig(max_live=1))
    say(engine, 1, "abc")
    say(engine, 2, "abc")
    engine.step(5.0)
    (finished,) = mailbox.finished(2)
    assert (finished.reason, finished.code) == (Finish.FAILED, "overloaded")
    assert finished.retry_after is not None
    assert finished.retry_after > 0
    assert (runner.opened, runner.closed) == ([1], []), "the model is not asked"
    assert mailbox.events(1) == []


def test_a_place_that_is_given_away_is_free_before_the_model_is_asked() -> None:
    class OneSlot(FakeRunner):
        def open(self, request: Request) -> None:
            assert not self.speeches, "the slot is taken"
            super().open(request)

    runner, mailbox = OneSlot(), Mailbox()
    engine = Engine(runner, EngineConfig(machine(), PolicyConfig(max_live=1)), mailbox)
    engine.submit(request(1))
    engine.hold(1, ListenerState.SUSPENDED, 5.0)
    engine.step(5.0)
    engine.submit(request(2))
    engine.step(5.0 + PLACE_KEPT)
    assert (runner.opened, runner.closed) == ([1, 2], [1])
    (finished,) = mailbox.finished(1)
    assert (finished.code, finished.message) == ("overloaded", GIVEN_AWAY)
    assert mailbox.finished(2) == []


def test_of_several_reports_the_latest_counts() -> None:
    engine, _, _ = still()
    say(engine, 1, "abc")
    say(engine, 2, "abc")
    for number, at in ((1, 1.0), (2, 1.0), (1, 2.0), (1, 3.0)):
        engine.report(report(number, 0, 0, ListenerState.IDLE, at), 100.0 + at)
    engine.step(104.0)
    assert engine.stats().reports == 2
    engine.report(report(1, 0, 0, ListenerState.IDLE, 2.5), 105.0)  # older than the one taken
    engine.cancel(1)
    engine.step(105.0)
    engine.report(report(1, 0, 0), 106.0)  # of nobody
    engine.step(106.0)
    assert engine.stats().reports == 2


def test_a_report_counts_from_when_it_arrived() -> None:
    engine, _, _ = still()
    engine.submit(request(1))
    engine.step(100.0)
    (stream,) = engine._scheduler.streams()
    stream.playhead.on_sent(1000, 100.0)
    engine.report(report(1, 1000, 900, at=1.0), 100.2)
    engine.step(100.5)
    assert stream.playhead.deadline(100.5) == pytest.approx(101.1)


def test_holds_and_delays_reach_the_listener() -> None:
    engine, _, _ = still()
    say(engine, 1, "abc", "ann")
    engine.delay("ann", 0.2)
    engine.hold(1, ListenerState.PAUSED, 99.0)
    engine.step(100.0)
    (stream,) = engine._scheduler.streams()
    assert stream.playhead.frozen
    assert stream.playhead.one_way == 0.2
    engine.hold(1, None, 101.0)
    engine.forget("ann")
    engine.step(102.0)
    assert not stream.playhead.frozen
    assert stream.playhead.deadline(102.0) == 101.0, "counts from when it was said"


def test_a_turn_says_when_the_next_is_due() -> None:
    engine, _, _ = still()
    assert engine.step(5.0) is None
    assert engine.stats().at == 5.0


def test_calls_that_no_graph_held_are_told() -> None:
    runner, calls = FakeRunner(), [4, 9]
    config = EngineConfig(machine(), FAR, counts=lambda: ModelCounts(calls.pop(0)))
    engine = Engine(runner, config, Mailbox())
    assert engine.stats().model.uncaptured == 0
    for now, wanted in ((5.0, 4), (6.0, 9)):
        engine.step(now)
        assert engine.stats().model.uncaptured == wanted


def test_text_for_what_is_over_never_reaches_the_model() -> None:
    engine, mailbox, runner = still()
    engine.push_text(9, "@", end=True)
    say(engine, 1, "abc")
    engine.cancel(1)
    engine.push_text(1, "@")
    engine.step(5.0)
    assert runner.closed == [1]
    assert mailbox.finished(1)[0].reason is Finish.CANCELLED


def test_text_that_the_model_cannot_take_fails_its_utterance_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine, mailbox, runner = still()
    say(engine, 1, "abc")
    push = runner.push_text

    def picky(utterance: int, delta: str, *, flush: bool, end: bool) -> bool:
        if delta == "too much":
            raise ValueError("the text takes 9 positions: at most 8 fit")
        return push(utterance, delta, flush=flush, end=end)

    monkeypatch.setattr(runner, "push_text", picky)
    say(engine, 2, "too much")
    engine.step(5.0)
    (failed,) = mailbox.finished(2)
    assert (failed.reason, failed.code) == (Finish.FAILED, "bad_value")
    assert failed.message == "the text takes 9 positions: at most 8 fit"
    assert mailbox.finished(1) == []
    assert not caplog.records, "a client's fault is no fault of the server"


# -- threads ----------------------------------------------------------------------------------


def test_an_utterance_is_spoken() -> None:
    with running() as (engine, mailbox, runner):
        engine.submit(request(1))
        engine.push_text(1, "Hello ", flush=True)
        mailbox.wait(lambda: sum(isinstance(e, AudioChunk) for e in mailbox.events(1)) > 0)
        engine.push_text(1, "World~", end=True)
        finished = mailbox.end_of(1)
        assert (finished.reason, finished.samples) == (Finish.COMPLETE, 12 * FRAME)
        *spoken, last = mailbox.events(1)
        assert last is finished
        chunks = [event for event in spoken if isinstance(event, AudioChunk)]
        assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
        assert "".join(word.text for chunk in chunks for word in chunk.words) == "HW"
        assert sum(isinstance(event, TextWarning) for event in spoken) == 1
        assert mailbox.threads == {"playhead-engine"}
        assert engine.info is runner.info
    assert runner.closed == [1]
    assert engine.dead is None


def test_many_at_once_are_all_spoken() -> None:
    with running() as (engine, mailbox, runner):
        for number in range(20):
            say(engine, number, "a" * 30, f"client-{number % 7}")
        for number in range(20):
            assert mailbox.end_of(number).samples == 30 * FRAME
    assert sorted(runner.closed) == list(range(20))
    assert engine.stats().live == 0


@pytest.mark.parametrize("text", ["ab?", "ab#", "ab!", "ab%", "ab@"])
def test_a_fault_of_the_model_costs_one_utterance(text: str) -> None:
    with running() as (engine, mailbox, runner):
        for number in (1, 3):
            say(engine, number, "a" * 30)
        say(engine, 2, text)
        for number in (1, 3):
            assert mailbox.end_of(number).samples == 30 * FRAME
        failed = mailbox.end_of(2)
        assert (failed.reason, failed.code) == (Finish.FAILED, "engine_error")
        assert "broke" in failed.message
        say(engine, 4, "abc")
        assert mailbox.end_of(4).reason is Finish.COMPLETE
    assert sorted(runner.closed) == [1, 2, 3, 4]
    assert engine.dead is None


def test_a_model_that_cannot_open_or_close_an_utterance_costs_no_other() -> None:
    runner = FakeRunner()
    runner.open_faults[1] = MemoryError("no room")
    runner.close_faults[2] = OSError("cannot let go")
    with running(runner=runner) as (engine, mailbox, _):
        for number in (1, 2, 3):
            say(engine, number, "abc")
        failed = mailbox.end_of(1)
        assert (failed.code, failed.message) == ("engine_error", "MemoryError: no room")
        for number in (2, 3):
            assert mailbox.end_of(number).reason is Finish.COMPLETE
        say(engine, 4, "abc")
        assert mailbox.end_of(4).reason is Finish.COMPLETE
    assert engine.dead is None


def test_cancel_is_answered_while_the_model_is_at_work() -> None:
    with running() as (engine, mailbox, runner):
        runner.gate.clear()
        say(engine, 1, "abcd")
        assert runner.entered.acquire(timeout=WAIT)
        engine.cancel(1)
        assert mailbox.end_of(1).reason is Finish.CANCELLED
        assert runner.closed == [], "the model still works for it"
        runner.gate.set()
        say(engine, 2, "abcd")
        mailbox.end_of(2)
    assert sorted(runner.closed) == [1, 2]


def test_a_parked_utterance_goes_on_by_itself() -> None:
    with running(PolicyConfig(lead=LeadLimits(fixed=0.2))) as (engine, mailbox, _):
        say(engine, 1, "a" * 8)  # 0.64 s
        assert mailbox.end_of(1).samples == 8 * FRAME
        assert len(mailbox.calls) > 1


def test_stop_ends_the_threads_and_waits_for_the_work() -> None:
    with running() as (engine, _, runner):
        runner.gate.clear()
        say(engine, 1, "abcd")
        assert runner.entered.acquire(timeout=WAIT)
    names = [thread.name for thread in threading.enumerate()]
    assert not any(name.startswith("playhead-") for name in names)
    assert runner.steps == [(1,)]


# -- the engine itself breaks -----------------------------------------------------------------


def test_when_the_engine_dies_everybody_is_told_once_and_all_others_refused() -> None:
    with running() as (engine, mailbox, runner):
        runner.gate.clear()
        for number in (1, 2):
            say(engine, number, "a" * 8)
        engine.submit(request(3))
        assert runner.entered.acquire(timeout=WAIT)
        engine.cancel(2)
        mailbox.end_of(2)
        engine.submit(request(3))  # speaking the same utterance twice is a fault of the gateway
        engine.submit(request(4))
        for number in (1, 3, 4):
            finished = mailbox.end_of(number)
            assert (finished.reason, finished.code) == (Finish.FAILED, "engine_error")
            assert finished.message == "the engine stopped: ValueError"
        assert isinstance(engine.dead, ValueError)
        say(engine, 5, "abc")
        assert mailbox.end_of(5).code == "engine_error"
        engine.cancel(1)
        engine.push_text(3, "abc")
        engine.report(report(1, 0, 0), 1.0)
        runner.gate.set()
    for number in (1, 2, 3, 4, 5):
        assert len(mailbox.finished(number)) == 1


def test_a_fault_of_the_device_ends_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(utterances: object) -> list[StepResult]:
        raise RunnerDead("illegal memory access")

    with running() as (engine, mailbox, runner):
        monkeypatch.setattr(runner, "step", fail)
        say(engine, 1, "abc")
        assert mailbox.end_of(1).message == "the engine stopped: RunnerDead"
        assert isinstance(engine.dead, RunnerDead)


@pytest.mark.parametrize("call", ["open", "push_text", "close"])
def test_a_model_that_is_gone_when_it_is_asked_ends_the_engine_for_all_alike(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as an utterance that the model cannot open, while others go on."""

    def fail(*_: object, **__: object) -> bool:
        raise RunnerDead("killed")

    engine, mailbox, runner = still()
    engine.submit(request(1))
    engine.step(0.0)
    monkeypatch.setattr(runner, call, fail)
    say(engine, 2, "abc")
    if call == "close":
        engine.cancel(2)
    engine._run()
    assert isinstance(engine.dead, RunnerDead)
    assert mailbox.end_of(1).message == "the engine stopped: RunnerDead"
    assert mailbox.end_of(2).reason is (Finish.CANCELLED if call == "close" else Finish.FAILED)
    assert mailbox.end_of(2).message in ("", "the engine stopped: RunnerDead")


def test_what_was_ready_to_be_told_is_told_before_the_engine_dies() -> None:
    engine, mailbox, _ = still()
    say(engine, 1, "abc")
    engine.cancel(1)
    engine.submit(request(2, voice="nobody"))
    engine.submit(request(3))
    engine.submit(request(3))
    engine._run()
    assert [mailbox.end_of(number).reason for number in (1, 2, 3)] == [
        Finish.CANCELLED,
        Finish.FAILED,
        Finish.FAILED,
    ]
    assert mailbox.end_of(2).code == "bad_value"


IMPATIENT = EngineConfig(machine(), FAR, stuck_after=0.3)


def test_a_lane_that_does_not_come_back_ends_the_engine(caplog: pytest.LogCaptureFixture) -> None:
    runner, mailbox = FakeRunner(), Mailbox()
    engine = Engine(runner, IMPATIENT, mailbox)
    engine.start()
    runner.gate.clear()
    say(engine, 1, "abcd")
    say(engine, 2, "abcd")
    for number in (1, 2):
        assert mailbox.end_of(number).message == "the engine stopped: Stuck"
    assert "lm lane) has not come back" in str(engine.dead)
    say(engine, 3, "abcd")
    assert mailbox.end_of(3).code == "engine_error"
    runner.gate.set()
    engine.stop()
    assert len(mailbox.calls) == 2, "what comes back too late is not told"


def test_a_model_that_holds_up_the_engines_own_thread_ends_the_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner, mailbox, freed = FakeRunner(), Mailbox(), threading.Event()

    def hang(utterance: int, delta: str, **_: bool) -> bool:
        assert freed.wait(WAIT)
        return False

    engine = Engine(runner, IMPATIENT, mailbox)
    engine.start()
    engine.submit(request(1))
    while engine.stats().live == 0:
        threading.Event().wait(0.001)
    monkeypatch.setattr(runner, "push_text", hang)
    engine.push_text(1, "abcd", end=True)
    engine.cancel(1)
    assert mailbox.end_of(1).message == "the engine stopped: Stuck"
    assert mailbox.threads == {"playhead-watchdog"}
    assert "the engine's thread" in str(engine.dead)
    freed.set()
    engine.stop()
    assert len(mailbox.finished(1)) == 1, "the thread that went on after all tells nothing"


def test_a_busy_engine_is_not_stuck() -> None:
    """Whoever looks finds it at work, and never at the same piece. Time is the watchdog's alone."""
    dog = Watchdog(2.5 * TICK)
    with running() as (engine, mailbox, runner):
        for number in range(8):
            runner.gate.clear()
            say(engine, number, "abcd")
            assert runner.entered.acquire(timeout=WAIT)
            seen = [engine._at_work() for _ in range(2)]
            assert all("worker" in " ".join(at_work) for at_work in seen)
            told = [dog.look(at_work, (2 * number + n) * TICK) for n, at_work in enumerate(seen)]
            assert told == [None, None]
            runner.gate.set()
            mailbox.end_of(number)
            while runner.entered.acquire(blocking=False):
                pass


def test_stop_does_not_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loop, "STOP_PATIENCE", 0.05)
    with running() as (engine, _, runner):
        runner.gate.clear()
        say(engine, 1, "abcd")
        assert runner.entered.acquire(timeout=WAIT)
        engine.stop()
        assert "does not end" in caplog.text


def test_dying_with_nobody_to_tell_says_nothing() -> None:
    def broken() -> float:
        raise ZeroDivisionError

    mailbox = Mailbox()
    engine = Engine(FakeRunner(), EngineConfig(machine(), FAR), mailbox, clock=broken)
    engine._run()
    assert isinstance(engine.dead, ZeroDivisionError)
    assert mailbox.calls == []


def test_an_onlooker_is_shown_the_engine_on_its_own_thread() -> None:
    engine, _, _ = still()
    seen: list[EnginePicture] = []
    say(engine, 1, "abcd")
    engine.look((1, 2), seen.append)
    assert seen == []
    engine.step(5.0)
    (picture,) = seen
    assert picture.stats.at == 5.0
    assert list(picture.beliefs) == [1]


def test_lanes_are_counted() -> None:
    with running() as (engine, mailbox, _):
        say(engine, 1, "abcd")
        mailbox.end_of(1)
    lanes = engine.stats().lanes
    assert lanes[Lane.LM].dispatches >= 1
    assert lanes[Lane.URGENT].dispatches >= 1
