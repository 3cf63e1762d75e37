"""Worker threads: each dispatch comes back once, with its results or its fault."""

import os
import threading
from collections.abc import Sequence
from itertools import count
from queue import SimpleQueue

import numpy as np
import pytest
from doubles import FRAME, FakeRunner, request
from machine import PATIENCE
from playhead.engine import lanes as lanes_module
from playhead.engine.lanes import NICENESS, Completion, CpuLanes, cpu_limits
from playhead.engine.plan import Dispatch
from playhead.engine.policy import LaneLimits
from playhead.engine.sound import NotSound
from playhead.engine.types import ChunkWork, Lane, Pcm, StepResult

WAIT = PATIENCE


class Bench:
    """Lanes over the fake model; what comes back is queued."""

    def __init__(self, workers: int = 2, runner: FakeRunner | None = None) -> None:
        self.runner = runner or FakeRunner()
        self.back: SimpleQueue[Completion] = SimpleQueue()
        ticks = count()
        self.lanes = CpuLanes(
            self.runner, cpu_limits(workers), self.back.put, lambda: float(next(ticks))
        )

    def say(self, number: int, text: str) -> None:
        self.runner.open(request(number))
        self.runner.push_text(number, text, flush=False, end=True)

    def __enter__(self) -> "Bench":
        self.lanes.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.gate.set()
        self.lanes.stop(WAIT)

    def get(self) -> Completion:
        return self.back.get(timeout=WAIT)


def step(*utterances: int) -> Dispatch:
    return Dispatch(Lane.LM, steps=utterances)


def chunk(*utterances: int, frames: int = 2, lane: Lane = Lane.URGENT) -> Dispatch:
    return Dispatch(
        lane, chunks=tuple(ChunkWork(n, 0, 0, frames, lane, None, 0.0, 0.0) for n in utterances)
    )


def test_a_machine_of_n_cores_has_n_workers_and_keeps_one_from_background_work() -> None:
    assert cpu_limits(4) == LaneLimits(
        workers=4,
        slots={Lane.LM: 4, Lane.URGENT: 4, Lane.BACKGROUND: 4},
        batch={Lane.LM: 1, Lane.URGENT: 4, Lane.BACKGROUND: 4},
        reserve=1,
    )


def test_steps_and_chunks_come_back_with_results_and_times() -> None:
    with Bench(workers=1) as bench:
        bench.say(1, "abcd")
        work = step(1)
        bench.lanes.dispatch(work)
        done = bench.get()
        assert done.dispatch is work
        assert (done.service, done.chunks, done.fault) == (1.0, None, None)
        assert done.steps is not None
        assert [(result.utterance, result.frames) for result in done.steps] == [(1, 4)]
        bench.lanes.dispatch(chunk(1))
        done = bench.get()
        assert (done.service, done.steps, done.fault) == (1.0, None, None)
        assert done.chunks is not None
        (pcm,) = done.chunks
        assert not isinstance(pcm, BaseException)
        assert len(pcm) == 2 * FRAME


def test_the_fault_of_one_stream_is_its_result() -> None:
    with Bench() as bench:
        bench.say(1, "ab")
        bench.say(2, "#b")
        bench.lanes.dispatch(chunk(1, 2, lane=Lane.BACKGROUND))
        done = bench.get()
        assert done.fault is None
        assert done.chunks is not None
        assert [isinstance(each, ArithmeticError) for each in done.chunks] == [False, True]


