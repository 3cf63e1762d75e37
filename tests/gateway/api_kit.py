"""The HTTP API of a running gateway, and a bare client that sees each piece of a body."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import h11
from harness import TIMEOUT, Gateway, gateway
from playhead.gateway.api.listener import HttpListener, open_api
from playhead.gateway.server import bind

SPEECH = "/v1/audio/speech"


class Asked:
    """One request and what has come of it so far."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.http = h11.Connection(h11.CLIENT)
        self.response: h11.Response
        self.body = b""
        self.pieces: list[bytes] = []

    async def begin(
        self, method: str, path: str, body: bytes = b"", **headers: str
    ) -> h11.Response:
        fields = {"host": "127.0.0.1", "content-length": str(len(body)), **headers}
        head = h11.Request(method=method, target=path, headers=list(fields.items()))
        self.writer.write(
            self.http.send(head)
            + self.http.send(h11.Data(body))
            + self.http.send(h11.EndOfMessage())
        )
        self.response = await self._event()
        return self.response

    async def piece(self) -> bytes | None:
        """The next part of the body, None at its end. Raises for one that was cut short."""
        event = await self._event()
        if isinstance(event, h11.Data):
            self.body += event.data
            self.pieces.append(bytes(event.data))
            return bytes(event.data)
        assert isinstance(event, h11.EndOfMessage)
        return None

    async def rest(self) -> bytes:
        while await self.piece() is not None:
            continue
        return self.body

    async def _event(self) -> Any:
        while (event := self.http.next_event()) is h11.NEED_DATA:
            self.http.receive_data(await asyncio.wait_for(self.reader.read(65536), TIMEOUT))
        return event

    @property
    def header(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.response.headers}

    def leave(self) -> None:
        """Close without reading the rest."""
        self.writer.close()

    def reset(self) -> None:
        """Vanish: RST."""
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.writer.transport.abort()


class ApiClient:
    """Asks the API at a port of this machine."""

    def __init__(self, gateway: Gateway, listener: HttpListener) -> None:
        self.gateway = gateway
        self.engine = gateway.engine
        self.listener = listener
        self.port = listener.port

    async def connect(self, **options: Any) -> Asked:
        return Asked(*await asyncio.open_connection("127.0.0.1", self.port, **options))

    async def speak(self, text: str, headers: dict[str, str] | None = None, **fields: Any) -> Asked:
        """A request for speech whose response has begun."""
        asked = await self.connect()
        wanted = {"model": "tts-1", "voice": "alloy", "input": text, "response_format": "pcm"}
        body = json.dumps({name: v for name, v in {**wanted, **fields}.items() if v is not ...})
        await asked.begin("POST", SPEECH, body.encode(), **(headers or {}))
        return asked

    async def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, Any]:
        asked = await self.connect()
        response = await asked.begin(method, path, **headers)
        body = await asked.rest()
        asked.leave()
        return response.status_code, json.loads(body) if body else None


async def error(asked: Asked) -> tuple[int, dict[str, Any]]:
    """Status and error object of a refused request."""
    body = json.loads(await asked.rest())
    asked.leave()
    return asked.response.status_code, body["error"]


@contextlib.asynccontextmanager
async def api(**options: Any) -> AsyncIterator[ApiClient]:
    """A gateway whose HTTP API is up; see ``harness.gateway``."""
    async with gateway(**options) as running:
        listener = open_api(running.server)
        await listener.start(bind("127.0.0.1", 0))
        try:
            yield ApiClient(running, listener)
        finally:
            await listener.stop(lambda: True)
