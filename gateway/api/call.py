"""One request for speech: a native session that says one utterance and is then over.

The session does not know that it is spoken to over HTTP. Its audio waits here until the response
has taken it; speech is held while too much waits. Event loop only.
"""

import asyncio
from collections import deque
from http import HTTPStatus
from typing import Final

from playhead.engine import clock
from playhead.gateway.access import Grant
from playhead.gateway.api.errors import RETRY_AFTER, SERVER, ApiError, from_session, invalid
from playhead.gateway.api.order import Order
from playhead.gateway.dialects.adapter import without_resume
from playhead.gateway.dialects.wire import texts
from playhead.gateway.host import SessionHost
from playhead.gateway.hub import Hub
from playhead.gateway.messages import (
    Audio,
    CloseSession,
    End,
    ErrorEvent,
    Failed,
    Ready,
    ServerMessage,
    Start,
)

MOST_WAITING: Final = 512 * 1024
"""Bytes of audio that may wait for a client that does not read: more than its whole lead."""


class SpeechCall:
    """``open`` it, take its ``next`` audio until the final one, and always ``leave`` it."""

    def __init__(self, hub: Hub, order: Order, grant: Grant) -> None:
        self.samples = 0
        self._hub = hub
        self._order = order
        self._grant = grant
        self._counted = False
        self._host: SessionHost | None = None
        self._ready: Ready | None = None
        self._audio: deque[Audio] = deque()
        self._waiting = 0  # bytes
        self._fault: ApiError | None = None
        self._over = False
        self._wake = asyncio.Event()

    def open(self) -> Ready:
        """Start to speak. Raises :class:`ApiError` for what the session refuses at once."""
        now = clock.monotonic()
        facts = without_resume(self._hub.facts)
        self._host = self._hub.open(self, self._grant, now, facts, dialect="http")
        self._grant.enter()
        self._counted = True
        self._host.receive(self._order.hello, now)
        if self._ready is not None:
            self._host.receive(Start(), now)
            for piece in texts(self._order.text):
                self._host.receive(piece, now)
            self._host.receive(End(), now)
        if self._fault is not None:
            self.leave()
            raise self._fault
        assert self._ready is not None, "a session greets or says why it does not"
        return self._ready

    async def next(self) -> Audio:
        """The next audio that is not empty, or the final one.

        Raises :class:`ApiError` when the rest cannot be spoken.
        """
        while True:
            if self._audio:
                audio = self._audio.popleft()
                self._waiting -= len(audio.data)
                self.samples += audio.samples
                if audio.data or audio.final:
                    return self._spoken(audio)
                continue
            if self._fault is not None:
                raise self._fault
            self._wake.clear()
            await self._wake.wait()

    def _spoken(self, audio: Audio) -> Audio:
        if audio.final and self.samples == 0:
            raise invalid("nothing in input can be spoken", "input", "unspeakable_text")
        return audio

    def held(self, held: bool) -> None:
        """The client takes nothing, or does again."""
        if self._host is not None and (held or self._waiting <= MOST_WAITING // 4):
            self._host.blocked(held, clock.monotonic())

    def leave(self) -> None:
        """The request is over, whatever for: what is still being made is given up. Idempotent."""
        if self._counted:
            self._counted = False
            self._grant.leave()
        if self._over or self._host is None:
            return
        now = clock.monotonic()
        self._host.receive(CloseSession(), now)
        self._host.detach(self, now)
        self._over = True

    # -- outlet of the session ------------------------------------------------------------------

    def send(self, message: ServerMessage) -> None:
        """What the session says."""
        match message:
            case Ready():
                self._ready = message
            case Audio():
                self._audio.append(message)
                self._waiting += len(message.data)
                if self._waiting > MOST_WAITING // 2:
                    self.held(True)
            case Failed() | ErrorEvent():
                wait = None if message.retry_after is None else message.retry_after / 1_000
                self._fail(from_session(message.code, message.message, message.expected, wait))
        self._wake.set()

    def close(self, code: int, reason: str) -> None:
        """The session has ended: by itself, where nothing has told why before."""
        self._over = True
        self._fail(
            ApiError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                reason,
                SERVER,
                code="ended",
                retry_after=RETRY_AFTER,
            )
        )
        self._wake.set()

    def _fail(self, fault: ApiError) -> None:
        if self._fault is None:
            self._fault = fault
