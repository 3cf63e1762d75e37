"""Speech as the body of an HTTP response, from its first chunk on."""

import asyncio
import contextlib
import logging
from typing import Final

from playhead.gateway.api.call import SpeechCall
from playhead.gateway.api.errors import ApiError
from playhead.gateway.api.order import Order, Writer
from playhead.gateway.messages import Audio
from playhead.gateway.settings import Settings
from starlette.types import Receive, Scope, Send

log: Final = logging.getLogger("playhead.gateway.api")


class SpeechResponse:
    """An ASGI response. Until the first audio is there a fault still is an ordinary one."""

    def __init__(self, call: SpeechCall, order: Order, settings: Settings) -> None:
        self._call = call
        self._order = order
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer. Raises :class:`ApiError` before the response has begun, nothing for a client
        that leaves."""
        ready = self._call.open()
        speaking = asyncio.create_task(self._speak(self._order.open(ready), send))
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

    async def _speak(self, writer: Writer, send: Send) -> None:
        audio = await self._call.next()
        await self._begin(send)
        data = writer.begin()
        try:
            while True:
                data += await self._add(writer, audio)
                await self._write(send, data)
                if audio.final:
                    break
                data = b""
                audio = await self._call.next()
        except ApiError as fault:
            # Too late for a status: without its end the body is seen to be cut short.
            log.warning("speech ended early: %s", fault.message)
            told = writer.fault(fault)
            if told is None:
                return
            await self._write(send, told)
        else:
            await self._write(send, writer.end())
        await send({"type": "http.response.body", "body": b""})

    async def _begin(self, send: Send) -> None:
        headers = [
            (b"content-type", self._order.media_type.encode()),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),  # nginx would collect speech before it passes it on
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _add(self, writer: Writer, audio: Audio) -> bytes:
        if not self._order.heavy:
            return writer.add(audio)
        return await asyncio.to_thread(writer.add, audio)

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
