"""What one session adds to the metrics. Pure but for the instruments and the log it feeds."""

import logging
from dataclasses import dataclass, field
from typing import Final

from playhead.engine.playhead import Playhead
from playhead.engine.types import (
    AudioChunk,
    ListenerState,
    Report,
    Request,
    Source,
)
from playhead.gateway.blame import Blame, Stall
from playhead.gateway.messages import (
    Audio,
    Cancelled,
    Done,
    ErrorEvent,
    Failed,
    Ready,
    ServerMessage,
    Started,
)
from playhead.gateway.metrics import Metrics
from playhead.gateway.roster import Listener
from playhead.gateway.trace import Trace

log: Final = logging.getLogger("playhead.session")

REFUSING: Final = ("overloaded", "draining", "resume_failed", "rate_limited")


@dataclass(slots=True)
class _Watched:
    """One utterance that the engine speaks."""

    blame: Blame
    guess: Playhead  # open loop: what a server without reports would believe
    texts: list[float] = field(default_factory=list)  # first and last
    silent: bool = True
    trace: Trace | None = None


class SessionMeter:
    """Watches a session go by. Times are monotonic seconds; ``one_way`` is the measured delay to
    its client."""

    def __init__(
        self, metrics: Metrics, model_rate: int, session: str = "", dialect: str = "playhead"
    ) -> None:
        self.one_way = 0.0
        self._metrics = metrics
        self._model_rate = model_rate
        self._session = session
        self._dialect = dialect
        self._wire_rate = 0
        self._utterances: dict[int, _Watched] = {}
        self._sent: dict[int, int] = {}  # wire samples by epoch
        self._waiting: list[int] = []  # epochs not handed to the engine yet, in order
        self._numbers: dict[int, int] = {}  # the engine's, by epoch
        self.source = "none"  # who told last where the listener is
        self.codec, self.sample_rate = "", 0
        self.lane = ""  # of the last chunk
        self.stalls, self.worst = 0, 0.0  # seconds

    def listener(self, utterance: int | None) -> Listener:
        """A row of the roster; the engine works on ``utterance``."""
        return Listener(
            session=self._session,
            dialect=self._dialect,
            codec=self.codec,
            sample_rate=self.sample_rate,
            utterance=utterance,
            lane=self.lane,
            stalls=self.stalls,
            worst=self.worst,
        )

    # -- utterances, by the engine's numbers ------------------------------------------------------

    def opened(self, request: Request, now: float) -> None:
        """An utterance was handed to the engine."""
        rate, speed = self._model_rate, request.playback_rate
        guess = Playhead(
            rate,
            now,
            start_threshold=request.start_threshold,
            playback_rate=speed,
            one_way=self.one_way,
            use_reports=False,
            ahead=request.ahead,
        )
        watched = _Watched(Blame(rate * speed), guess)
        if tracer := self._metrics.tracer:
            watched.trace = tracer.begin(self._session, request, now)
        self._utterances[request.utterance] = watched
        if self._waiting:
            self._numbers[self._waiting.pop(0)] = request.utterance

    def text(self, utterance: int, characters: int, end: bool, now: float) -> None:
        """Text, a flush or an end was passed to the engine."""
        if watched := self._utterances.get(utterance):
            watched.texts = [*watched.texts[:1], now]
            watched.blame.text(characters, end, now)
            if watched.trace:
                watched.trace.on_text(now)

    def audio(self, utterance: int, chunk: AudioChunk | None, leaves: bool, now: float) -> None:
        """Audio was encoded; ``chunk`` None: what its encoder had kept. ``leaves``: a message
        goes out with it."""
        watched = self._utterances.get(utterance)
        if watched is None:
            return
        if leaves and watched.silent and watched.texts:
            watched.silent = False
            self._metrics.ttfa.observe(now - watched.texts[-1])
            self._metrics.first_text_to_audio.observe(now - watched.texts[0])
        if watched.trace:
            watched.trace.on_audio(chunk, leaves, now)
        if chunk is None:
            return
        self.lane = chunk.lane.value
        spoken_to = chunk.words[-1].char_end if chunk.words else 0
        kept = now - chunk.made_at if chunk.made_at else 0.0
        watched.blame.sent(len(chunk.pcm), spoken_to, kept, self.one_way, now)
        watched.guess.one_way = self.one_way
        watched.guess.on_sent(len(chunk.pcm), now)

    def blocked(self) -> None:
        """The client's socket takes nothing: its speech is held."""
        self._metrics.slow_readers.inc()
        for watched in self._utterances.values():
            watched.blame.blocked()

    def report(self, report: Report, arrived: float) -> None:
        """A checked report, in model samples."""
        self.source = report.source.value
        if report.source is Source.SOCKET:
            return  # an inference of ours shows no stall and no depth
        watched = self._utterances.get(report.utterance)
        if watched is None:
            return
        stalls = watched.blame.report(report, self.one_way, arrived)
        self._stalled(report.utterance, stalls, watched.trace)
        if watched.trace:
            watched.trace.on_report(report, self.one_way, arrived)
        if report.state is ListenerState.PLAYING:
            depth = report.buffered / self._model_rate
            self._metrics.depth.observe(depth)
            self._metrics.open_loop_error.observe(abs(watched.guess.depth(arrived) - depth))

    def _stalled(self, utterance: int, stalls: list[Stall], trace: Trace | None) -> None:
        for stall in stalls:
            self.stalls, self.worst = self.stalls + 1, max(self.worst, stall.seconds)
            if trace:
                trace.stalls.append((stall.cause.value, stall.seconds))
            self._metrics.stalled(stall.cause, stall.seconds)
            log.warning(
                "the listener ran dry for %.0f ms: %s",
                1_000 * stall.seconds,
                stall.cause,
                extra={"session": self._session, "utterance": utterance},
            )

    # -- messages -----------------------------------------------------------------------------

    def sent(self, message: ServerMessage, now: float) -> None:
        """A message leaves, or is kept for a socket that comes back."""
        if isinstance(message, Started):
            self._waiting.append(message.epoch)
        elif isinstance(message, Audio):
            self._sent[message.epoch] = self._sent.get(message.epoch, 0) + message.samples
            self._metrics.audio_sent.inc(self._seconds(message.samples))
        elif isinstance(message, Ready):
            self._wire_rate = self.sample_rate = message.sample_rate
            self.codec = message.codec
        elif isinstance(message, Done | Cancelled | Failed):
            self._ended(message, now)
        elif isinstance(message, ErrorEvent):
            self._metrics.invalid_messages.inc()
            self._refusal(message.code)

    def _settle(self, message: Done | Cancelled | Failed, now: float) -> None:
        """Nobody listens to it any more."""
        if message.epoch in self._waiting:
            self._waiting.remove(message.epoch)
        utterance = self._numbers.pop(message.epoch, 0)
        watched = self._utterances.pop(utterance, None)
        if watched is None:
            return
        self._stalled(utterance, watched.blame.over(), watched.trace)
        if watched.trace and (tracer := self._metrics.tracer):
            tracer.end(watched.trace, message.type, now)

    def _ended(self, message: Done | Cancelled | Failed, now: float) -> None:
        self._settle(message, now)
        sent = self._sent.pop(message.epoch, 0)
        heard = min(message.heard, sent)
        wasted = self._seconds(sent - heard)
        self._metrics.audio_heard.inc(self._seconds(heard))
        self._metrics.audio_wasted.inc(wasted)
        self._metrics.utterances.labels(message.type).inc()
        if isinstance(message, Cancelled):
            self._metrics.barge_in_waste.observe(wasted)
        if isinstance(message, Failed):
            self._refusal(message.code)
        log.debug(
            "utterance %s: %.2f s sent, %.2f s heard",
            message.type,
            self._seconds(sent),
            self._seconds(heard),
            extra={"session": self._session, "epoch": message.epoch},
        )

    def _refusal(self, code: str) -> None:
        if code in REFUSING:
            self._metrics.refused(code)

    def _seconds(self, wire_samples: int) -> float:
        return wire_samples / self._wire_rate if self._wire_rate else 0.0
