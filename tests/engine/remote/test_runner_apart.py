"""A model in a process of its own behind the real engine: what it says, and how it may end."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from doubles import MODEL, ramp, request
from machine import AT_ONCE, PATIENCE, kept_waiting, until
from playhead.engine import barren
from playhead.engine.answers import Relay
from playhead.engine.longest import Longest
from playhead.engine.loop import Engine, EngineConfig
from playhead.engine.policy import LaneLimits, PolicyConfig
from playhead.engine.rehearsal import rehearse
from playhead.engine.remote import runner_proxy
from playhead.engine.remote.runner_proxy import CannotStart, RunnerProxy, start
from playhead.engine.types import (
    AudioChunk,
    ChunkWork,
    EngineEvent,
    Finish,
    Finished,
    Lane,
    ModelCounts,
    RunnerDead,
    TextWarning,
)

CHILD = Path(__file__).with_name("model_child.py")
PROGRAM = [sys.executable, str(CHILD)]
TOLD_WITHIN = 1.0


@pytest.fixture(autouse=True)
def _child_finds_the_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


class Ear:
    """Hears an engine."""

    def __init__(self) -> None:
        self.events: list[EngineEvent] = []

    def finished(self, utterance: int) -> Finished:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            for event in list(self.events):
                if isinstance(event, Finished) and event.utterance == utterance:
                    return event
            time.sleep(0.002)
        raise AssertionError(f"utterance {utterance} does not end")

    def pcm(self, utterance: int) -> np.ndarray:  # type: ignore[type-arg]
        mine = [e for e in self.events if isinstance(e, AudioChunk) and e.utterance == utterance]
        return np.concatenate([chunk.pcm for chunk in mine])

    def words(self, utterance: int) -> str:
        mine = [e for e in self.events if isinstance(e, AudioChunk) and e.utterance == utterance]
        return "".join(word.text for chunk in mine for word in chunk.words)


@contextlib.contextmanager
def engine(
    settings: bytes = b"fake", stuck_after: float = 30.0, longest: Longest | None = None
) -> Iterator[tuple[Engine, Ear, RunnerProxy]]:
    runner = start(PROGRAM, settings)
    ear = Ear()
    config = EngineConfig(
        runner.limits,
        PolicyConfig(max_utilisation=1e9, longest=longest or Longest()),
        stuck_after=stuck_after,
        counts=runner.counts,
        follow=runner.follow,
        at_work=runner.at_work,
        vetted=True,
    )
    made = Engine(runner, config, ear.events.extend)
    made.start()
    try:
        yield made, ear, runner
    finally:
        made.stop()
        runner.end()


def say(made: Engine, utterance: int, *parts: str, **more: object) -> None:
    made.submit(request(utterance, **more))
    for part in parts[:-1]:
        made.push_text(utterance, part, flush=True)
    made.push_text(utterance, parts[-1], end=True)


def gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def test_speech_words_and_warnings_are_those_of_the_model() -> None:
    with engine() as (made, ear, runner):
        assert made.info == runner.info == MODEL
        texts = {number: "Abc~" + "x" * number for number in range(1, 9)}
        for number, text in texts.items():
            say(made, number, text, "Zz")
        for number, text in texts.items():
            finished = ear.finished(number)
            assert (finished.reason, finished.code) == (Finish.COMPLETE, None)
            np.testing.assert_array_equal(ear.pcm(number), ramp(0, 80 * (len(text) + 2)))
            assert ear.words(number) == "AZ"
        warned = [event for event in ear.events if isinstance(event, TextWarning)]
        assert sorted(event.utterance for event in warned) == list(texts)
        until(lambda: made.stats().model == ModelCounts(7))


def test_the_engine_comes_after_a_rehearsal() -> None:
    runner = start(PROGRAM, b"fake")
    relay, ear = Relay(runner.follow), Ear()
    try:
        lanes = LaneLimits(2, dict.fromkeys(Lane, 2), dict.fromkeys(Lane, 1))
        capacity = rehearse(runner, lanes, time.monotonic, PATIENCE, follow=relay.turn_to)
        assert capacity.known
        made = Engine(
            runner,
            EngineConfig(runner.limits, PolicyConfig(max_utilisation=1e9), follow=relay.turn_to),
            ear.events.extend,
        )
        made.start()
        say(made, 1, "Abc")
        assert ear.finished(1).reason is Finish.COMPLETE
        made.stop()
    finally:
        runner.end()


FAULTS = [
    ("a", {"voice": "nobody"}, "bad_value", "there is no voice 'nobody'"),
    ("ab@", {}, "engine_error", "ZeroDivisionError: the front end broke"),
    ("ab!", {}, "engine_error", "RuntimeError: the step broke"),
    ("ab?", {}, "engine_error", "the step of this one broke"),
    ("ab%", {}, "engine_error", "RuntimeError: the decoder broke"),
    ("ab#", {}, "engine_error", "the decoding of this one broke"),
    ("ab8", {}, "engine_error", "the model told of -1 frames in a step that gives 0 to 4"),
    (
        "9",
        {},
        "engine_error",
        "the model made float32 [2, 40] where float32 [80] was asked for",
    ),
    ("ab4", {}, "engine_error", "RuntimeError: the model's answers are not those of the batch"),
]


def test_what_fails_says_what_it_says_in_one_process_and_others_go_on() -> None:
    with engine() as (made, ear, _):
        for number, (text, more, code, message) in enumerate(FAULTS):
            say(made, number, text, **more)
            told = ear.finished(number)
            assert (told.reason, told.code, told.message) == (Finish.FAILED, code, message)
        say(made, 99, "others go on")
        assert ear.finished(99).reason is Finish.COMPLETE
        assert made.dead is None


def test_speech_that_never_ends_is_ended_and_closed_there_too() -> None:
    with engine(longest=Longest(1.0, 0.0)) as (made, ear, _):
        say(made, 1, "6 on and on")
        say(made, 2, "abc")
        assert ear.finished(2).reason is Finish.COMPLETE
        ended = ear.finished(1)
        assert ended.reason is Finish.LENGTH_BUDGET
        assert 1_000 <= ended.samples <= 1_000 + MODEL.step_frames * MODEL.frame_samples
        np.testing.assert_array_equal(ear.pcm(1), ramp(0, ended.samples))
        say(made, 3, "abc")
        assert ear.finished(3).reason is Finish.COMPLETE


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on nobody who says nothing is waited for."""
    monkeypatch.setattr(barren, "PATIENCE", 1.0)
    monkeypatch.setattr(barren, "AT_ONCE", 0.2)
    monkeypatch.setattr(barren, "PAUSE", 0.02)


