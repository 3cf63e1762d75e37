"""Utterances as OpenTelemetry traces (extra ``traces``): one span each, with one per stage.

Spans are made when an utterance is over and handed to a thread of the library's, whose queue is
bounded: a collector that hangs costs traces, never audio.
"""

import random
import threading
from http import HTTPStatus
from typing import Any, Final

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context
from playhead.engine import clock
from playhead.engine.types import Request
from playhead.gateway.letting_go import forget_frames
from playhead.gateway.trace import Trace

NANO: Final = 1_000_000_000
PATIENCE: Final = 2.0
"""Seconds for one delivery, and for what is queued at the end."""


class Tracer:
    """Sends traces to ``exporter``; ``ratio`` of the utterances are traced."""

    def __init__(
        self, exporter: SpanExporter, *, version: str, node: str | None, ratio: float
    ) -> None:
        attributes = {"service.name": "playhead", "service.version": version}
        attributes |= {"service.instance.id": node} if node else {}
        self._provider = TracerProvider(
            resource=Resource.create(attributes), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("playhead")
        self._ratio = ratio
        self._epoch = 0.0

    def begin(self, session: str, request: Request, now: float) -> Trace | None:
        """A trace for an utterance, or None when this one is left out."""
        # Not a secret: an even share is all that is wanted.
        if self._ratio < 1.0 and random.random() >= self._ratio:
            return None
        return Trace(session, request.utterance, now)

    def end(self, trace: Trace, outcome: str, now: float) -> None:
        """The utterance is over."""
        # Spans carry wall time, stamps are monotonic; the wall clock may have been set since the
        # start, and a machine that slept has stopped the other one.
        self._epoch = clock.wall() - now
        span = self._tracer.start_span(
            "utterance",
            kind=SpanKind.SERVER,
            start_time=self._stamp(trace.opened if trace.text is None else trace.text),
            attributes={
                "playhead.session": trace.session,
                "playhead.utterance": trace.utterance,
                "playhead.outcome": outcome,
                "playhead.samples": trace.samples,
                "playhead.stalls": len(trace.stalls),
            },
        )
        for cause, seconds in trace.stalls:
            span.add_event("stall", {"cause": cause, "seconds": seconds}, self._stamp(now))
        if outcome == "failed":
            span.set_status(Status(StatusCode.ERROR))
        context = set_span_in_context(span)
        for stage in trace.stages(now):
            start, stop = self._stamp(stage.start), self._stamp(stage.end)
            self._tracer.start_span(stage.name, context, start_time=start).end(stop)
        span.end(self._stamp(now))

    def close(self) -> None:
        """Send what is queued, for ``PATIENCE`` seconds at most: the library waits for a collector
        that hangs, each batch anew, for half a minute."""
        ending = threading.Thread(target=self._provider.shutdown, daemon=True)
        ending.start()
        ending.join(PATIENCE)

    def _stamp(self, at: float) -> int:
        return int((at + self._epoch) * NANO)


class Session(requests.Session):
    """Answers where a collector cannot be reached, instead of raising: the libraries on the way
    keep such a fault in their own frames, which hold the spans and what was to be sent, until a
    garbage collection that does not come (``engine/garbage.py``)."""

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """Raises nothing for a collector that refuses, vanishes or hangs."""
        try:
            return super().send(request, **kwargs)
        except (requests.ConnectionError, requests.Timeout) as fault:
            forget_frames(fault)
            answer = requests.Response()
            # One after which the exporter tries again, as it does after such a fault.
            answer.status_code, answer.reason = HTTPStatus.SERVICE_UNAVAILABLE, str(fault)
            answer.request, answer.url = request, request.url or ""
            return answer


def open_tracer(endpoint: str, *, version: str, node: str | None, ratio: float) -> Tracer:
    """A tracer that sends to an OTLP endpoint over HTTP."""
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=PATIENCE, session=Session())
    return Tracer(exporter, version=version, node=node, ratio=ratio)
