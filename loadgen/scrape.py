"""The server's own figures, read from /metrics while a run goes on."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from playhead.loadgen.metrics import parse
from playhead.loadgen.record import MetricsSample

INTERVAL = 1.0
_MOST = 1 << 20
SHARED = "playhead_engine_utterances"
"""Is shown by one of the gateways that share an engine."""


async def fetch(
    url: str, headers: Mapping[str, str], timeout: float = 2.0, path: str = "/metrics"
) -> str:
    """The text of ``path`` of the server at ``url``; empty when it cannot be had."""
    parts = urlsplit(url)
    secure = parts.scheme in ("wss", "https")
    port = parts.port or (443 if secure else 80)
    given = {"Host": parts.hostname, "Connection": "close", **headers}
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=secure or None)
            writer.write("\r\n".join([*lines, "", ""]).encode())
            answer = await _all(reader)
            writer.close()
    except (OSError, TimeoutError):
        return ""
    head, _, body = answer.decode(errors="replace").partition("\r\n\r\n")
    return body if " 200 " in head.partition("\r\n")[0] else ""


async def _all(reader: asyncio.StreamReader) -> bytes:
    pieces = []
    size = 0
    while (piece := await reader.read(65_536)) and size < _MOST:
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


async def load(url: str, headers: Mapping[str, str]) -> Mapping[str, Any]:
    """What ``/readyz`` tells of the server's model and load; empty when it tells nothing."""
    try:
        told = json.loads(await fetch(url, headers, path="/readyz"))
    except ValueError:
        return {}
    found = told.get("load") if isinstance(told, dict) else None
    return found if isinstance(found, dict) else {}


async def watch(
    urls: Sequence[str],
    headers: Mapping[str, str],
    keep: Callable[[MetricsSample], None],
    now: Callable[[], float],
) -> None:
    """Keep a sample each second until cancelled. Ends at once when there is nothing to read.

    It is the first server's; what it leaves for its mates to tell (an engine that they share) is
    taken from them.
    """
    while text := await fetch(urls[0], headers):
        found = parse(text)
        for url in urls[1:]:
            if SHARED not in found:
                found = parse(await fetch(url, headers)) | found
        keep(MetricsSample(now(), found))
        await asyncio.sleep(INTERVAL)