@pytest.mark.parametrize("text", ["7", "$"], ids=["steps", "no step"])
def test_speech_of_which_nothing_comes_is_ended_and_closed_there_too(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine() as (made, ear, _):
        say(made, 1, text)
        say(made, 2, "abc")
        assert ear.finished(2).reason is Finish.COMPLETE
        np.testing.assert_array_equal(ear.pcm(2), ramp(0, 240))
        impatient(monkeypatch)
        ended = ear.finished(1)
        assert (ended.reason, ended.code) == (Finish.FAILED, "engine_error")
        assert "neither a sound nor an end" in ended.message
        until(lambda: made.stats().live == 0)
        assert made.dead is None


def test_a_front_end_that_takes_its_time_is_not_a_model_that_makes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    impatient(monkeypatch)
    monkeypatch.setattr(barren, "TICK", 0.05)
    with engine() as (made, ear, _):
        say(made, 1, "abc")
        assert ear.finished(1).reason is Finish.COMPLETE
        monkeypatch.setattr(barren, "PATIENCE", 0.2)
        say(made, 2, "^")  # longer than that
        assert ear.finished(2).reason is Finish.COMPLETE


def test_a_text_that_is_never_taken_is_noticed() -> None:
    with engine() as (made, ear, _):
        say(made, 1, "abc")
        assert ear.finished(1).reason is Finish.COMPLETE
        made._overseer._watchdog._patience = 0.5
        say(made, 2, "&")
        ended = ear.finished(2)
        assert (ended.reason, ended.code) == (Finish.FAILED, "engine_error")
        assert "the model's front end has not come back" in str(made.dead)


def test_text_that_follows_a_refused_request_is_nobody_s() -> None:
    with engine() as (made, ear, _):
        say(made, 1, "a", "b", "c", voice="nobody")
        assert ear.finished(1).code == "bad_value"
        say(made, 2, "fine")
        assert ear.finished(2).reason is Finish.COMPLETE
        assert sum(isinstance(event, Finished) for event in ear.events) == 2


@pytest.mark.parametrize("speaking", [False, True], ids=["idle", "at work"])
def test_a_killed_process_is_told_to_all_at_once(speaking: bool) -> None:
    with engine() as (made, ear, runner):
        made.submit(request(1))  # waits for text
        if speaking:
            say(made, 2, "3")  # its step sleeps
            until(lambda: made._lanes.at_work())
        with kept_waiting() as kept:
            killed = time.monotonic()
            os.kill(runner.pid, signal.SIGKILL)
            until(lambda: made.dead is not None)
            took = time.monotonic() - killed
        assert took < TOLD_WITHIN + kept.in_turn
        assert isinstance(made.dead, RunnerDead)
        assert str(made.dead) == "the model's process was ended by SIGKILL"
        assert ear.finished(1).code == "engine_error"
        assert "the engine stopped: RunnerDead" in ear.finished(1).message
        made.submit(request(3))
        assert ear.finished(3).reason is Finish.FAILED


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2", "the model's process ended with status 3"),
        ("5", "the model's process was ended by SIGKILL"),
        ("1", "the device is gone"),
    ],
)
def test_the_engine_ends_with_its_model_and_says_why(text: str, why: str) -> None:
    with engine() as (made, ear, _):
        say(made, 1, text)
        assert ear.finished(1).reason is Finish.FAILED
        assert isinstance(made.dead, RunnerDead)
        assert str(made.dead) == why


