"""A server that speaks ``playhead.v1`` by a script: every utterance gets the same known delays
and gaps. The generator is checked against it, and its own capacity measured.

It notes when it really sent each message, since timers are never exact.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from playhead.engine.clock import monotonic
from playhead.engine.types import Lane, ListenerState
from playhead.gateway.messages import (
    Audio,
    Cancel,
    Cancelled,
    Done,
    End,
    ErrorEvent,
    Failed,
    Hello,
    Ping,
    PlaybackReport,
    Pong,
    Ready,
    ServerMessage,
    Started,
    Text,
)
from playhead.gateway.protocol import SUBPROTOCOLS, Wire
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

RATE = 24_000


@dataclass(frozen=True, slots=True)
class Script:
    """``chunks``: seconds after the end of the text, and samples. ``fault``: what to do wrong
    (``silence``, ``truncated``, ``wrong_rate``, ``hello``, ``full``, ``overloaded``, ``hang``,
    ``drop``, ``garbage``, ``clock``); empty for nothing. From ``freeze[0]`` to ``freeze[1]`` on our
    clock nothing is started. ``report_interval``: milliseconds. ``forget``: keep no reports."""

    chunks: tuple[tuple[float, int], ...] = ((0.05, 4_800), (0.15, 9_600))
    fault: str = ""
    freeze: tuple[float, float] = (0.0, 0.0)
    report_interval: int = 250
    forget: bool = False


@dataclass(slots=True)
class Spoken:
    """One utterance as the server knows it: when its text had come, and when each chunk left."""

    text: str
    asked: float
    left: list[float] = field(default_factory=list)


class ScriptedServer:
    """``spoken`` lists the utterances in the order in which their texts came."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.spoken: list[Spoken] = []
        self.reports: list[PlaybackReport] = []

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        """Serve on a free port of this machine; yields the address."""
        protocols = [Subprotocol(name) for name in SUBPROTOCOLS]
        async with serve(
            self._talk, "127.0.0.1", 0, subprotocols=protocols, compression=None
        ) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            yield f"ws://127.0.0.1:{port}/v1/session"

    async def _talk(self, socket: ServerConnection) -> None:
        wire = Wire("json" if socket.subprotocol == SUBPROTOCOLS[1] else "msgpack")
        conversation = Conversation(socket, wire, self)
        try:
            async for frame in socket:
                await conversation.receive(frame)
        except ConnectionClosed:
            pass  # a generator that gives up does not say goodbye
        finally:
            conversation.end()


class Conversation:
    """One connection."""

    def __init__(self, socket: ServerConnection, wire: Wire, server: ScriptedServer) -> None:
        self._socket = socket
        self._wire = wire
        self._server = server
        self._script = server.script
        self._text = ""
        self._seq = 0
        self._epoch = 0
        self._samples = 0  # of this utterance, sent
        self._sent_all = False
        self._speaking: asyncio.Task[None] | None = None

    async def receive(self, frame: bytes | str) -> None:
        """Act upon one frame of the client."""
        match self._wire.decode_client(frame):
            case Hello() as hello:
                await self._greet(hello)
            case Ping(time):
                now = 1_000 * monotonic()
                await self._send(Pong(time=time, received=now, sent=now))
            case End():
                self._speaking = asyncio.create_task(self._speak(Spoken(self._text, monotonic())))
                self._text = ""
            case PlaybackReport() as report:
                if not self._script.forget:
                    self._server.reports.append(report)
                await self._judge(report)
            case Cancel():
                await self._cancel()
            case Text(text):
                self._text += text
            case _:
                pass

    def end(self) -> None:
        """The connection is gone."""
        if self._speaking is not None:
            self._speaking.cancel()

    async def _greet(self, hello: Hello) -> None:
        if self._script.fault == "hello":
            await self._send(ErrorEvent(code="bad_value", message="no", expected="yes"))
            return
        if self._script.fault == "full":
            await self._socket.close(1013, "too many connections")
            return
        rate = 8_000 if self._script.fault == "wrong_rate" else hello.sample_rate
        await self._send(
            Ready(
                session="s", token="t", resumed=False, codec=hello.codec, sample_rate=rate,
                pre_skip=0, packet_samples=0, voice="v", voices=("v",), formats=(), limits={},
                grace=0.0, epoch=0, time=1_000 * monotonic(), model="script", server="script",
                report_interval=self._script.report_interval,
            )
        )  # fmt: skip

    async def _speak(self, spoken: Spoken) -> None:
        with contextlib.suppress(ConnectionClosed):
            await self._perform(spoken)

    async def _perform(self, spoken: Spoken) -> None:
        self._server.spoken.append(spoken)
        self._epoch += 1
        self._samples, self._sent_all = 0, False
        await self._send(Started(seq=self._next(), epoch=self._epoch))
        begin, end = self._script.freeze
        start = end if begin <= spoken.asked < end else spoken.asked
        if self._script.fault in _BEFORE_AUDIO:
            await self._misbehave()
            return
        for number, (after, samples) in enumerate(self._script.chunks):
            await asyncio.sleep(max(0.0, start + after - monotonic()))
            final = number == len(self._script.chunks) - 1
            spoken.left.append(monotonic())
            await self._send(self._audio(samples, number, final))
            self._samples += samples
        self._sent_all = True

    async def _misbehave(self) -> None:
        if self._script.fault == "drop":
            self._socket.transport.abort()
        elif self._script.fault == "garbage":
            await self._socket.send(b"\xff\xff")
        elif self._script.fault == "overloaded":
            await self._send(
                Failed(
                    seq=self._next(), epoch=self._epoch, code="overloaded", message="full",
                    expected="later", heard=0, heard_text="", unheard_text="",
                )
            )  # fmt: skip

    def _audio(self, samples: int, number: int, final: bool) -> Audio:
        byte = b"\0" if self._script.fault == "silence" else b"\1"
        back = 10.0 * number if self._script.fault == "clock" else 0.0  # seconds
        return Audio(
            seq=self._next(), epoch=self._epoch, index=number, position=self._samples,
            samples=samples, words=(), lane=Lane.BACKGROUND if number else Lane.URGENT,
            slack=None, depth=0.0, sent=1_000 * (monotonic() - back), final=final,
            data=byte * 2 * samples,
        )  # fmt: skip

    async def _judge(self, report: PlaybackReport) -> None:
        """``done`` once the listener has played all."""
        over = report.epoch == self._epoch and report.state is ListenerState.DRAINED
        if not over or not self._sent_all:
            return
        self._sent_all = False
        total = self._samples + (self._script.fault == "truncated")
        await self._send(
            Done(
                seq=self._next(), epoch=self._epoch, samples=total, heard=total,
                estimated=False, reason="complete",
            )
        )  # fmt: skip

    async def _cancel(self) -> None:
        self.end()
        await self._send(
            Cancelled(
                seq=self._next(), epoch=self._epoch, heard=0, heard_text="", unheard_text="",
                estimated=False,
            )
        )  # fmt: skip

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    async def _send(self, message: ServerMessage) -> None:
        for frame in self._wire.encode(message):
            await self._socket.send(frame)


_BEFORE_AUDIO = frozenset({"overloaded", "hang", "drop", "garbage"})