@pytest.mark.parametrize(("text", "work"), [("!", step(1)), ("%b", chunk(1))])
def test_a_batch_that_breaks_comes_back_as_a_fault_and_the_worker_goes_on(
    text: str, work: Dispatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Bench(workers=1) as bench:
        bench.say(1, text)
        bench.say(2, "abcd")
        bench.lanes.dispatch(work)
        done = bench.get()
        assert isinstance(done.fault, RuntimeError)
        assert (done.steps, done.chunks, done.service) == (None, None, 1.0)
        assert f"a {work.lane} batch failed" in caplog.text
        bench.lanes.dispatch(step(2))
        assert bench.get().fault is None


class Forgetful(FakeRunner):
    """Answers for other streams than it was asked for."""

    def step(self, utterances: object) -> list[StepResult]:
        return super().step([7])

    def decode(self, chunks: object) -> list:  # type: ignore[type-arg]
        return []


@pytest.mark.parametrize("work", [step(1), chunk(1)])
def test_a_model_that_mixes_up_its_streams_fails_the_batch(work: Dispatch) -> None:
    with Bench(runner=Forgetful()) as bench:
        bench.say(1, "ab")
        bench.say(7, "ab")
        bench.lanes.dispatch(work)
        done = bench.get()
        assert "not those of the batch" in str(done.fault)


def test_lanes_run_beside_each_other() -> None:
    with Bench(workers=2) as bench:
        bench.say(1, "abcd")
        bench.say(2, "abcd")
        bench.runner.gate.clear()
        bench.lanes.dispatch(step(1))
        bench.lanes.dispatch(step(2))
        for _ in range(2):
            assert bench.runner.entered.acquire(timeout=WAIT), "both are inside the model"
        bench.runner.gate.set()
        assert {bench.get().dispatch.steps for _ in range(2)} == {(1,), (2,)}


def test_stop_lets_running_work_end_and_joins_the_workers() -> None:
    bench = Bench(workers=2)
    with bench:
        bench.say(1, "abcd")
        bench.runner.gate.clear()
        bench.lanes.dispatch(step(1))
        assert bench.runner.entered.acquire(timeout=WAIT)
        names = {thread.name for thread in threading.enumerate()}
        assert {"playhead-lane-0", "playhead-lane-1"} <= names
    assert bench.get().steps is not None
    assert not any(t.name.startswith("playhead-lane") for t in threading.enumerate())


def test_workers_are_nice(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: SimpleQueue[tuple[int, int, int]] = SimpleQueue()
    monkeypatch.setattr(lanes_module.os, "setpriority", lambda *args: asked.put(args))
    with Bench(workers=1) as bench:
        bench.say(1, "abcd")
        bench.lanes.dispatch(step(1))
        bench.get()
    which, thread, niceness = asked.get(timeout=WAIT)
    assert (which, niceness) == (os.PRIO_PROCESS, NICENESS)
    assert thread != threading.main_thread().native_id


@pytest.mark.parametrize("fault", [PermissionError, AttributeError])
def test_where_priorities_cannot_be_set_workers_work_all_the_same(
    fault: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise fault

    monkeypatch.setattr(lanes_module.os, "setpriority", refuse)
    with Bench(workers=1) as bench:
        bench.say(1, "abcd")
        bench.lanes.dispatch(step(1))
        assert bench.get().steps is not None


class Noise(FakeRunner):
    """One stream's sound falls apart."""

    def decode(self, chunks: Sequence[ChunkWork]) -> list[Pcm | BaseException]:
        made = super().decode(chunks)
        return [
            np.full_like(pcm, np.nan) if chunk.utterance == 2 else pcm
            for chunk, pcm in zip(chunks, made, strict=True)
        ]


def test_what_is_no_sound_fails_its_stream_alone() -> None:
    with Bench(runner=Noise()) as bench:
        for number in (1, 2, 3):
            bench.say(number, "abcd")
        bench.lanes.dispatch(chunk(1, 2, 3))
        done = bench.get()
        assert done.chunks is not None
        assert [isinstance(each, NotSound) for each in done.chunks] == [False, True, False]


def test_who_is_at_work_can_be_seen() -> None:
    with Bench(workers=2) as bench:
        assert bench.lanes.at_work() == {}
        bench.runner.gate.clear()
        bench.say(1, "abcd")
        bench.lanes.dispatch(step(1))
        assert bench.runner.entered.acquire(timeout=WAIT)
        ((worker, piece),) = bench.lanes.at_work().items()
        assert worker.endswith("(lm lane)")
        assert piece == 1
