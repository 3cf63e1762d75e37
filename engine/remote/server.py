"""The engine's side of the socket: gateways come and go, each gets the events of its utterances."""

import asyncio
import errno
import logging
import math
import os
import socket
import stat
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias, cast

from playhead.engine.loop import PICTURES, Deliver, Engine
from playhead.engine.picture import EnginePicture
from playhead.engine.remote import wire
from playhead.engine.types import AudioChunk, EngineEvent, Finished, Request

log: Final = logging.getLogger(__name__)

MOST_UNREAD: Final = 256 * 2**20
"""Bytes that a gateway may leave unread. Then it is cut off: this memory is everybody's."""

EventMessage: TypeAlias = wire.Chunk | wire.Warned | wire.Ended

LAST_WORDS: Final = 0.1
"""Seconds for the socket to take what was said last."""


class EngineServer:
    """Serves one engine at a Unix socket. Event loop only, except :meth:`deliver`."""

    def __init__(self, open_engine: Callable[[Deliver], Engine]) -> None:
        self.loop = asyncio.get_running_loop()
        self.gateways: dict[int, Gateway] = {}
        self._teller: Gateway | None = None
        self._next = {slot: slot for slot in range(1, wire.STRIDE)}  # first unused utterance
        self._server: asyncio.Server | None = None
        self._told = -math.inf
        self.engine = open_engine(self.deliver)

    async def start(self, path: str) -> None:
        """Listen at ``path``, which only our user can reach. Raises ``OSError`` where that cannot
        be had."""
        sock = _bind(path)
        self._server = await self.loop.create_unix_server(lambda: Gateway(self), sock=sock)
        self.loop.call_later(PICTURES, self._tell)

    def stop(self) -> None:
        """Let all gateways go and end the engine."""
        if self._server is not None:
            self._server.close()
        for gateway in list(self.gateways.values()):
            gateway.close()
        self.engine.stop()

    def deliver(self, events: list[EngineEvent]) -> None:
        """Called on the engine's thread: one hop onto the loop for all events of a turn."""
        self.loop.call_soon_threadsafe(self._spread, events)

    def enter(self, gateway: "Gateway") -> int | None:
        """A slot for a gateway; None: all are taken."""
        slot = next((slot for slot in self._next if slot not in self.gateways), None)
        if slot is not None:
            self.gateways[slot] = gateway
        return slot

    def first(self, slot: int) -> int:
        """The first utterance of ``slot`` that was never used."""
        return self._next[slot]

    def used(self, utterance: int) -> None:
        """An utterance's number is taken for good: what ends late must not look like another."""
        self._next[utterance % wire.STRIDE] = utterance + wire.STRIDE

    def leave(self, slot: int) -> None:
        """A gateway is gone."""
        if self.gateways.pop(slot, None) is self._teller:
            self._teller = None
            self.choose_teller()

    @property
    def speaking(self) -> bool:
        """Whether any gateway has an utterance alive."""
        return any(gateway.utterances for gateway in self.gateways.values())

    @property
    def living(self) -> int:
        """Gateways, their clients and their utterances."""
        gateways = self.gateways.values()
        return sum(1 + gateway.utterances + gateway.clients for gateway in gateways)

    def choose_teller(self) -> None:
        """Have one gateway show the engine's figures: so that those of all can be added up."""
        if self._teller is None and self.gateways:
            self._teller = next(iter(self.gateways.values()))
            self._teller.say([wire.Tell()])

    async def tell_dead(self, reason: str) -> None:
        """Tell every gateway that the engine has stopped for good, after all that it said."""
        for gateway in list(self.gateways.values()):
            gateway.say([wire.Dead(reason)])
        await asyncio.sleep(LAST_WORDS)

    def _spread(self, events: list[EngineEvent]) -> None:
        letters: defaultdict[int, list[EventMessage]] = defaultdict(list)
        for event in events:
            letters[event.utterance % wire.STRIDE].append(_message(event))
        for slot, messages in letters.items():
            if gateway := self.gateways.get(slot):
                gateway.heard(messages)

    def _tell(self) -> None:
        stats = self.engine.stats()
        if stats.at != self._told:
            self._told = stats.at
            for gateway in list(self.gateways.values()):
                gateway.say([wire.Stats(stats)])
        self.loop.call_later(PICTURES, self._tell)


