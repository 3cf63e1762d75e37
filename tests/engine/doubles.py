"""Stand-ins for the model and the lanes, scripted by the text they are given.

Each character of the text is one frame (of 80 samples at 1 kHz, unless told otherwise), whose
samples tell their own positions (see ``ramp``). Some characters are more than that:
  A-Z  a word starts here          ~  a warning comes with it
  ?    its step fails, alone       #  decoding it fails, alone
  !    the whole step batch fails  %  the whole decode batch fails
  @    taking the text fails
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from machine import PATIENCE
from playhead.engine.plan import Dispatch, Plan
from playhead.engine.policy import LaneLimits, PolicyConfig, Refusal
from playhead.engine.scheduler import Scheduler
from playhead.engine.types import (
    AudioChunk,
    ChunkWork,
    EngineEvent,
    Finished,
    Lane,
    ListenerState,
    ModelInfo,
    Pcm,
    Report,
    Request,
    StepResult,
    TextWarning,
    Word,
)

HZ = 1_000
FRAME = 80
FRAME_SECONDS = FRAME / HZ
MODEL = ModelInfo("fake", ("voice",), HZ, FRAME, (1, 2, 4, 8), 4)


def request(utterance: int, client: str | None = None, **more: object) -> Request:
    values = {"utterance": utterance, "client": client or f"client-{utterance}", "voice": "voice"}
    return Request(**{**values, **more})  # type: ignore[arg-type]


def machine(workers: int = 2, reserve: int = 1, batch: int = 1) -> LaneLimits:
    slots = dict.fromkeys(Lane, workers)
    return LaneLimits(workers, slots, dict.fromkeys(Lane, batch), reserve)


def ramp(start: int, stop: int) -> Pcm:
    """float32 [stop - start]: positions, exactly, and below full scale."""
    return np.arange(start, stop, dtype=np.float32) / 2**16


def report(
    utterance: int,
    received: int,
    buffered: int,
    state: ListenerState = ListenerState.PLAYING,
    at: float = 0.0,
) -> Report:
    consumed = received - buffered
    return Report(utterance, received, consumed, consumed, buffered, 0, state, client_time=at)


@dataclass
class Speech:
    """One utterance in the fake model."""

    text: str = ""
    made: int = 0
    ended: bool = False
    told: bool = False  # that it has ended
    flushed: set[int] = field(default_factory=set)


class FakeRunner:
    """A ``Runner`` that also watches whether it is used as its contract says."""

    def __init__(self, info: ModelInfo = MODEL) -> None:
        self.info = info
        self.open_faults: dict[int, Exception] = {}
        self.close_faults: dict[int, Exception] = {}
        self.speeches: dict[int, Speech] = {}
        self.opened: list[int] = []
        self.closed: list[int] = []
        self.steps: list[tuple[int, ...]] = []
        self.decodes: list[tuple[ChunkWork, ...]] = []
        self.gate = threading.Event()  # work waits for it
        self.gate.set()
        self.entered = threading.Semaphore(0)  # released when work has come to the gate
        self._running: set[tuple[str, int]] = set()
        self._lock = threading.Lock()

    def open(self, request: Request) -> None:
        if request.voice not in self.info.voices:
            raise ValueError(f"there is no voice {request.voice!r}")
        if request.utterance in self.open_faults:
            raise self.open_faults[request.utterance]
        self.opened.append(request.utterance)
        self.speeches[request.utterance] = Speech()

    def push_text(self, utterance: int, delta: str, *, flush: bool, end: bool) -> bool:
        if "@" in delta:
            raise ZeroDivisionError("the front end broke")
        speech = self.speeches[utterance]
        speech.text += delta
        speech.ended = speech.ended or end
        if flush:
            speech.flushed.add(len(speech.text))
        return speech.made < len(speech.text) or (speech.ended and not speech.told)

    def step(self, utterances: Sequence[int]) -> list[StepResult]:
        self._enter("step", utterances)
        self.steps.append(tuple(utterances))
        try:
            if any("!" in self._next(utterance) for utterance in utterances):
                raise RuntimeError("the step broke")
            return [self._step(utterance) for utterance in utterances]
        finally:
            self._leave("step", utterances)

    def decode(self, chunks: Sequence[ChunkWork]) -> list[Pcm | BaseException]:
        utterances = [chunk.utterance for chunk in chunks]
        self._enter("decode", utterances)
        self.decodes.append(tuple(chunks))
        try:
            if any("%" in self._text(chunk) for chunk in chunks):
                raise RuntimeError("the decoder broke")
            return [self._decode(chunk) for chunk in chunks]
        finally:
            self._leave("decode", utterances)

    def close(self, utterance: int) -> None:
        assert not {kind for kind, number in self._running if number == utterance}
        self.closed.append(utterance)
        del self.speeches[utterance]
        if utterance in self.close_faults:
            raise self.close_faults[utterance]

    def _enter(self, kind: str, utterances: Sequence[int]) -> None:
        with self._lock:
            for utterance in utterances:
                assert (kind, utterance) not in self._running
                self._running.add((kind, utterance))
        self.entered.release()
        assert self.gate.wait(PATIENCE)

    def _leave(self, kind: str, utterances: Sequence[int]) -> None:
        with self._lock:
            self._running -= {(kind, utterance) for utterance in utterances}

    def _next(self, utterance: int) -> str:
        speech = self.speeches[utterance]
        stop = min(
            [speech.made + self.info.step_frames]
            + [place for place in speech.flushed if place > speech.made]
        )
        return speech.text[speech.made : stop]

    def _step(self, utterance: int) -> StepResult:
        speech = self.speeches[utterance]
        text, first = self._next(utterance), speech.made
        speech.made += len(text)
        done = speech.made == len(speech.text)
        speech.told = done and speech.ended
        return StepResult(
            utterance,
            len(text),
            boundary=speech.told or speech.made in speech.flushed,
            hungry=done and not speech.ended,
            ended=speech.told,
            words=tuple(self._word(c, first + i) for i, c in enumerate(text) if c.isupper()),
            warnings=tuple(
                TextWarning(utterance, "unspeakable_text", "skipped", c) for c in text if c == "~"
            ),
            error="the step of this one broke" if "?" in text else None,
        )

    def _text(self, chunk: ChunkWork) -> str:
        return self.speeches[chunk.utterance].text[chunk.first : chunk.first + chunk.frames]

    def _decode(self, chunk: ChunkWork) -> Pcm | BaseException:
        if "#" in self._text(chunk):
            return ArithmeticError("the decoding of this one broke")
        size = self.info.frame_samples
        return ramp(chunk.first * size, (chunk.first + chunk.frames) * size)

    def _word(self, text: str, frame: int) -> Word:
        return Word(text, frame * self.info.frame_samples, frame, frame + 1)


@dataclass
class Heard:
    """What was delivered of one utterance."""

    samples: int = 0
    chunks: list[AudioChunk] = field(default_factory=list)
    words: str = ""
    warnings: int = 0
    finished: Finished | None = None


class Rig:
    """A scheduler, the fake model and lanes that run when told, under a clock set by hand.

    Checks of every event that audio is contiguous and nothing follows the terminal event; of every
    plan that it takes no more than the machine has; of every freed utterance that nothing runs.
    """

    def __init__(
        self,
        lanes: LaneLimits | None = None,
        config: PolicyConfig | None = None,
        model: ModelInfo = MODEL,
    ) -> None:
        self.lanes = lanes or machine()
        self.scheduler = Scheduler(model, self.lanes, config or PolicyConfig())
        self.runner = FakeRunner(model)
        self.now = 100.0
        self.running: list[Dispatch] = []
        self.heard: dict[int, Heard] = {}
        self.closed: list[int] = []
        self.wake_at: float | None = None

    def submit(self, wanted: Request) -> Refusal | None:
        refusal = self.scheduler.submit(wanted, self.now)
        if refusal is None:
            self.runner.open(wanted)
            self.heard[wanted.utterance] = Heard()
        return refusal

    def text(self, utterance: int, delta: str, *, flush: bool = False, end: bool = False) -> None:
        if self.scheduler.speaks(utterance):
            steppable = self.runner.push_text(utterance, delta, flush=flush, end=end)
            self.scheduler.text(utterance, steppable, delta, end=end)

    def say(self, utterance: int, text: str, client: str | None = None, **more: object) -> None:
        """Submit a whole utterance."""
        assert self.submit(request(utterance, client, **more)) is None
        self.text(utterance, text, end=True)

    def plan(self) -> list[Dispatch]:
        """Plan once; what was started also stands in ``running``."""
        plan: Plan = self.scheduler.plan(self.now)
        self.wake_at = plan.wake_at
        for dispatch in plan.dispatches:
            self.running.append(dispatch)
            self._check_capacity(dispatch)
        self.collect()
        return list(plan.dispatches)

    def finish(self, dispatch: Dispatch, service: float = 0.01) -> None:
        """Let the model do a dispatch and commit what comes of it."""
        self.running.remove(dispatch)
        try:
            if dispatch.lane is Lane.LM:
                steps = self.runner.step(dispatch.steps)
                self.scheduler.commit_steps(dispatch, steps, service, self.now)
            else:
                chunks = self.runner.decode(dispatch.chunks)
                self.scheduler.commit_chunks(dispatch, chunks, service, self.now)
        except RuntimeError as fault:
            self.scheduler.commit_fault(dispatch, fault, service, self.now)
        self.collect()

    def settle(self, turns: int = 200) -> None:
        """Plan and finish until nothing starts any more."""
        for _ in range(turns):
            if not self.plan() and not self.running:
                return
            for dispatch in list(self.running):
                self.finish(dispatch)
        raise AssertionError("the scheduler does not come to rest")

    def collect(self) -> None:
        """Take events and freed utterances, and check them."""
        for event in self.scheduler.events():
            self._take(event)
        for utterance in self.scheduler.closed():
            assert utterance not in self.closed
            busy = [u for dispatch in self.running for u in dispatch.utterances]
            assert utterance not in busy
            self.closed.append(utterance)
            self.runner.close(utterance)

    def _take(self, event: EngineEvent) -> None:
        heard = self.heard[event.utterance]
        assert heard.finished is None, "something follows the terminal event"
        match event:
            case AudioChunk():
                assert event.index == len(heard.chunks)
                assert event.start == heard.samples
                expected = ramp(event.start, event.start + len(event.pcm))
                np.testing.assert_array_equal(event.pcm, expected)
                heard.samples += len(event.pcm)
                heard.chunks.append(event)
                for word in event.words:
                    assert event.start <= word.start < heard.samples
                    heard.words += word.text
            case TextWarning():
                heard.warnings += 1
            case Finished():
                assert event.samples == heard.samples
                heard.finished = event

    def _check_capacity(self, started: Dispatch) -> None:
        assert len(started.utterances) <= self.lanes.batch[started.lane]
        lanes = [dispatch.lane for dispatch in self.running]
        for lane in Lane:
            assert self.scheduler.busy(lane) >= lanes.count(lane)
            assert lanes.count(lane) <= self.lanes.slots[lane]
        assert len(lanes) <= self.lanes.workers
        yields = self.scheduler.dispatcher.yields
        if started.lane is Lane.BACKGROUND and self.lanes.workers > 1 and not yields:
            assert len(lanes) <= self.lanes.workers - self.lanes.reserve
