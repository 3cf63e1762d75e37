"""Keeps a session's messages flowing over sockets that come and go."""

import asyncio
import contextlib
import math
import random
from collections.abc import Callable
from dataclasses import replace

from playhead.client.backlog import Backlog
from playhead.client.backoff import ASKED, pauses, reaches
from playhead.client.errors import ConnectionFailed, ConnectionLost, ResumeFailed
from playhead.client.link import PROTOCOL_ERROR, Address, Link, at_node, dial
from playhead.client.moving import Epochs
from playhead.gateway.messages import (
    ClientMessage,
    ErrorEvent,
    Hello,
    Pong,
    Ready,
    ResumeFrom,
    ServerMessage,
)

#: Close codes of a server that goes away: another may speak on.
_LEAVING = frozenset({1001, 1012})
#: Close codes after which the session is not there to come back to (docs/protocol.md).
_FINAL_CODES = frozenset({1000, 1001, PROTOCOL_ERROR, 1008, 1009, 1012, 1013, 4000, 4001})
_SETTLED = 1.0  # seconds at a server before moving on again
_LAST_WORDS = 1.0  # seconds to get queued messages out before closing

Clock = Callable[[], float]
Deliver = Callable[[ServerMessage, float], None]  # with the time at which it was read


class Carrier:
    """Sends in order, delivers each numbered message exactly once, resumes after a drop."""

    def __init__(
        self,
        address: Address,
        hello: Hello,
        link: Link,
        ready: Ready,
        clock: Clock,
        *,
        moves: bool = False,
    ) -> None:
        self.moves = moves  # to another server, when the session cannot go on at this one
        self.on_moved: Callable[[float], None] = lambda _: None
        self.awaiting: Callable[[], bool] = lambda: False  # whether the server owes something
        self.lost_reason: str | None = None  # why the last move was made, if the server said
        self.seq = 0  # highest contiguous number seen
        self.ready = ready
        self.backlog = Backlog()
        self.resumptions = 0
        self._epochs = Epochs()
        self._left = False
        self._moved_at = -math.inf
        self._address = address
        self._hello = hello
        self._link = link
        self._clock = clock
        self._waiting = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._over = False

    def post(self, message: ClientMessage) -> None:
        """Send a message after those before it; it survives a dropped socket.

        Does nothing once the session is over.
        """
        translated = self._epochs.outgoing(message)
        if self._over or translated is None:
            return
        self.backlog.put(translated)
        self._idle.clear()
        self._waiting.set()

    async def run(self, deliver: Deliver) -> None:
        """Carry messages until the session ends, by raising why.

        Raises :class:`ConnectionLost`, or a :class:`ServerError` such as ``ResumeFailed``.
        """
        try:
            while True:
                await self._carry(deliver)
        finally:
            self._over = True
            self._idle.set()

    async def _carry(self, deliver: Deliver) -> None:
        try:
            await self._exchange(deliver)
        except ConnectionLost as lost:
            self.lost_reason = None
            if self.moves and (self._left or lost.code in _LEAVING):
                await self._move(lost)
            elif lost.code in _FINAL_CODES:
                raise
            elif await self._returned(lost):
                deliver(self.ready, self._clock())
            else:
                await self._move(lost)

    async def leave(self) -> None:
        """This server is going away: go to another now."""
        self._left = True
        await self._link.close()

    async def _returned(self, lost: ConnectionLost) -> bool:
        """Whether the session goes on; False when another one may be opened instead."""
        try:
            await self._come_back(lost)
        except ResumeFailed as failed:
            if not self.moves:
                raise
            self.lost_reason = failed.reason
            return False
        return True

    async def _move(self, lost: ConnectionLost) -> None:
        # One that sends everybody away must not be asked in a tight loop.
        await asyncio.sleep(max(0.0, self._moved_at + _SETTLED - self._clock()))
        self._link, self.ready = await self._redial(lost, None)
        self._left, self._moved_at = False, self._clock()
        self.seq = 0
        self.backlog = Backlog()
        self._epochs.moved()
        self.on_moved(self._clock())
        self._waiting.set()

    async def close(self) -> None:
        """Let queued messages out if the socket takes them, then close it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self._idle.wait()
        await self._link.close()

    async def _exchange(self, deliver: Deliver) -> None:
        watching = self._link.watch(lambda: self.awaiting())
        tasks = [asyncio.create_task(self._write()), asyncio.create_task(watching)]
        try:
            while True:
                message = await self._link.receive()
                if self._is_next(message):
                    deliver(self._epochs.incoming(message), self._clock())
        finally:
            for task in tasks:
                task.cancel()
            # Not suppress(CancelledError): that would also swallow a cancel meant for this task.
            await asyncio.gather(*tasks, return_exceptions=True)

    def _is_next(self, message: ServerMessage) -> bool:
        if isinstance(message, Ready | Pong | ErrorEvent):
            return True
        if message.seq > self.seq + 1:
            raise ConnectionLost(f"message {self.seq + 1} is missing", PROTOCOL_ERROR)
        fresh = message.seq > self.seq
        self.seq = max(self.seq, message.seq)
        return fresh

    async def _write(self) -> None:
        # A dropped socket ends the reader as well, and the reader tells.
        with contextlib.suppress(ConnectionLost):
            while True:
                while self.backlog:
                    await self._link.send(self.backlog.take())
                self._waiting.clear()
                self._idle.set()
                await self._waiting.wait()

    async def _come_back(self, lost: ConnectionLost) -> None:
        origin = ResumeFrom(self.ready.session, self.ready.token, self.seq)
        self._link, self.ready = await self._redial(lost, origin)
        self.resumptions += 1
        self.backlog.resume(self.ready.received)
        self._waiting.set()

    async def _redial(self, lost: ConnectionLost, origin: ResumeFrom | None) -> tuple[Link, Ready]:
        """Connect again within the grace time, to the session ``origin`` or to a fresh one."""
        deadline = self._clock() + self.ready.grace / 1000
        address = self._address
        if origin is not None:
            address = replace(address, url=at_node(address.url, origin.token))
        for pause, reach in zip(pauses(random.random), reaches(), strict=False):
            try:
                return await dial(address, replace(self._hello, resume=origin), reach=reach)
            except ConnectionFailed as failed:
                left = deadline - self._clock()
                if pause > left:
                    raise ConnectionLost(f"{lost}, and no way back: {failed}") from None
                wait = max(pause, min(failed.retry_after or 0.0, ASKED, left))
            await asyncio.sleep(wait)
        raise AssertionError("pauses do not end")
