"""What /metrics tells, in Prometheus text format through the official client library.

Label values come from fixed sets, so that no client can grow the number of series.
"""

import asyncio
from collections.abc import Iterable
from typing import Final, Protocol

from playhead.engine.types import Request
from playhead.gateway import logs
from playhead.gateway.blame import Cause
from playhead.gateway.slack import Smoothed
from playhead.gateway.trace import Trace
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.registry import Collector

# A creation time beside every counter doubles what is scraped and tells nothing here.
disable_created_metrics()  # type: ignore[no-untyped-call]

REFUSALS: Final = (
    "connections",
    "connections_per_address",
    "connections_per_key",
    "accept_rate",
    "unauthorized",
    "guesses",
    "misplaced_key",
    "role",
    "tickets",
    "no_keys",
    "draining",
    "not_ready",
    "origin",
    "subprotocol",
    "request",
    "overloaded",
    "resume_failed",
    "rate_limited",
    "slow_consumer",
    "other",
)
CODECS: Final = ("pcm_s16le", "pcm_f32le", "mulaw", "alaw", "opus")
RESUMES: Final = (
    "resumed",  # and nothing was lost
    "ended",  # the session is over; its owner was told what is known of it
    "unknown",  # never here, or long ago: another node, a restart
    "token",  # not the owner's
    "replay_lost",  # more was missed than is kept
)
_LATENCY: Final = (0.01, 0.02, 0.03, 0.045, 0.06, 0.09, 0.12, 0.2, 0.3, 0.5, 1, 2, 5)
_DEPTH: Final = (0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5)
_ERROR: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_STALL: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
_LAG: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1)


class Tracer(Protocol):
    """Where utterances are traced to, see :mod:`playhead.gateway.tracing`."""

    def begin(self, session: str, request: Request, now: float) -> Trace | None:
        """A trace for an utterance, or None when this one is left out."""

    def end(self, trace: Trace, outcome: str, now: float) -> None:
        """The utterance is over."""


