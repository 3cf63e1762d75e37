"""Speech as the body of an HTTP response, from its first chunk on."""

import asyncio
import contextlib
import logging
from typing import Final

from playhead.gateway.api.body import (
    EVENTS,
    FORMATS,
    Body,
    audio_event,
    done_event,
    event,
)
from playhead.gateway.api.call import SpeechCall
from playhead.gateway.api.errors import ApiError
from playhead.gateway.api.request import SpeechRequest
from playhead.gateway.messages import Audio
from playhead.gateway.settings import Settings
from starlette.types import Receive, Scope, Send

log: Final = logging.getLogger("playhead.gateway.api")


class SpeechResponse:
    """An ASGI response. Until the first audio is there a fault still is an ordinary one."""

    def __init__(self, call: SpeechCall, request: SpeechRequest, settings: Settings) -> None:
        self._call = call
        self._request = request
        self._settings = settings
        self._format = FORMATS[request.format]
        self._events = request.stream_format == "sse"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer. Raises :class:`ApiError` before the response has begun, nothing for a client
        that leaves."""
        ready = self._call.open()
        speaking = asyncio.create_task(self._speak(self._format.open(ready), send))
        watching = asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait({speaking, watching}, return_when=asyncio.FIRST_COMPLETED)
            if speaking.done():
                speaking.result()
        finally:
            self._call.leave()
            for task in (speaking, watching):
                task.cancel()
            # Nothing of this request may outlive it.
            await asyncio.wait({speaking, watching})

    async def _speak(self, body: Body, send: Send) -> None:
        audio = await self._call.next()
        await self._begin(send)
        data = body.begin()
        try:
            while True:
                data += await self._add(body, audio)
                await self._write(send, audio_event(data) if self._events else data)
                if audio.final:
                    break
                data = b""
                audio = await self._call.next()
        except ApiError as fault:
            # Too late for a status: without its end the body is seen to be cut short.
            log.warning("speech ended early: %s", fault.message)
            if not self._events:
                return
            await self._write(send, event(fault.body() | {"type": "error"}))
        else:
            if self._events:
                spoken = done_event(len(self._request.text), self._call.samples)
                await self._write(send, spoken)
        await send({"type": "http.response.body", "body": b""})

    async def _begin(self, send: Send) -> None:
        media_type = EVENTS if self._events else self._format.media_type
        headers = [
            (b"content-type", media_type.encode()),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),  # nginx would collect speech before it passes it on
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _add(self, body: Body, audio: Audio) -> bytes:
        if not self._format.heavy:
            return body.add(audio)
        return await asyncio.to_thread(body.add, audio)

    async def _write(self, send: Send, data: bytes) -> None:
        """Returns when the socket has taken most of it; speech is held when that takes long. Who
        never takes it is cut off by the listener."""
        if not data:
            return
        loop = asyncio.get_running_loop()
        hold = loop.call_later(self._settings.slow_hold, self._call.held, True)
        try:
            await send({"type": "http.response.body", "body": data, "more_body": True})
        finally:
            hold.cancel()
        self._call.held(False)


async def _gone(receive: Receive) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        while (await receive())["type"] != "http.disconnect":
            continue