class Gateway(asyncio.Protocol):
    """One gateway process, as the engine's process sees it."""

    def __init__(self, server: EngineServer) -> None:
        self._server = server
        self._engine = server.engine
        self._frames = wire.Frames()
        self._packer, self._unpacker = wire.Packer(), wire.Unpacker()
        self._slot: int | None = None
        self._live: set[int] = set()
        self._clients: set[str] = set()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say hello, unless all places are taken."""
        # Not asserted: uvloop's transports have the methods and not the base class.
        self._transport = cast("asyncio.Transport", transport)
        self._slot = self._server.enter(self)
        if self._slot is None:
            self._transport.close()
            return
        log.info("gateway %d has come", self._slot)
        first = self._server.first(self._slot)
        self.say([wire.Hello(self._engine.info, self._engine.stats(), first)])
        self._server.choose_teller()

    def data_received(self, data: bytes) -> None:
        """Bytes of the gateway's."""
        try:
            for frame in self._frames.feed(data):
                for message in self._unpacker.from_gateway(frame):
                    self._take(message)
        except wire.WireError as error:
            log.warning("gateway %s is cut off: %s", self._slot, error)
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The gateway is gone, and with it whoever listened there."""
        if self._slot is None:
            return
        log.info("gateway %d has gone with %d utterances", self._slot, len(self._live))
        self._server.leave(self._slot)
        for utterance in self._live:
            self._engine.cancel(utterance)
        for client in self._clients:
            self._engine.forget(client)

    @property
    def utterances(self) -> int:
        """Of this gateway that are alive."""
        return len(self._live)

    @property
    def clients(self) -> int:
        """Of this gateway that something may be known of."""
        return len(self._clients)

    def close(self) -> None:
        """Cut the connection."""
        if self._transport is not None:
            self._transport.abort()

    def heard(self, messages: Sequence[EventMessage]) -> None:
        """Events of this gateway's utterances. Those of one that had its place before it, which
        end late, are nobody's."""
        own = [message for message in messages if message.event.utterance in self._live]
        self._live.difference_update(m.event.utterance for m in own if isinstance(m, wire.Ended))
        if own:
            self.say(own)

    def say(self, messages: Sequence[wire.FromEngine]) -> None:
        """Send a frame."""
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.writelines(self._packer.pack(messages))
        if self._transport.get_write_buffer_size() > MOST_UNREAD:
            log.error("gateway %s does not read and is cut off", self._slot)
            self.close()

    def _take(self, message: wire.FromGateway) -> None:
        engine = self._engine
        match message:
            case wire.Reported(report, now):
                engine.report(report, now)
            case wire.Text(utterance, delta, flush, end):
                engine.push_text(utterance, delta, flush=flush, end=end)
            case wire.Submit(request):
                self._submit(request)
            case wire.Cancel(utterance):
                engine.cancel(utterance)
            case wire.Held(utterance, state, now):
                engine.hold(utterance, state, now)
            case wire.Delay(client, one_way):
                self._clients.add(client)
                engine.delay(client, one_way)
            case wire.Forget(client):
                self._clients.discard(client)
                engine.forget(client)
            case wire.Paused(seconds, now):
                engine.paused(seconds, now, self._slot or 0)
            case wire.Look(number, utterances):
                engine.look(utterances, lambda picture: self._saw(number, picture))

    def _submit(self, request: Request) -> None:
        if self._slot is None or request.utterance % wire.STRIDE != self._slot:
            raise wire.WireError(f"utterance {request.utterance} is not of gateway {self._slot}")
        self._server.used(request.utterance)
        self._live.add(request.utterance)
        self._clients.add(request.client)
        self._engine.submit(replace(request, gateway=self._slot))

    def _saw(self, number: int, picture: EnginePicture) -> None:
        """Called on the engine's thread."""
        self._server.loop.call_soon_threadsafe(self.say, [wire.Picture(number, picture)])


def _message(event: EngineEvent) -> EventMessage:
    if isinstance(event, AudioChunk):
        return wire.Chunk(event)
    return wire.Ended(event) if isinstance(event, Finished) else wire.Warned(event)


def _bind(path: str) -> socket.socket:
    """A socket at ``path``. One that a dead process left there is replaced, nothing else."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if _occupied(path):
            Path(path).unlink()
        sock.bind(path)
        os.chmod(path, 0o600)
    except OSError:
        sock.close()
        raise
    return sock


def _occupied(path: str) -> bool:
    """Whether a dead process's socket is there. Raises ``OSError`` for anything else."""
    try:
        mode = Path(path).lstat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(mode):
        raise FileExistsError(errno.EEXIST, "what is there is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        try:
            asking.connect(path)
        except ConnectionRefusedError:
            return True
    raise OSError(errno.EADDRINUSE, "another engine answers there")
