"""An engine without a voice: one chunk of a known wave per word, behind the engine's door.

A turn of its thread gives every live utterance that is not held its next chunk. The sound depends
only on the position in the utterance, so that a test knows each sample beforehand. Words that
start with ``!`` play a part: ``!fail`` ends the utterance with an error, ``!endless`` never ends,
``!refuse`` is refused as overload is.
"""

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np
from playhead.engine.picture import Belief, EnginePicture
from playhead.engine.stats import EngineStats, LaneStats
from playhead.engine.types import (
    AudioChunk,
    EngineEvent,
    Finish,
    Finished,
    Lane,
    ListenerState,
    ModelCounts,
    ModelInfo,
    Pcm,
    Report,
    Request,
    Word,
)

RATE = 24_000
CHUNK = 1_920
INFO = ModelInfo(
    name="fake",
    voices=("alto", "tenor"),
    sample_rate=RATE,
    frame_samples=CHUNK,
    chunk_frames=(1, 2, 4),
    step_frames=1,
)


def wave(start: int, samples: int) -> Pcm:
    """float32 [samples]: what every utterance sounds like from ``start`` on."""
    position = np.arange(start, start + samples, dtype=np.int64)
    return (((position * 7919) % 2001 - 1000) / 2000).astype(np.float32)


@dataclass
class Speech:
    """One live utterance."""

    request: Request
    text: str = ""
    taken: int = 0  # characters already turned into words
    ended: bool = False
    flushed: bool = False
    held: ListenerState | None = None
    words: deque[tuple[str, int]] = field(default_factory=deque)
    chunks: int = 0
    endless: bool = False


class FakeEngine:
    """Same door as the real engine. ``interval``: seconds between turns."""

    def __init__(
        self, deliver: Callable[[list[EngineEvent]], None], *, interval: float = 0.001
    ) -> None:
        self.info = INFO
        self.dead: BaseException | None = None
        self.interval = interval
        self.requests: list[Request] = []
        self.cancelled: list[int] = []
        self.holds: list[tuple[int, ListenerState | None]] = []
        self.reports: list[Report] = []
        self.delays: list[tuple[str, float]] = []
        self.forgotten: list[str] = []
        self.pauses: list[tuple[float, float, int]] = []
        self.live: dict[int, Speech] = {}
        self.made: dict[int, int] = {}  # samples by utterance, ended ones too
        self.deliveries = 0
        self.turns = 0
        self._deliver = deliver
        self._commands: deque[Callable[[], None]] = deque()
        self._events: list[EngineEvent] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def submit(self, request: Request) -> None:
        self._commands.append(lambda: self._submit(request))

    def push_text(
        self, utterance: int, delta: str, *, flush: bool = False, end: bool = False
    ) -> None:
        self._commands.append(lambda: self._push(utterance, delta, flush, end))

    def cancel(self, utterance: int) -> None:
        self._commands.append(lambda: self._cancel(utterance))

    def report(self, report: Report, now: float) -> None:
        self.reports.append(report)

    def hold(self, utterance: int, state: ListenerState | None, now: float) -> None:
        self._commands.append(lambda: self._hold(utterance, state))

    def delay(self, client: str, one_way: float) -> None:
        self.delays.append((client, one_way))

    def forget(self, client: str) -> None:
        self.forgotten.append(client)

    def paused(self, seconds: float, now: float, gateway: int = 0) -> None:
        self.pauses.append((seconds, now, gateway))

    tells = True

    def stats(self) -> EngineStats:
        lanes = {lane: LaneStats(0, 1, 2.5, 3, 4, 0.01, (2, 1, *[0] * 8)) for lane in Lane}
        return EngineStats(
            at=time.monotonic(),
            live=len(self.live),
            max_live=64,
            utilisation=0.25,
            lanes=lanes,
            promoted=5,
            refused=0,
            reports=len(self.reports),
            reports_stale=0,
            reports_invalid=1,
            reports_clamped=2,
            belief_error=0.5,
            finished={},
            parked=3,
            held=1,
            model=ModelCounts(7, 48, 3),
            belief_errors=(0, 1, 0, 0, 0, 0, 0, 0, 1),
        )

    def look(self, utterances: Collection[int], see: Callable[[EnginePicture], None]) -> None:
        running = {lane: ((1, 2),) for lane in Lane}
        belief = Belief(0.5, 0.75, 2.0, 0.1, False, False)
        beliefs = {number: belief for number in utterances if number in self.live}
        self._commands.append(lambda: see(EnginePicture(self.stats(), running, beliefs)))

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.turn()
            time.sleep(self.interval)

    def turn(self) -> None:
        """Take commands, make one chunk per live utterance, deliver once."""
        self.turns += 1
        while self._commands:
            self._commands.popleft()()
        for speech in list(self.live.values()):
            if speech.held is None:
                self._speak(speech)
        events, self._events = self._events, []
        if events:
            self.deliveries += 1
            self._deliver(events)

    def _submit(self, request: Request) -> None:
        self.requests.append(request)
        self.live[request.utterance] = Speech(request)

    def _push(self, utterance: int, delta: str, flush: bool, end: bool) -> None:
        speech = self.live.get(utterance)
        if speech is None:
            return
        speech.text += delta
        speech.ended = speech.ended or end
        complete = speech.ended or flush
        for match in re.compile(r"\S+").finditer(speech.text, speech.taken):
            if match.end() == len(speech.text) and not complete:
                break
            speech.words.append((match.group(), match.start()))
            speech.taken = match.end()

    def _cancel(self, utterance: int) -> None:
        self.cancelled.append(utterance)
        self._finish(utterance, Finish.CANCELLED)

    def _hold(self, utterance: int, state: ListenerState | None) -> None:
        self.holds.append((utterance, state))
        if utterance in self.live:
            self.live[utterance].held = state

    def _speak(self, speech: Speech) -> None:
        utterance = speech.request.utterance
        if not speech.words:
            if speech.ended and not speech.endless:
                self._finish(utterance, Finish.COMPLETE)
            elif speech.endless:
                self._chunk(speech, ())
            return
        text, start = speech.words.popleft()
        if text == "!fail":
            self._finish(utterance, Finish.FAILED, "engine_error", "the voice broke")
        elif text == "!refuse":
            self._finish(utterance, Finish.FAILED, "overloaded", "too much at once", 0.25)
        else:
            speech.endless = speech.endless or text == "!endless"
            word = Word(text, speech.chunks * CHUNK, start, start + len(text))
            self._chunk(speech, (word,))

    def _chunk(self, speech: Speech, words: tuple[Word, ...]) -> None:
        utterance = speech.request.utterance
        start = speech.chunks * CHUNK
        lane = Lane.BACKGROUND if speech.chunks else Lane.URGENT
        self._events.append(
            AudioChunk(utterance, speech.chunks, start, wave(start, CHUNK), words, lane, 0.5, 0.25)
        )
        speech.chunks += 1
        self.made[utterance] = start + CHUNK

    def _finish(
        self,
        utterance: int,
        reason: Finish,
        code: str | None = None,
        message: str = "",
        retry_after: float | None = None,
    ) -> None:
        if self.live.pop(utterance, None) is not None:
            samples = self.made.get(utterance, 0)
            self._events.append(Finished(utterance, reason, samples, code, message, retry_after))
