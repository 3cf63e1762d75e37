"""What /metrics tells, in Prometheus text format through the official client library.

Label values come from fixed sets, so that no client can grow the number of series.
"""

from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

# A creation time beside every counter doubles what is scraped and tells nothing here.
disable_created_metrics()  # type: ignore[no-untyped-call]

REFUSALS: Final = (
    "connections",
    "connections_per_address",
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
_LATENCY: Final = (0.01, 0.02, 0.03, 0.045, 0.06, 0.09, 0.12, 0.2, 0.3, 0.5, 1, 2, 5)
_DEPTH: Final = (0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5)
_LAG: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1)


class Metrics:
    """The process's instruments. Event loop only; one instance per gateway."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
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
        self.loop_lag = self._histogram(
            "playhead_loop_lag_seconds", "How late the event loop runs a timer", _LAG
        )
        self.loop_lag_now = self._gauge(
            "playhead_loop_lag_last_seconds", "The latest loop lag sample"
        )
        self.stalls = self._counter(
            "playhead_stalls", "Times that a listener reported to have run dry inside an utterance"
        )
        self.invalid_messages = self._counter(
            "playhead_invalid_messages", "Client messages that were answered with an error"
        )
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
        self.sessions = self._gauge("playhead_sessions", "Sessions, with or without a socket")
        self.connections = self._gauge("playhead_connections", "Open WebSocket connections")
        self.resumed = self._counter("playhead_resumed_sessions", "Sessions that were resumed")
        self.encoder_failures = self._counter(
            "playhead_encoder_failures", "Utterances that a wire encoder's fault ended"
        )
        self.slow_readers = self._counter(
            "playhead_slow_reader_holds", "Times that speech was held for a client not reading"
        )
        self.utterances = Counter(
            "playhead_utterances", "Ended utterances", ["outcome"], registry=self.registry
        )
        for outcome in ("done", "cancelled", "failed"):
            self.utterances.labels(outcome)
        self._refusals = Counter(
            "playhead_refusals", "What was refused, by reason", ["reason"], registry=self.registry
        )
        for reason in REFUSALS:
            self._refusals.labels(reason)

    def refused(self, reason: str) -> None:
        """Count a refusal; reasons outside :data:`REFUSALS` count as ``other``."""
        self._refusals.labels(reason if reason in REFUSALS else "other").inc()

    def observe_lag(self, seconds: float) -> None:
        """One loop lag sample."""
        self.loop_lag.observe(seconds)
        self.loop_lag_now.set(seconds)

    def text(self) -> bytes:
        """The current state in Prometheus text format."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(name, text, registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, buckets=buckets, registry=self.registry)
