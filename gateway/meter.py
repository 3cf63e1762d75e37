"""What one session adds to the metrics. Pure but for the instruments it feeds."""

from dataclasses import dataclass

from playhead.engine.types import ListenerState, Report
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

MAX_STALLS_PER_REPORT = 20
"""A report that claims more at once is no measurement."""


@dataclass(slots=True)
class _Texts:
    first: float
    last: float


class SessionMeter:
    """Watches effects go by. Times are monotonic seconds."""

    def __init__(self, metrics: Metrics, model_rate: int) -> None:
        self._metrics = metrics
        self._model_rate = model_rate
        self._wire_rate = 0
        self._texts: dict[int, _Texts] = {}  # utterances that have made no sound yet
        self._underruns: dict[int, int] = {}
        self._sent: dict[int, int] = {}  # wire samples by epoch

    def text(self, utterance: int, now: float) -> None:
        """Text, a flush or an end was passed to the engine."""
        texts = self._texts.get(utterance)
        if texts is None:
            self._texts[utterance] = _Texts(now, now)
        else:
            texts.last = now

    def first_audio(self, utterance: int, now: float) -> None:
        """Audio of an utterance is sent; only the first time counts."""
        texts = self._texts.pop(utterance, None)
        if texts is not None:
            self._metrics.ttfa.observe(now - texts.last)
            self._metrics.first_text_to_audio.observe(now - texts.first)

    def report(self, report: Report) -> None:
        """A checked report, in model samples."""
        before = self._underruns.get(report.utterance, 0)
        fresh = min(report.underruns - before, MAX_STALLS_PER_REPORT)
        if fresh > 0:
            self._metrics.stalls.inc(fresh)
            self._underruns[report.utterance] = report.underruns
        if report.state is ListenerState.PLAYING:
            self._metrics.depth.observe(report.buffered / self._model_rate)

    def utterance_over(self, utterance: int) -> None:
        """The engine is done with it."""
        self._texts.pop(utterance, None)

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
        self._metrics.audio_heard.inc(self._seconds(heard))
        self._metrics.audio_wasted.inc(self._seconds(sent - heard))
        self._metrics.utterances.labels(message.type).inc()
        if isinstance(message, Failed):
            self._refusal(message.code)

    def _refusal(self, code: str) -> None:
        if code in ("overloaded", "draining", "resume_failed", "rate_limited"):
            self._metrics.refused(code)

    def _seconds(self, wire_samples: int) -> float:
        return wire_samples / self._wire_rate if self._wire_rate else 0.0