def test_a_step_that_does_not_come_back_is_noticed_and_its_process_ended() -> None:
    with engine(stuck_after=0.3) as (made, ear, runner):
        say(made, 1, "3")
        assert ear.finished(1).reason is Finish.FAILED
        assert "has not come back" in str(made.dead)
        made.stop()
        began = time.monotonic()
        runner.end()
        assert time.monotonic() - began < 5.0
    assert runner._process.returncode == -signal.SIGKILL


def test_a_process_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_proxy, "ENDS_WITHIN", 0.2)
    runner = start(PROGRAM, b"fake")
    os.kill(runner.pid, signal.SIGSTOP)
    runner.end()
    assert runner._process.returncode == -signal.SIGKILL


def test_signals_are_for_the_engine() -> None:
    with engine() as (made, ear, runner):
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(runner.pid, number)
        say(made, 1, "still here")
        assert ear.finished(1).reason is Finish.COMPLETE
    assert runner._process.returncode == 0


@pytest.mark.parametrize("settings", ["fake", "slowly"])
def test_a_killed_engine_leaves_no_model_behind(settings: str) -> None:
    code = f"""
import os, time
from pathlib import Path
from playhead.engine.remote.runner_proxy import start
def tell(stage, done):
    print(stage, Path(f"/proc/self/task/{{os.getpid()}}/children").read_text(), flush=True)
start({PROGRAM!r}, {settings.encode()!r}, tell)
print("ready", flush=True)
time.sleep(60)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        _, model = parent.stdout.readline().split()
        told = parent.stdout.readline().split()
        left = {int(model)} | {int(told[0])} if settings == "slowly" else {int(model)}
        while settings == "fake" and parent.stdout.readline() != "ready\n":
            pass
        assert not any(map(gone, left))
        parent.kill()
    until(lambda: all(map(gone, left)), AT_ONCE)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (b"refuse:such device", "there is no such device"),
        (b"exit:4", "its process ended with status 4 while it was loading"),
        (b"exit:0", "its process ended with status 0 while it was loading"),
    ],
)
def test_a_model_that_cannot_be_loaded_says_why(settings: bytes, why: str) -> None:
    with pytest.raises(CannotStart) as caught:
        start(PROGRAM, settings)
    assert str(caught.value) == why


def test_loading_is_told() -> None:
    told: list[tuple[str, float]] = []
    start(PROGRAM, b"fake", lambda *stage: told.append(stage)).end()
    assert told == [("loading", 0.25), ("loading", 1.0)]


def test_a_loading_that_is_given_up_leaves_nothing_behind() -> None:
    def tell(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start(PROGRAM, b"slowly", tell)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert not [c for c in children if str(CHILD) in Path(f"/proc/{c}/cmdline").read_text()]


@pytest.mark.parametrize("frames", [1, 20_000], ids=["short", "long"])
def test_sound_of_any_length_crosses_whole(frames: int) -> None:
    runner = start(PROGRAM, b"fake")
    told: list[object] = []
    runner.follow(told.append)
    try:
        runner.open(request(1))
        runner.push_text(1, "a" * frames, flush=False, end=True)
        until(lambda: told)
        (pcm,) = runner.decode([ChunkWork(1, 0, 0, frames, Lane.URGENT, None, 0.0, 0.0)])
        np.testing.assert_array_equal(pcm, ramp(0, 80 * frames))
    finally:
        runner.end()
