"""What one session adds to the metrics. Pure but for the instruments and the log it feeds."""

import logging
from dataclasses import dataclass, field
from typing import Final

from playhead.engine.playhead import Playhead
from playhead.engine.types import (
    AudioChunk,
    Finish,
    Finished,
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
)
from playhead.gateway.metrics import Metrics

log: Final = logging.getLogger("playhead.session")

REFUSING: Final = ("overloaded", "draining", "resume_failed", "rate_limited")


@dataclass(slots=True)
class _Watched:
    """One utterance that the engine speaks."""

    blame: Blame
    guess: Playhead  # open loop: what a server without reports would believe
    texts: list[float] = field(default_factory=list)  # first and last
    silent: bool = True


class SessionMeter:
    """Watches a session go by. Times are monotonic seconds; ``one_way`` is the measured delay to
    its client."""

    def __init__(self, metrics: Metrics, model_rate: int, session: str = "") -> None:
        self.one_way = 0.0
        self._metrics = metrics
        self._model_rate = model_rate
        self._session = session
        self._wire_rate = 0
        self._utterances: dict[int, _Watched] = {}
        self._sent: dict[int, int] = {}  # wire samples by epoch
        self.source = "none"  # who told last where the listener is

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
        self._utterances[request.utterance] = _Watched(Blame(rate * speed), guess)

    def text(self, utterance: int, characters: int, end: bool, now: float) -> None:
        """Text, a flush or an end was passed to the engine."""
        if watched := self._utterances.get(utterance):
            watched.texts = [*watched.texts[:1], now]
            watched.blame.text(characters, end, now)

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
        if chunk is None:
            return
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
        self._stalled(report.utterance, watched.blame.report(report, self.one_way, arrived))
        if report.state is ListenerState.PLAYING:
            depth = report.buffered / self._model_rate
            self._metrics.depth.observe(depth)
            self._metrics.open_loop_error.observe(abs(watched.guess.depth(arrived) - depth))

    def finished(self, event: Finished) -> None:
        """The engine is done with it; what it made in full may still be played."""
        if event.reason in (Finish.FAILED, Finish.CANCELLED):
            self.settled(event.utterance)

    def settled(self, utterance: int) -> None:
        """Nobody listens to it any more."""
        if watched := self._utterances.pop(utterance, None):
            self._stalled(utterance, watched.blame.over())

    def _stalled(self, utterance: int, stalls: list[Stall]) -> None:
        for stall in stalls:
            self._metrics.stalled(stall.cause, stall.seconds)
            log.warning(
                "the listener ran dry for %.0f ms: %s",
                1_000 * stall.seconds,
                stall.cause,
                extra={"session": self._session, "utterance": utterance},
            )

    # -- messages -----------------------------------------------------------------------------

    def sent(self, message: ServerMessage) -> None:
        """A message leaves, or is kept for a socket that comes back."""
        if isinstance(message, Audio):
            self._sent[message.epoch] = self._sent.get(message.epoch, 0) + message.samples
            self._metrics.audio_sent.inc(self._seconds(message.samples))
        elif isinstance(message, Ready):
            self._wire_rate = message.sample_rate
        elif isinstance(message, Done | Cancelled | Failed):
            self._ended(message)
        elif isinstance(message, ErrorEvent):
            self._metrics.invalid_messages.inc()
            self._refusal(message.code)

    def _ended(self, message: Done | Cancelled | Failed) -> None:
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
