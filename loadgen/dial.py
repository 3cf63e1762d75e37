"""Opening a WebSocket for a virtual client; what goes wrong has a name."""

from playhead.loadgen.keys import REFUSED, key_headers
from playhead.loadgen.line import told
from playhead.loadgen.plan import Plan
from playhead.loadgen.session import OPEN_TIMEOUT, SessionError
from playhead.loadgen.websocket import WebSocket
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

ELSEWHERE = "is this its address, and --target what it speaks?"
_FULL = frozenset({429, 503})
_TRY_AGAIN_LATER = 1013  # close code of a server at its limit of connections (docs/protocol.md)


async def dial(url: str, plan: Plan, protocol: str) -> WebSocket:
    """A connection that speaks ``protocol``. Raises :class:`SessionError`."""
    socket = WebSocket(url, protocol)
    try:
        await socket.open(key_headers(plan))
    except InvalidStatus as refused:
        raise _refused(url, refused.response.status_code) from None
    except InvalidHandshake as error:
        raise SessionError("protocol", f"{url} does not speak {protocol}: {error}") from None
    except OSError as error:
        raise SessionError("unreachable", f"cannot connect to {url}: {told(error)}") from None
    if socket.subprotocol != protocol:
        socket.abort()
        raise SessionError("protocol", f"{url} does not speak {protocol}: it did not choose it")
    return socket


def _refused(url: str, status: int) -> SessionError:
    if status in REFUSED:
        return SessionError("refused_key", f"{url} answered {status}: give a key with --key-from")
    if status in _FULL:
        return SessionError("too_many_connections", f"{url} answered {status}")
    return SessionError("connection_refused", f"{url} answered {status}: {ELSEWHERE}")


def explain(error: Exception, url: str, protocol: str) -> SessionError:
    """Why no session came about on a connection, whatever was raised while it was set up: what
    is neither a closed connection nor a time-out is somebody who does not speak ``protocol``."""
    if isinstance(error, SessionError):
        return error
    if isinstance(error, ConnectionClosed):
        full = error.rcvd is not None and error.rcvd.code == _TRY_AGAIN_LATER
        return SessionError("too_many_connections" if full else "connection_lost", why(error))
    if isinstance(error, TimeoutError):
        return SessionError("no_answer", f"{url} gave no answer within {OPEN_TIMEOUT:g} s")
    return SessionError("protocol", f"{url} does not speak {protocol}: {error}")


def why(closed: ConnectionClosed) -> str:
    """Why a connection ended, for a record."""
    if closed.rcvd is None:
        return "the connection dropped"
    return f"closed by the server: {closed.rcvd.code} {closed.rcvd.reason}".rstrip()