class _Read(Collector):
    """Figures that were read already."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


class Metrics:
    """The process's instruments. Event loop only; one instance per gateway."""

    def __init__(self) -> None:
        self.tracer: Tracer | None = None
        self.registry = CollectorRegistry()
        self._listening()
        self._stalling()
        self._speaking()
        self._serving()
        ProcessCollector(registry=self.registry)

    def _listening(self) -> None:
        """How soon listeners hear, and how much they hold."""
        self.ttfa = self._histogram(
            "playhead_ttfa_seconds",
            "From the last text received before an utterance's first audio to that audio "
            "entering the send queue",
            _LATENCY,
        )
        self.first_text_to_audio = self._histogram(
            "playhead_first_text_to_audio_seconds",
            "From an utterance's first text to its first audio entering the send queue",
            _LATENCY,
        )
        self.depth = self._histogram(
            "playhead_listener_depth_seconds",
            "Audio that a playing listener reports to hold",
            _DEPTH,
        )
        self.open_loop_error = self._histogram(
            "playhead_open_loop_error_seconds",
            "How far a guess from what was sent alone is off what playing listeners report to hold",
            _ERROR,
        )

    def _stalling(self) -> None:
        """Who ran dry, and whose fault it was."""
        self._stalls = Counter(
            "playhead_stalls",
            "Times that a listener ran dry inside an utterance, by who was late",
            ["cause"],
            registry=self.registry,
        )
        self._stall_seconds = Histogram(
            "playhead_stall_seconds",
            "How long listeners stayed dry, by who was late",
            ["cause"],
            buckets=_STALL,
            registry=self.registry,
        )
        self._worst_stall = Gauge(
            "playhead_worst_stall_seconds",
            "The longest stall since the start, by who was late",
            ["cause"],
            registry=self.registry,
        )
        self._worst = dict.fromkeys(Cause, 0.0)
        for cause in Cause:
            self._stalls.labels(cause)
            self._stall_seconds.labels(cause)
            self._worst_stall.labels(cause)

    def _speaking(self) -> None:
        """What became of speech."""
        self.audio_sent = self._counter(
            "playhead_audio_sent_seconds", "Audio put into send queues, in playing time"
        )
        self.audio_heard = self._counter(
            "playhead_audio_heard_seconds",
            "Audio heard of utterances that have ended, in playing time",
        )
        self.audio_wasted = self._counter(
            "playhead_audio_wasted_seconds",
            "Audio sent and never heard of utterances that have ended, in playing time",
        )
        self.barge_in_waste = self._histogram(
            "playhead_barge_in_waste_seconds",
            "Audio sent and never heard of a cancelled utterance, in playing time",
            _DEPTH,
        )
        self.encoder_cpu = self._labelled(
            "playhead_encoder_cpu_seconds", "Processor time of wire encoders", "codec", CODECS
        )
        self.encoded = self._labelled(
            "playhead_encoded_seconds",
            "Audio that wire encoders took, in playing time",
            "codec",
            CODECS,
        )
        self.encoder_failures = self._counter(
            "playhead_encoder_failures", "Utterances that a wire encoder's fault ended"
        )
        self.utterances = self._labelled(
            "playhead_utterances", "Ended utterances", "outcome", ("done", "cancelled", "failed")
        )

    def _serving(self) -> None:
        """Connections, and what is the process's own."""
        self.sessions = self._gauge("playhead_sessions", "Sessions, with or without a socket")
        self.connections = self._gauge("playhead_connections", "Open WebSocket connections")
        self.invalid_messages = self._counter(
            "playhead_invalid_messages", "Client messages that were answered with an error"
        )
        self.resumes = self._labelled(
            "playhead_resumes", "Attempts to return to a session, by outcome", "outcome", RESUMES
        )
        self.slow_readers = self._counter(
            "playhead_slow_reader_holds", "Times that speech was held for a client not reading"
        )
        self._refusals = self._labelled(
            "playhead_refusals", "What was refused, by reason", "reason", REFUSALS
        )
        self._gauge(
            "playhead_log_lines_dropped", "Log lines that nobody was there to take"
        ).set_function(logs.dropped)
        self.slack = self._gauge("playhead_slack_ratio", "What the tightest resource has left")
        self.lag = Smoothed()
        self.loop_lag = self._histogram(
            "playhead_loop_lag_seconds", "How late the event loop runs a timer", _LAG
        )
        self.loop_lag_now = self._gauge(
            "playhead_loop_lag_last_seconds", "The latest loop lag sample"
        )

    def refused(self, reason: str) -> None:
        """Count a refusal; reasons outside :data:`REFUSALS` count as ``other``."""
        self._refusals.labels(reason if reason in REFUSALS else "other").inc()

    def stalled(self, cause: Cause, seconds: float) -> None:
        """A stall is over."""
        self._stalls.labels(cause).inc()
        self._stall_seconds.labels(cause).observe(seconds)
        self._worst[cause] = max(self._worst[cause], seconds)
        self._worst_stall.labels(cause).set(self._worst[cause])

    def observe_lag(self, seconds: float) -> None:
        """One loop lag sample."""
        self.loop_lag.observe(seconds)
        self.lag.add(seconds)
        self.loop_lag_now.set(seconds)

    async def written(self) -> bytes:
        """The current state in Prometheus text format, written down by another thread: hundreds
        of series take long enough for listeners to notice. The figures are all read at once, by
        the caller's."""
        return await asyncio.to_thread(generate_latest, _Read(list(self.registry.collect())))

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(name, text, registry=self.registry)

    def _labelled(self, name: str, text: str, label: str, values: Iterable[str]) -> Counter:
        """A counter of which every series exists from the start."""
        counter = Counter(name, text, [label], registry=self.registry)
        for value in values:
            counter.labels(value)
        return counter

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, buckets=buckets, registry=self.registry)
