"""One WebSocket to a server: dialled, greeted, ready for messages."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from playhead.client.errors import ConnectionFailed, ConnectionLost, server_error
from playhead.client.reach import Reached, came, direct, secured
from playhead.client.vigil import PATIENCE, Vigil
from playhead.engine.clock import monotonic
from playhead.gateway.hush import hushed
from playhead.gateway.messages import (
    ClientMessage,
    ErrorEvent,
    Hello,
    Ready,
    ServerMessage,
)
from playhead.gateway.protocol import Encoding, ProtocolError, Wire
from websockets.asyncio.client import connect as websocket_connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol

ENDPOINT = "/v1/session"
PROTOCOL_ERROR = 1002  # close code (RFC 6455, section 7.4.1)
_MAX_FRAME = 16 * 1024 * 1024  # seconds of float audio, base64, in one frame


@dataclass(frozen=True, slots=True)
class Address:
    """Where to dial and how to talk there. ``timeout``: seconds for a connection to be ready."""

    url: str
    encoding: Encoding
    timeout: float
    key: str | None = field(default=None, repr=False)  # of the API; no log shall show it


def endpoint(url: str) -> str:
    """The WebSocket's URL for a URL that may only name the server."""
    parts = urlsplit(url)
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    path = parts.path if parts.path.strip("/") else ENDPOINT
    return urlunsplit(parts._replace(scheme=scheme, path=path))


def at_node(url: str, token: str) -> str:
    """``url`` for a return to the process that gave ``token``: a balancer reads its name."""
    node, dot, _ = token.rpartition(".")
    if not dot:
        return url
    parts = urlsplit(url)
    query = [pair for pair in parse_qsl(parts.query, True) if pair[0] != "node"]
    return urlunsplit(parts._replace(query=urlencode([*query, ("node", node)])))


