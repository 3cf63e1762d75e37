"""A scripted server for the client's tests: real sockets, no engine."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from playhead.codecs.registry import encoder, open_format
from playhead.engine.types import Lane, Pcm
from playhead.gateway import messages as m
from playhead.gateway.protocol import SUBPROTOCOLS, Wire
from websockets.asyncio.server import ServerConnection, serve

READY = m.Ready(
    session="s1",
    token="t1",
    resumed=False,
    codec="pcm_s16le",
    sample_rate=24000,
    pre_skip=0,
    packet_samples=0,
    voice="stub",
    voices=("stub",),
    formats=(),
    limits={"text_message": 2000},
    grace=2000.0,
    epoch=0,
    time=0.0,
    model="stub",
    server="stub",
)


def ready_for(hello: m.Hello, **changes: Any) -> m.Ready:
    wire_format = open_format(hello.codec, hello.sample_rate)
    ready = replace(
        READY,
        codec=wire_format.codec,
        sample_rate=wire_format.sample_rate,
        pre_skip=wire_format.pre_skip,
        packet_samples=wire_format.packet_samples,
        resumed=hello.resume is not None,
    )
    return replace(ready, **changes)


def tone(samples: int, start: int = 0) -> Pcm:
    """A 440 Hz tone at 24 kHz, float32 [samples]."""
    at = np.arange(start, start + samples)
    return (0.5 * np.sin(2 * np.pi * 440 * at / 24000)).astype(np.float32)


@dataclass
class Peer:
    """One client's connection, seen from the server."""

    socket: ServerConnection
    wire: Wire
    number: int  # 0 for the first connection
    seq: int = 0
    got: list[m.ClientMessage] = field(default_factory=list)

    async def receive(self) -> m.ClientMessage:
        message = self.wire.decode_client(await self.socket.recv())
        self.got.append(message)
        if isinstance(message, m.Hello):
            self.wire.binary_audio = message.binary_audio
        return message

    async def until(self, kind: type[Any]) -> Any:
        """The next message of this kind; those before it are only noted."""
        while not isinstance(message := await self.receive(), kind):
            pass
        return message

    async def send(self, message: m.ServerMessage) -> None:
        for frame in self.wire.encode(message):
            await self.socket.send(frame)

    async def number_and_send(self, cls: type[Any], **fields: Any) -> None:
        self.seq += 1
        await self.send(cls(seq=self.seq, **fields))

    async def greet(self, **changes: Any) -> m.Hello:
        hello = await self.receive()
        assert isinstance(hello, m.Hello)
        await self.send(ready_for(hello, **changes))
        return hello

    async def started(self, epoch: int) -> m.Start:
        start = await self.until(m.Start)
        await self.number_and_send(m.Started, epoch=epoch, id=start.id)
        assert isinstance(start, m.Start)
        return start

    async def audio(
        self,
        epoch: int,
        index: int,
        position: int,
        data: bytes,
        samples: int,
        final: bool = False,
        **fields: Any,
    ) -> None:
        values: dict[str, Any] = {
            "words": (),
            "lane": Lane.URGENT if index == 0 else Lane.BACKGROUND,
            "slack": None,
            "depth": 0.0,
            "sent": 1000.0 * index,
        }
        await self.number_and_send(
            m.Audio,
            epoch=epoch,
            index=index,
            position=position,
            data=data,
            samples=samples,
            final=final,
            **(values | fields),
        )

    async def speak(self, epoch: int, pcm: Pcm, hello: m.Hello, chunk: int = 1920) -> None:
        """Send audio in chunks, with the final one flushed out of the codec."""
        codec = encoder(open_format(hello.codec, hello.sample_rate), 24000)
        position = index = 0
        for at in range(0, len(pcm), chunk):
            part = codec.encode(pcm[at : at + chunk])
            packets = part.packets or None
            await self.audio(epoch, index, position, part.data, part.samples, packets=packets)
            position, index = position + part.samples, index + 1
        rest = codec.flush()
        await self.audio(
            epoch, index, position, rest.data, rest.samples, True, packets=rest.packets or None
        )

    async def done(self, epoch: int, samples: int) -> None:
        await self.number_and_send(
            m.Done, epoch=epoch, samples=samples, heard=samples, estimated=False, reason="complete"
        )

    def drop(self) -> None:
        """Cut the connection as a cable would."""
        self.socket.transport.abort()

    def sent_text(self) -> str:
        return "".join(message.text for message in self.got if isinstance(message, m.Text))

    def reports(self) -> list[m.PlaybackReport]:
        return [message for message in self.got if isinstance(message, m.PlaybackReport)]


Script = Callable[[Peer], Awaitable[None]]


@asynccontextmanager
async def stub(script: Script, process_request: Any = None) -> AsyncIterator[str]:
    """Serve with ``script`` called for each connection; yields the URL. Its faults are raised.
    ``process_request``: as of ``websockets``, may refuse a connection."""
    faults: list[BaseException] = []
    count = 0

    async def handle(socket: ServerConnection) -> None:
        nonlocal count
        encoding: Any = "json" if str(socket.subprotocol).endswith("json") else "msgpack"
        peer = Peer(socket, Wire(encoding), count)
        count += 1
        try:
            await script(peer)
        except Exception as error:
            faults.append(error)
            raise

    subprotocols: Any = SUBPROTOCOLS
    async with serve(
        handle,
        "127.0.0.1",
        0,
        subprotocols=subprotocols,
        compression=None,
        process_request=process_request,
    ) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"ws://127.0.0.1:{port}/v1/session"
    from websockets.exceptions import ConnectionClosed

    broken = [fault for fault in faults if not isinstance(fault, ConnectionClosed)]
    if broken:
        raise broken[0]
