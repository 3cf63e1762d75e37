"""Server processes and bare clients for the reliability tests and their long forms."""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from playhead.engine.types import Pcm
from playhead.gateway import messages as m
from playhead.gateway.protocol import Wire
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

PROGRAM = Path(__file__).with_name("faulty.py")
FOLDERS = (PROGRAM.parent, PROGRAM.parent.parent)
READY = re.compile(r"playhead with voice \S+ is ready: http://127\.0\.0\.1:(\d+)/\n")
TIMEOUT = 60.0

Message = TypeVar("Message", bound=m.ServerMessage)


def environment(**more: str) -> dict[str, str]:
    """This process's, with what a server process needs to find its voice."""
    known = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join([*map(str, FOLDERS), *filter(None, [known])])
    return {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": path, **more}


@contextlib.contextmanager
def served(
    *flags: str, stderr: Any = subprocess.PIPE, **variables: str
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A server process with the faulty voice: the process and its URL."""
    command = [sys.executable, str(PROGRAM), "serve", "--port", "0", *flags]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment(**variables)
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            found = READY.fullmatch(line)
            assert found, line
            yield process, f"ws://127.0.0.1:{found[1]}/v1/session"
        finally:
            process.kill()


class Bare:
    """A client that takes what comes and keeps the sound, by epoch."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.wire = Wire("msgpack")
        self.ready: m.Ready
        self.seq = 0
        self.sound: dict[int, list[bytes]] = {}
        self.endings: dict[int, m.Done | m.Cancelled | m.Failed] = {}

    async def send(self, *messages: m.ClientMessage) -> None:
        for message in messages:
            await self.socket.send(self.wire.encode_client(message))

    async def receive(self) -> m.ServerMessage:
        while True:
            message = self.wire.decode_server(await self.socket.recv())
            if message is not None:
                self._keep(message)
                return message

    async def until(self, *kinds: type[Message]) -> Message:
        async with asyncio.timeout(TIMEOUT):
            while True:
                message = await self.receive()
                if isinstance(message, kinds):
                    return message

    async def all_audio(self, epoch: int = 1) -> Pcm:
        """Read until this utterance's last sample, or its end, has come."""
        async with asyncio.timeout(TIMEOUT):
            while epoch not in self.endings:
                message = await self.receive()
                if isinstance(message, m.Audio) and message.final and message.epoch == epoch:
                    break
        return self.heard(epoch)

    def heard(self, epoch: int = 1) -> Pcm:
        """float32 [samples]: all sound of an utterance so far."""
        return np.frombuffer(b"".join(self.sound.get(epoch, [])), "<f4")

    def _keep(self, message: m.ServerMessage) -> None:
        if isinstance(message, m.Audio):
            self.sound.setdefault(message.epoch, []).append(message.data)
        if isinstance(message, m.Done | m.Cancelled | m.Failed):
            assert message.epoch not in self.endings, "one ending each"
            self.endings[message.epoch] = message
        if not isinstance(message, m.Ready | m.Pong | m.ErrorEvent):
            self.seq = message.seq


@contextlib.asynccontextmanager
async def client(
    url: str, *, greeted: bool = True, key: str = "", **hello: Any
) -> AsyncIterator[Bare]:
    """A connected client that hears floats; without ``greeted`` its hello has no answer yet."""
    async with connect(
        url,
        subprotocols=[Subprotocol("playhead.v1.msgpack")],
        compression=None,
        max_size=None,
        ping_interval=None,
        additional_headers={"Authorization": f"Bearer {key}"} if key else None,
    ) as socket:
        bare = Bare(socket)
        await bare.send(m.Hello(**{"codec": "pcm_f32le", "reports": False, **hello}))
        if greeted:
            bare.ready = await bare.until(m.Ready)
        yield bare
