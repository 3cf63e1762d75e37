"""The kinds of servers that can be measured, by name."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit, urlunsplit

from playhead.loadgen import nari, openai, voxserve, voxserve_stream
from playhead.loadgen.client import open_session
from playhead.loadgen.habits import Caller
from playhead.loadgen.plan import Plan, Target
from playhead.loadgen.session import Session

Opener = Callable[[str, Plan, Caller, int], Awaitable[Session]]

_SCHEMES: dict[Target, dict[str, str]] = {
    "playhead": {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"},
    "openai": {"http": "http", "https": "https"},
    "voxserve": {"http": "http", "https": "https"},
    "voxserve-stream": {"http": "http", "https": "https"},
    "nari": {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"},
}
_PATHS: dict[Target, str] = {
    "playhead": "/v1/session",
    "openai": openai.PATH,
    "voxserve": voxserve.PATH,
    "voxserve-stream": voxserve_stream.PATH,
    "nari": nari.PATH,
}
OPENERS: dict[Target, Opener] = {
    "playhead": open_session,
    "openai": openai.open_speech,
    "voxserve": voxserve.open_generate,
    "voxserve-stream": voxserve_stream.open_stream,
    "nari": nari.open_nari,
}


def endpoint(url: str, target: Target = "playhead") -> str:
    """The full address for one that may only name the server. Raises ``ValueError``."""
    parts = urlsplit(url)
    scheme = _SCHEMES[target].get(parts.scheme)
    if scheme is None or not parts.hostname:
        example = f"{next(iter(_SCHEMES[target]))}://host:8080"
        raise ValueError(f"{url!r} is no address; expected one such as {example}")
    path = parts.path if parts.path.strip("/") else _PATHS[target]
    return urlunsplit(parts._replace(scheme=scheme, path=path))