class Link:
    """A connection whose ``hello`` has been answered by ``ready``.

    Messages go out in the order of :meth:`send`; :meth:`receive` skips what this version of the
    protocol does not know.
    """

    def __init__(self, socket: Reached, wire: Wire) -> None:
        self._socket = socket
        self._wire = wire
        self._vigil = Vigil(monotonic())
        self._used = asyncio.Event()

    async def watch(self, awaiting: Callable[[], bool]) -> None:
        """Drop the connection when it is used and nothing comes over it any more: :meth:`receive`
        raises then. Ends with the connection. ``awaiting``: whether the server owes something; it
        becomes so by a message and no other way."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                self._used.clear()
                self._vigil.came(self._socket.came)
                wait = self._vigil.wait(monotonic(), awaiting())
                if wait is None:
                    await self._used.wait()
                elif wait > 0:
                    await asyncio.sleep(wait)
                else:
                    await self._ask()

    async def _ask(self) -> None:
        asked = monotonic()
        answer = asyncio.create_task(self._answered())
        try:
            if await came(answer, PATIENCE):
                await answer
                self._vigil.came(monotonic())
                return
            self._vigil.came(self._socket.came)
            if self._vigil.lost(asked):
                self._socket.transport.abort()
        finally:
            answer.cancel()
            await asyncio.gather(answer, return_exceptions=True)

    async def _answered(self) -> None:
        await (await self._socket.ping())

    async def send(self, message: ClientMessage) -> None:
        """Send one message. Raises :class:`ConnectionLost` when the socket is gone."""
        self._vigil.said(monotonic())
        self._used.set()
        try:
            await self._socket.send(self._wire.encode_client(message))
        except ConnectionClosed as closed:
            raise _lost(closed) from None

    async def receive(self) -> ServerMessage:
        """The next message. Raises :class:`ConnectionLost` when the socket is gone."""
        while True:
            try:
                message = self._wire.decode_server(await self._socket.recv())
            except ConnectionClosed as closed:
                raise _lost(closed) from None
            except ProtocolError as error:
                await self.close()
                raise ConnectionLost(
                    f"the server broke the protocol: {error.message}", PROTOCOL_ERROR
                ) from None
            self._vigil.heard(monotonic())
            self._used.set()
            if message is not None:
                return message

    async def close(self) -> None:
        """Close the socket; does nothing when it is closed."""
        await self._socket.close()


async def dial(address: Address, hello: Hello, *, reach: float | None = None) -> tuple[Link, Ready]:
    """Connect and exchange ``hello`` and ``ready``. ``reach``: seconds for the other machine to
    take the connection; what its server needs then is bounded by ``address.timeout`` alone.

    Raises :class:`ConnectionFailed` when no session came about, and
    :class:`~playhead.client.errors.ServerError` when the server refused ``hello``.
    """
    try:
        async with asyncio.timeout(address.timeout):
            link = Link(await _reached(address, reach), Wire(address.encoding, hello.binary_audio))
            try:
                return link, await _greet(link, hello)
            except BaseException:
                await link.close()
                raise
    except TimeoutError:
        raise ConnectionFailed(
            f"{address.url} did not answer within {address.timeout:g} s"
        ) from None
    except ConnectionLost as lost:
        raise ConnectionFailed(f"{address.url} hung up: {lost}") from None


async def _reached(address: Address, reach: float | None) -> Reached:
    """An attempt that began before this machine's address changed, or while a cable was out, never
    ends: others are needed beside the patience with a server that is busy."""
    there = asyncio.Event()
    opening = asyncio.create_task(_open(address, there))
    opening.add_done_callback(lambda _: there.set())
    arriving = asyncio.create_task(there.wait())
    try:
        if reach is not None and direct(address.url) and not await came(arriving, reach):
            raise ConnectionFailed(f"{address.url} was not reached within {reach:g} s")
        return await opening
    finally:
        arriving.cancel()
        opening.cancel()


async def _open(address: Address, there: asyncio.Event) -> Reached:
    try:
        connection = await websocket_connect(
            address.url,
            create_connection=cast("type[Reached]", partial(Reached, there=there)),
            ssl=secured(address.url, there),
            subprotocols=[cast(Subprotocol, f"playhead.v1.{address.encoding}")],
            logger=hushed("playhead.client.websocket"),
            compression=None,  # audio does not shrink, and inflating costs a copy
            max_size=_MAX_FRAME,
            open_timeout=None,
            close_timeout=1.0,
            additional_headers=None if address.key is None else _bearer(address.key),
        )
        return cast(Reached, connection)
    except InvalidStatus as refused:
        response = refused.response
        after = response.headers.get("Retry-After")
        raise ConnectionFailed(
            f"{address.url} answered {response.status_code} {response.reason_phrase}"
            f"{_told(response.body)}",
            status=response.status_code,
            retry_after=float(after) if after is not None and after.isdigit() else None,
        ) from None
    except (InvalidHandshake, InvalidURI, EOFError) as error:
        raise ConnectionFailed(f"{address.url} is no Playhead endpoint: {error}") from None
    except OSError as error:
        raise ConnectionFailed(f"cannot connect to {address.url}: {_reason(error)}") from None


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _told(body: bytes | bytearray) -> str:
    """What a Playhead server says of why it refused; nothing of what others may answer."""
    try:
        told = json.loads(body)
        return f": {told['message']}; expected {told['expected']}"
    except (ValueError, TypeError, KeyError):
        return ""


async def _greet(link: Link, hello: Hello) -> Ready:
    await link.send(hello)
    while True:
        message = await link.receive()
        if isinstance(message, Ready):
            return message
        if isinstance(message, ErrorEvent):
            raise server_error(message)


def _reason(error: OSError) -> str:
    """The plain reason; several failed addresses are told in one long sentence otherwise."""
    if isinstance(error, ConnectionRefusedError) or "Connect call failed" in str(error):
        return "connection refused"
    return error.strerror or str(error)


def _lost(closed: ConnectionClosed) -> ConnectionLost:
    if closed.rcvd is None:
        return ConnectionLost("the connection dropped")
    code, reason = closed.rcvd.code, closed.rcvd.reason
    return ConnectionLost(f"closed by the server with {code} {reason}".rstrip(), code)
