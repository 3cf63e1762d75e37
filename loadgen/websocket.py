"""A WebSocket client over a line: frames by callback, each with its arrival.

The protocol (RFC 6455) is the websockets library's, without its input and output.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Protocol

from playhead.loadgen.line import Line, connect
from websockets.client import ClientProtocol
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

_MAX_FRAME = 16 * 1024 * 1024

Message = bytes | str


class Hearer(Protocol):
    """Takes what comes on a WebSocket while an utterance is spoken."""

    def heard(self, message: Message, at: float) -> None:
        """A message arrived ``at``, on :func:`~playhead.engine.clock.monotonic`."""

    def settled(self, now: float) -> None:
        """All that had arrived by ``now`` has been given."""

    def closed(self, error: ConnectionClosed) -> None:
        """Nothing more comes."""


class WebSocket:
    """Made by :func:`dial`. Without a hearer messages wait for :meth:`recv`."""

    def __init__(self, url: str, subprotocol: str) -> None:
        self._protocol = ClientProtocol(
            parse_uri(url), subprotocols=[Subprotocol(subprotocol)], max_size=_MAX_FRAME
        )
        self._line: Line | None = None
        self._waiting: deque[tuple[Message, float]] = deque()
        self._pieces: list[bytes] = []  # of a fragmented message
        self._text = False
        self._hearer: Hearer | None = None
        self._woken = asyncio.Event()
        self._end: ConnectionClosed | None = None

    @property
    def subprotocol(self) -> str | None:
        """What the server chose."""
        return self._protocol.subprotocol

    @property
    def stamped(self) -> bool:
        """See :class:`~playhead.loadgen.line.Line`."""
        return self._line is not None and self._line.stamped

    async def open(self, headers: Mapping[str, str]) -> None:
        """Raises ``OSError`` and the library's ``InvalidHandshake``."""
        protocol = self._protocol
        uri = protocol.uri
        self._line = await connect(uri.host, uri.port, uri.secure, self)
        request = protocol.connect()
        request.headers.update(headers)
        protocol.send_request(request)
        self._flush()
        while protocol.state is State.CONNECTING and protocol.handshake_exc is None:
            await self._wake()
        if protocol.handshake_exc is not None:
            self.abort()
            raise protocol.handshake_exc

    def send(self, message: Message) -> None:
        """What cannot be sent any more is dropped: the hearer is told of the end."""
        if self._protocol.state is not State.OPEN:
            return
        if isinstance(message, str):
            self._protocol.send_text(message.encode())
        else:
            self._protocol.send_binary(message)
        self._flush()

    def listen(self, hearer: Hearer | None) -> None:
        """Give what comes, and what has waited, to ``hearer``; ``None``: keep it again."""
        self._hearer = hearer
        while hearer is not None and self._waiting:
            hearer.heard(*self._waiting.popleft())
        if hearer is not None and self._end is not None:
            hearer.closed(self._end)

    def poll(self) -> None:
        """Give what has arrived now, and then ``settled``."""
        if self._line is not None:
            self._line.poll()

    async def recv(self) -> tuple[Message, float]:
        """The next message and its arrival, where nobody listens. Raises ``ConnectionClosed``."""
        while not self._waiting:
            if self._end is not None:
                raise self._end
            await self._wake()
        return self._waiting.popleft()

    async def close(self) -> None:
        """Say goodbye and wait for the answer; the caller bounds the wait."""
        self._hearer = None
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
            self._flush()
        while self._end is None:
            await self._wake()

    def abort(self) -> None:
        """Close at once."""
        if self._line is not None:
            self._line.abort()

    # ------------------------------------------------------------ called by the line

    def received(self, data: bytes, at: float) -> None:
        """See :class:`~playhead.loadgen.line.Receiver`."""
        protocol = self._protocol
        protocol.receive_data(data)
        for event in protocol.events_received():
            if isinstance(event, Frame):
                self._take(event, at)
        self._flush()
        if protocol.close_rcvd is not None or protocol.parser_exc is not None:
            self.closed("")
        elif self._hearer is None:
            self._woken.set()

    def settled(self, now: float) -> None:
        """See :class:`~playhead.loadgen.line.Receiver`."""
        if self._hearer is not None:
            self._hearer.settled(now)

    def closed(self, reason: str) -> None:
        """See :class:`~playhead.loadgen.line.Receiver`."""
        self._protocol.receive_eof()
        self.abort()
        self._woken.set()
        if self._protocol.state is State.CLOSED and self._end is None:
            self._end = self._protocol.close_exc
            if self._hearer is not None:
                self._hearer.closed(self._end)

    def _take(self, frame: Frame, at: float) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._text = frame.opcode is Opcode.TEXT
        elif frame.opcode is not Opcode.CONT:
            return  # the library has answered
        data = bytes(frame.data)
        if self._pieces or not frame.fin:
            self._pieces.append(data)
            if not frame.fin:
                return
            data, self._pieces = b"".join(self._pieces), []
        message: Message = data.decode(errors="replace") if self._text else data
        if self._hearer is not None:
            self._hearer.heard(message, at)
        else:
            self._waiting.append((message, at))

    def _flush(self) -> None:
        if self._line is not None:
            for data in self._protocol.data_to_send():
                self._line.write(data)

    async def _wake(self) -> None:
        self._woken.clear()
        await self._woken.wait()
