"""The listening sockets, bound before anything slow so that a taken port is told at once."""

import contextlib
import errno
import socket
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from playhead.gateway.server import bind
from playhead.gateway.settings import HTTP_NEXT, HTTP_OFF, Settings

MOST_PORT: Final = 65_535


class ListenError(RuntimeError):
    """A port cannot be had; the message says which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """``http`` None: the HTTP API is off; ``agent`` None: no balancer asks. Closes all when left as
    a context."""

    sessions: socket.socket
    http: socket.socket | None
    agent: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for listener in (self.sessions, self.http, self.agent):
            if listener is not None:
                listener.close()


def listen(settings: Settings) -> Listeners:
    """Bind all ports. Raises :class:`ListenError`."""
    with contextlib.ExitStack() as undo:
        sessions = undo.enter_context(_bind(settings, "--port", settings.port))
        http = None
        if settings.http_port != HTTP_OFF:
            port = _http_port(settings, int(sessions.getsockname()[1]))
            http = undo.enter_context(_bind(settings, "--http-port", port))
        agent = None
        if settings.agent_port is not None:
            agent = undo.enter_context(_bind(settings, "--agent-port", settings.agent_port))
        undo.pop_all()
    return Listeners(sessions, http, agent)


def _http_port(settings: Settings, port: int) -> int:
    if settings.http_port != HTTP_NEXT:
        return settings.http_port
    # The agent's port was asked for by number, so the one nobody named steps over it.
    following = port + 1 if port + 1 != settings.agent_port else port + 2
    # Next to a port that the system chose, nobody promises a free one.
    return 0 if settings.port == 0 or following > MOST_PORT else following


def _bind(settings: Settings, flag: str, port: int) -> socket.socket:
    try:
        return bind(settings.host, port)
    except OSError as error:
        raise ListenError(_why(settings, flag, port, error)) from error


def _why(settings: Settings, flag: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        off = "" if flag != "--http-port" else ", off does without"
        return (
            f"port {port} of {settings.host} is in use: stop the other server, or "
            f"choose another port with {flag} (0 takes any free one{off})"
        )
    if error.errno == errno.EACCES:
        return f"port {port} needs privileges: choose one above 1023 with {flag}"
    return f"cannot listen on --host {settings.host} {flag} {port}: {error.strerror}"
