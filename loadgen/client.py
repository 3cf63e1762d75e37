"""One virtual client on a real socket: opens a session, speaks turn after turn."""

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from playhead.engine.clock import monotonic
from playhead.gateway.messages import (
    Ack,
    ClientMessage,
    CloseSession,
    ErrorEvent,
    Hello,
    Ping,
    Pong,
    Ready,
)
from playhead.gateway.protocol import ProtocolError, Wire
from playhead.loadgen.dial import dial, explain, why
from playhead.loadgen.drive import Drive
from playhead.loadgen.habits import Caller, Reports
from playhead.loadgen.plan import Plan
from playhead.loadgen.reporting import Link
from playhead.loadgen.session import GRACE, OPEN_TIMEOUT, SessionError, in_time
from playhead.loadgen.turn import Turn
from playhead.loadgen.websocket import Message, WebSocket
from websockets.exceptions import ConnectionClosed

PINGS = 3


Expected = TypeVar("Expected", Ready, Pong)


class PlayheadSession:
    """An open session. ``offset``: the server's clock minus ours, in seconds."""

    def __init__(self, socket: WebSocket, wire: Wire, caller: Caller, number: int) -> None:
        self.caller = caller
        self.number = number
        self.turns = 0
        self.offset: float | None = None
        self.round_trip: float | None = None
        self._socket = socket
        self._wire = wire
        self._link = Link()

    @property
    def stamped(self) -> bool:
        """See :class:`~playhead.loadgen.session.Session`."""
        return self._socket.stamped

    @property
    def link(self) -> Link:
        """See :class:`~playhead.loadgen.session.Session`."""
        return self._link

    async def speak(self, turn: Turn, deadline: float) -> None:
        """See :class:`~playhead.loadgen.session.Session`."""
        self.turns += 1
        drive = Drive(turn, self._send, self._socket.poll)
        hearer = _Hearer(turn, drive, self._wire)
        try:
            async with in_time(turn, deadline):
                drive.start()
                self._socket.listen(hearer)
                await drive.ended()
        finally:
            self._socket.listen(None)
        if self.caller.reports is Reports.OFF and self._link.seq is not None:
            self._send([Ack(self._link.seq)])

    async def close(self) -> None:
        """See :class:`~playhead.loadgen.session.Session`."""
        try:
            async with asyncio.timeout(GRACE):
                self._send([CloseSession()])
                await self._socket.close()
        except TimeoutError:
            self._socket.abort()

    def _send(self, messages: Sequence[ClientMessage]) -> None:
        for message in messages:
            self._socket.send(self._wire.encode_client(message))

    async def greet(self, hello: Hello) -> None:
        """``hello``, then a few pings for the clocks. Raises :class:`SessionError` and others."""
        self._send([hello])
        ready, _ = await self._until(Ready)
        self._link.interval = ready.report_interval / 1_000
        if (ready.codec, ready.sample_rate) != (hello.codec, hello.sample_rate):
            raise SessionError(
                "wrong_format",
                f"asked for {hello.codec} at {hello.sample_rate} Hz, "
                f"got {ready.codec} at {ready.sample_rate} Hz",
            )
        for _ in range(PINGS):
            await self._measure_clock()

    async def _measure_clock(self) -> None:
        """Offset of the clocks by the exchange with the shortest round trip (RFC 5905, 8)."""
        self._send([Ping(1_000 * monotonic())])
        pong, at = await self._until(Pong)
        now = 1_000 * at
        trip = (now - pong.time) - (pong.sent - pong.received)
        if self.round_trip is None or trip / 1_000 < self.round_trip:
            self.round_trip = trip / 1_000
            self.offset = ((pong.received - pong.time) + (pong.sent - now)) / 2_000

    async def _until(self, kind: type[Expected]) -> tuple[Expected, float]:
        while True:
            frame, at = await self._socket.recv()
            message = self._wire.decode_server(frame)
            if isinstance(message, kind):
                return message, at
            if isinstance(message, ErrorEvent):
                raise SessionError("hello_refused", f"{message.code}: {message.message}")


class _Hearer:
    """Gives a turn what its server says."""

    def __init__(self, turn: Turn, drive: Drive, wire: Wire) -> None:
        self._turn = turn
        self._drive = drive
        self._wire = wire
        self.settled = drive.settled

    def heard(self, message: Message, at: float) -> None:
        """See :class:`~playhead.loadgen.websocket.Hearer`."""
        try:
            told = self._wire.decode_server(message)
        except ProtocolError as error:
            self._turn.lost(error.message, at, "protocol")
        else:
            if told is not None:
                self._drive.say(self._turn.take(told, len(message), at))

    def closed(self, error: ConnectionClosed) -> None:
        """See :class:`~playhead.loadgen.websocket.Hearer`."""
        self._turn.lost(why(error), monotonic())
        self._drive.look()


async def open_session(url: str, plan: Plan, caller: Caller, number: int) -> PlayheadSession:
    """Dial, say hello, compare clocks. Raises :class:`SessionError`, and nothing else."""
    hello = Hello(
        voice=plan.voice,
        codec=plan.codec,
        sample_rate=plan.sample_rate,
        start_threshold=1_000 * caller.threshold,
        reports=caller.reports is not Reports.OFF,
    )
    protocol = f"playhead.v1.{plan.encoding}"
    session: PlayheadSession | None = None
    try:
        async with asyncio.timeout(OPEN_TIMEOUT):
            socket = await dial(url, plan, protocol)
            session = PlayheadSession(socket, Wire(plan.encoding), caller, number)
            await session.greet(hello)
    except (SessionError, ConnectionClosed, ProtocolError, TimeoutError) as error:
        if session is not None:
            await session.close()
        raise explain(error, url, protocol) from None
    return session
