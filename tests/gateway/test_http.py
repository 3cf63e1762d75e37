"""Plain HTTP: the page, health, readiness, metrics, and nothing else."""

import http.client
import json
from typing import Any

import pytest
from fake_engine import FakeEngine
from harness import Gateway, gateway
from machine import PATIENCE
from playhead.gateway.http import HttpSite, Page, Readiness, load_pages
from websockets.datastructures import Headers
from websockets.http11 import Request

PAGES = {"/": Page("text/html; charset=utf-8", b"<p>"), "/a.js": Page("text/javascript", b"1")}


def site(ready: bool = True) -> HttpSite:
    state = Readiness(ready, "ready" if ready else "draining", {"sessions": 3})
    return HttpSite(PAGES, lambda: state, lambda: b"figures")


def ask(path: str, method: str = "GET", *, ready: bool = True) -> Any:
    return site(ready).respond(Request(path, Headers(), method))


@pytest.mark.parametrize(
    ("path", "content_type", "body"),
    [
        ("/", "text/html; charset=utf-8", b"<p>"),
        ("/?utm=1", "text/html; charset=utf-8", b"<p>"),
        ("/a.js", "text/javascript", b"1"),
        ("/healthz", "text/plain; charset=utf-8", b"ok\n"),
        ("/metrics", "text/plain; version=1.0.0; charset=utf-8", b"figures"),
    ],
)
def test_what_there_is(path: str, content_type: str, body: bytes) -> None:
    answer = ask(path)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith(content_type.partition(";")[0])
    assert answer.body == body
    assert answer.headers["Content-Length"] == str(len(body))
    assert answer.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    ["/nothing", "/../pyproject.toml", "/%2e%2e/x", "//a.js", "/a.js/", "/A.JS", "/\x00", "a.js"],
)
def test_what_there_is_not(path: str) -> None:
    assert ask(path).status_code == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_other_methods(method: str) -> None:
    answer = ask("/", method)
    assert answer.status_code == 405
    assert answer.headers["Allow"] == "GET, HEAD"


def test_head_has_the_length_and_no_body() -> None:
    answer = ask("/", "HEAD")
    assert (answer.status_code, answer.headers["Content-Length"], answer.body) == (200, "3", b"")


def test_pages_are_isolated_and_may_load_only_their_own() -> None:
    headers = ask("/").headers
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cross-Origin-Embedder-Policy"] == "require-corp"
    assert "default-src 'self'; connect-src 'self' ws: wss:" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(("ready", "status"), [(True, 200), (False, 503)])
def test_readiness(ready: bool, status: int) -> None:
    answer = ask("/readyz", ready=ready)
    assert answer.status_code == status
    body = json.loads(answer.body)
    assert body == {
        "ready": ready,
        "reason": "ready" if ready else "draining",
        "load": {"sessions": 3},
    }


def test_the_bundled_page_is_found() -> None:
    pages = load_pages()
    assert pages["/"] is pages["/index.html"]
    assert pages["/"].content_type == "text/html; charset=utf-8"
    assert not any(path.endswith((".py", ".pyc")) for path in pages)


def fetch(port: int, path: str, method: str = "GET") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, answer.read()


def over_the_wire(check: Any, **settings: Any) -> None:
    import asyncio

    async def main() -> None:
        async with gateway(**settings) as running:
            await asyncio.to_thread(check, running)

    asyncio.run(main())


def test_over_a_real_socket() -> None:
    def check(running: Gateway) -> None:
        assert fetch(running.port, "/healthz") == (200, b"ok\n")
        assert fetch(running.port, "/healthz", "HEAD") == (200, b"")
        assert fetch(running.port, "/", "POST")[0] == 405
        status, body = fetch(running.port, "/metrics")
        assert status == 200
        assert b"playhead_ttfa_seconds_bucket" in body
        status, body = fetch(running.port, "/readyz")
        load = json.loads(body)["load"]
        assert status == 200
        assert load["max_utterances"] == 64
        assert load["random_weights"] is False
        assert load["waiting"] == {"lm": 1, "background": 1, "urgent": 1}

    over_the_wire(check)


def test_not_ready_when_the_engine_died() -> None:
    def check(running: Gateway) -> None:
        engine: FakeEngine = running.engine
        engine.dead = RuntimeError("gone")
        status, body = fetch(running.port, "/readyz")
        assert status == 503
        assert json.loads(body)["reason"] == "engine_dead"
        assert fetch(running.port, "/healthz") == (503, b"the speech engine has stopped\n")

    over_the_wire(check)
