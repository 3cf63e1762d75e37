"""Utterances as traces: the stages of their way, and a collector that hears of them."""

import asyncio
import contextlib
import gc
import http.server
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import requests
from harness import gateway
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from playhead.engine.types import AudioChunk, Lane, ListenerState, Report, Request
from playhead.gateway import checks
from playhead.gateway.settings import Settings
from playhead.gateway.trace import Stage, Trace
from playhead.gateway.tracing import PATIENCE, Session, Tracer, open_tracer


def chunk(queued_at: float, made_at: float) -> AudioChunk:
    pcm = np.zeros(100, np.float32)
    return AudioChunk(7, 0, 0, pcm, (), Lane.URGENT, None, 0.0, queued_at, made_at)


def report(received: int, heard: int) -> Report:
    return Report(7, received, heard, heard, received - heard, 0, ListenerState.PLAYING)


def full() -> Trace:
    trace = Trace("s", 7, 1.0)
    trace.on_text(1.0)
    trace.on_text(1.5)
    trace.on_audio(chunk(1.6, 1.7), False, 1.75)
    trace.on_audio(chunk(1.8, 1.9), True, 1.8)
    trace.on_text(1.9)
    trace.on_audio(None, True, 3.0)
    trace.on_report(report(0, 0), 0.01, 1.81)
    trace.on_report(report(100, 0), 0.01, 1.91)
    trace.on_report(report(100, 50), 0.01, 2.01)
    trace.on_report(report(100, 90), 0.01, 9.0)
    return trace


def test_the_stages_of_an_utterance() -> None:
    assert list(full().stages(4.0)) == [
        Stage("text", 1.0, 1.5),
        Stage("plan", 1.5, 1.6),
        Stage("lane", 1.6, 1.7),
        Stage("encode", 1.7, 1.8),
        Stage("socket", 1.8, 1.9),
        Stage("wait", 1.9, pytest.approx(2.0)),  # type: ignore[arg-type]
        Stage("heard", pytest.approx(2.0), 4.0),  # type: ignore[arg-type]
    ]
    assert full().samples == 200


def test_what_was_not_passed_has_no_stage() -> None:
    trace = Trace("s", 7, 1.0)
    assert list(trace.stages(2.0)) == []
    trace.on_audio(chunk(0.0, 0.0), True, 1.5)
    trace.on_report(report(100, 0), 0.9, 1.6)
    assert list(trace.stages(2.0)) == [Stage("socket", 1.5, 1.5)]


@contextlib.contextmanager
def cyclic() -> Iterator[list[str]]:
    """The kinds of what only a garbage collection can free, once this block has ended."""
    found: list[str] = []
    gc.freeze()  # what was there before is not looked through
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found += [type(kept).__name__ for kept in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
        gc.enable()


def tracer(ratio: float = 1.0) -> tuple[Tracer, InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    return Tracer(exporter, version="1", node="n-1", ratio=ratio), exporter


def spans(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def test_spans_hang_together() -> None:
    made, exporter = tracer()
    trace = full()
    trace.stalls.append(("engine", 0.25))
    made.end(trace, "failed", 4.0)
    made.close()
    found = spans(exporter)
    root = found["utterance"]
    assert root.end_time is not None
    assert root.start_time is not None
    assert root.end_time - root.start_time == pytest.approx(3e9, abs=1e3)
    assert dict(root.attributes or {})["playhead.session"] == "s"
    assert root.events[0].name == "stall"
    assert not root.status.is_ok
    assert root.resource.attributes["service.instance.id"] == "n-1"
    children = set(found) - {"utterance"}
    assert children == {"text", "plan", "lane", "encode", "socket", "wait", "heard"}
    for name in children:
        parent = found[name].parent
        assert parent is not None
        assert parent.span_id == root.context.span_id  # type: ignore[union-attr]


@pytest.mark.parametrize("jump", [-7_200.0, 7_200.0])
def test_spans_follow_a_wall_clock_that_was_set(
    jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, exporter = tracer()
    monkeypatch.setattr("playhead.engine.clock.wall", lambda: 1_700_000_000.0 + jump)
    made.end(full(), "done", 4.0)
    made.close()
    root = spans(exporter)["utterance"]
    assert root.end_time == pytest.approx((1_700_000_000.0 + jump) * 1e9, abs=1e3)
    assert root.start_time == pytest.approx((1_700_000_000.0 + jump - 3.0) * 1e9, abs=1e3)


def test_a_share_is_traced() -> None:
    request = Request(7, "c", "alto")
    assert tracer(0.0)[0].begin("s", request, 1.0) is None
    assert tracer(1.0)[0].begin("s", request, 1.0) == Trace("s", 7, 1.0)


def test_a_server_traces_its_utterances() -> None:
    made, exporter = tracer()

    async def main() -> None:
        async with gateway() as running:
            running.server.metrics.tracer = made
            client = await running.greeted(reports=False)
            await client.say("one two three")
            await client.ending()

    asyncio.run(main())
    made.close()
    found = spans(exporter)
    assert {"utterance", "text"} <= set(found)
    assert dict(found["utterance"].attributes or {})["playhead.outcome"] == "done"


def test_a_collector_hears_of_them() -> None:
    got: list[tuple[str, bytes]] = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/v1/traces"
        made = open_tracer(url, version="1", node=None, ratio=1.0)
        made.end(full(), "complete", 4.0)
        made.close()
        server.shutdown()
        thread.join()
    ((path, body),) = got
    assert path == "/v1/traces"
    assert b"utterance" in body
    assert b"playhead.session" in body


def test_a_collector_that_never_answers_costs_traces_and_nothing_else() -> None:
    with socket.create_server(("127.0.0.1", 0)) as hole:  # takes what is sent, says nothing
        url = f"http://127.0.0.1:{hole.getsockname()[1]}/v1/traces"
        made = open_tracer(url, version="1", node=None, ratio=1.0)

        async def main() -> None:
            async with gateway() as running:
                running.server.metrics.tracer = made
                client = await running.greeted(reports=False)
                await client.say("one two three")
                await client.ending()
                for _ in range(2_200):  # more than the queue holds
                    made.end(full(), "complete", 4.0)
                await client.say("one two three")
                await client.ending()

        asyncio.run(main())
        began = time.monotonic()
        made.close()
        assert time.monotonic() - began < 2 * PATIENCE


@pytest.mark.parametrize("how", ["refuses", "hangs"])
def test_a_delivery_that_fails_leaves_nothing_to_the_garbage_collector(how: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hole:
        url = f"http://127.0.0.1:{hole.getsockname()[1]}/"
        if how == "refuses":
            hole.close()
        session = Session()
        asked = session.prepare_request(requests.Request("POST", url, data=b"spans"))
        session.send(asked, timeout=0.01)  # what is made once for all
        with cyclic() as found:
            answer = session.send(asked, timeout=0.01)
    assert found == []
    assert answer.status_code == 503, "tried again later"
    assert "127.0.0.1" in answer.reason


def test_settings_that_cannot_work(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = replace(Settings(), traces="http://127.0.0.1:4318/v1/traces")
    assert checks.traces(Settings()).level is checks.Level.OK
    assert checks.traces(asked).level is checks.Level.OK
    assert "is no URL" in checks.traces(replace(asked, traces="collector")).text
    monkeypatch.setattr(checks, "find_spec", lambda _: None)
    assert "pip install 'playhead[traces]'" in checks.traces(asked).text
