"""Plain HTTP beside the WebSocket: the page, health, readiness and metrics.

Every path that exists is known when the table is built; what a client asks for is only ever
looked up, never joined to a file name.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from importlib import resources
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

CONTENT_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
PAGE_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'self'; connect-src 'self' ws: wss:; object-src 'none'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    # A page that may share memory with its audio worklet must be isolated (HTML, COOP and COEP).
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}
INDEX: Final = "index.html"


@dataclass(frozen=True, slots=True)
class Page:
    """One static file, held in memory."""

    content_type: str
    body: bytes


def load_pages(package: str = "playhead.web") -> dict[str, Page]:
    """Path to page for the files of ``package`` whose type is known; ``/`` is index.html."""
    pages: dict[str, Page] = {}
    for item in resources.files(package).iterdir():
        suffix = "." + item.name.rpartition(".")[2]
        if item.is_file() and suffix in CONTENT_TYPES:
            pages["/" + item.name] = Page(CONTENT_TYPES[suffix], item.read_bytes())
    if "/" + INDEX in pages:
        pages["/"] = pages["/" + INDEX]
    return pages


def response(
    status: HTTPStatus,
    body: str | bytes,
    *,
    content_type: str = "text/plain; charset=utf-8",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An HTTP response that ends its connection, as all of this listener's do."""
    data = body.encode() if isinstance(body, str) else body
    fields = {
        "Content-Type": content_type,
        "Content-Length": str(len(data)),
        "Cache-Control": "no-cache",
        "X-Content-Type-Options": "nosniff",
        "Connection": "close",
        **(headers or {}),
    }
    return Response(status.value, status.phrase, Headers(fields), data)


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether new sessions are welcome, and how busy the process is.

    ``alive`` False: only a restart helps.
    """

    ready: bool
    reason: str
    load: Mapping[str, object]
    alive: bool = True


METRICS_PATH: Final = "/metrics"


class HttpSite:
    """Answers requests that are not for a session.

    ``readiness`` is asked at each ``/readyz`` and ``/healthz``; ``metrics`` gives the text of
    each ``/metrics``.
    """

    def __init__(
        self,
        pages: Mapping[str, Page],
        readiness: Callable[[], Readiness],
        metrics: Callable[[], bytes],
    ) -> None:
        self._pages = dict(pages)
        self._readiness = readiness
        self._metrics = metrics

    def respond(self, request: Request) -> Response:
        """The response to ``request``: 200, 404, 405, or 503 when not ready."""
        path = request.path.partition("?")[0]
        if request.method not in ("GET", "HEAD"):
            return response(
                HTTPStatus.METHOD_NOT_ALLOWED,
                f"{request.method} is not served here: use GET or HEAD.\n",
                headers={"Allow": "GET, HEAD"},
            )
        answer = self._get(path)
        if request.method == "HEAD":
            answer.body = b""
        return answer

    def _get(self, path: str) -> Response:
        if path == "/healthz":
            return self._health()
        if path == "/readyz":
            return self._ready()
        if path == METRICS_PATH:
            return response(HTTPStatus.OK, self._metrics(), content_type=CONTENT_TYPE_LATEST)
        page = self._pages.get(path)
        if page is None:
            return response(HTTPStatus.NOT_FOUND, "There is nothing at this path.\n")
        return response(
            HTTPStatus.OK, page.body, content_type=page.content_type, headers=PAGE_HEADERS
        )

    def _health(self) -> Response:
        if self._readiness().alive:
            return response(HTTPStatus.OK, "ok\n")
        return response(HTTPStatus.SERVICE_UNAVAILABLE, "the speech engine has stopped\n")

    def _ready(self) -> Response:
        state = self._readiness()
        body = {"ready": state.ready, "reason": state.reason, "load": dict(state.load)}
        status = HTTPStatus.OK if state.ready else HTTPStatus.SERVICE_UNAVAILABLE
        return response(status, json.dumps(body) + "\n", content_type="application/json")
