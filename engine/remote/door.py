"""A gateway's way to an engine in another process: the same door, over a Unix socket."""

import asyncio
import logging
import math
import socket
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Final, cast

from playhead.engine.events import died
from playhead.engine.picture import EnginePicture
from playhead.engine.remote import wire
from playhead.engine.stats import EngineStats
from playhead.engine.types import (
    EngineEvent,
    ListenerState,
    Report,
    Request,
    RunnerDead,
)

log: Final = logging.getLogger(__name__)

READ: Final = 2**18
GATHER: Final = 0.002
"""Seconds for which reports wait for others, since the engine looks at them no more often
(``loop.PACE``): each frame costs its process more than what is in it."""
MOST_PICTURES: Final = 64
"""Pictures asked for and not yet come; older ones are given up."""


class NoEngine(RuntimeError):
    """No engine can be reached at a socket."""


class NotYet(NoEngine):
    """Nobody listens there; somebody may, soon."""


@dataclass(frozen=True, slots=True)
class Introduction:
    """A connection on which the engine has said hello, and what it said after that."""

    sock: socket.socket
    hello: wire.Hello
    frames: wire.Frames
    unpacker: wire.Unpacker
    said: tuple[wire.FromEngine, ...]


def introduce(path: str, timeout: float) -> Introduction:
    """Connect to the engine at ``path``; its hello comes within ``timeout`` seconds. Blocks.
    Raises :class:`NotYet`, or another :class:`NoEngine` where asking again is of no use."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout)
        sock.connect(path)
        return _greeted(sock)
    except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError) as error:
        sock.close()
        raise NotYet(f"no engine answers at {path}: {error}") from error
    except (OSError, wire.WireError) as error:
        sock.close()
        raise NoEngine(f"no engine answers at {path}: {error}") from error


def _greeted(sock: socket.socket) -> Introduction:
    frames, unpacker = wire.Frames(), wire.Unpacker()
    said: list[wire.FromEngine] = []
    while not said:
        data = sock.recv(READ)
        if not data:
            raise wire.WireError("it has no room for one more gateway")
        for frame in frames.feed(data):
            said += unpacker.from_engine(frame)
    hello = said.pop(0)
    if not isinstance(hello, wire.Hello):
        raise wire.WireError("what answers there does not say hello")
    sock.setblocking(False)
    return Introduction(sock, hello, frames, unpacker, tuple(said))


class RemoteEngine(asyncio.Protocol):
    """The engine as its gateway sees it (``gateway/door.py``). Event loop only.

    What is asked in one turn of the loop leaves in one frame; reports alone wait a moment for
    others (``GATHER``), and whatever is asked meanwhile takes them along. When the other process
    ends, every utterance that it has not finished fails, and ``dead`` says why.
    """

    def __init__(self, introduction: Introduction, deliver: Callable[[list[EngineEvent]], None]):
        self.info = introduction.hello.info
        self.dead: BaseException | None = None
        self.tells = False
        self._introduction = introduction
        self._frames, self._unpacker = introduction.frames, introduction.unpacker
        self._packer = wire.Packer()
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self._stats = introduction.hello.stats
        self._out: list[wire.FromGateway] = []
        self._leaves_within = math.inf  # seconds, as was asked for what waits to leave
        self._live: dict[int, int] = {}  # utterance -> samples that have come
        self._pictures: dict[int, Callable[[EnginePicture], None]] = {}
        self._numbers = count()
        self._transport: asyncio.WriteTransport | None = None
        self._opening: asyncio.Task[object] | None = None
        self._stopped = False

    # -- the door ---------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to read what the engine says."""
        self._opening = self._loop.create_task(
            self._loop.create_connection(lambda: self, sock=self._introduction.sock)
        )

    def stop(self) -> None:
        """Leave the engine. It cancels what it still makes for us."""
        self._stopped = True
        if self._transport is not None:
            self._flush()
            self._transport.close()
        else:
            self._introduction.sock.close()

    def submit(self, request: Request) -> None:
        """Speak an utterance. A refusal arrives as ``Finished`` with reason ``FAILED``."""
        if self.dead is not None:
            self._deliver([died(request.utterance, 0, self.dead)])
            return
        self._live[request.utterance] = 0
        self._say(wire.Submit(request))

    def push_text(
        self, utterance: int, delta: str, *, flush: bool = False, end: bool = False
    ) -> None:
        """Add text to an utterance; ``end`` says that no more follows."""
        self._say(wire.Text(utterance, delta, flush, end))

    def cancel(self, utterance: int) -> None:
        """End an utterance at once."""
        self._say(wire.Cancel(utterance))

    def report(self, report: Report, now: float) -> None:
        """A listener's report that arrived at ``now``."""
        self._say(wire.Reported(report, now), GATHER)

    def hold(self, utterance: int, state: ListenerState | None, now: float) -> None:
        """Freeze an utterance's listener, or let it go on with ``None``."""
        self._say(wire.Held(utterance, state, now))

    def delay(self, client: str, one_way: float) -> None:
        """The measured one-way network delay to a client, seconds."""
        self._say(wire.Delay(client, one_way))

    def forget(self, client: str) -> None:
        """A client is gone for good."""
        self._say(wire.Forget(client))

    def paused(self, seconds: float, now: float) -> None:
        """This process's event loop stood still for ``seconds`` until ``now``."""
        self._say(wire.Paused(seconds, now))

    def stats(self) -> EngineStats:
        """The engine as it last told of itself."""
        return self._stats

    def look(self, utterances: Collection[int], see: Callable[[EnginePicture], None]) -> None:
        """Call ``see`` with a picture of soon; never once the engine is dead."""
        number = next(self._numbers)
        self._pictures[number] = see
        self._pictures.pop(number - MOST_PICTURES, None)
        self._say(wire.Look(number, list(utterances)))

    # -- the socket -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The loop has taken the socket over."""
        # Not asserted: uvloop's transports have the methods and not the base class.
        self._transport = cast("asyncio.WriteTransport", transport)
        self._flush()
        self._read(self._introduction.said)

    def data_received(self, data: bytes) -> None:
        """Bytes of the engine's."""
        try:
            for frame in self._frames.feed(data):
                self._read(self._unpacker.from_engine(frame))
        except wire.WireError as error:
            log.critical("%s", error)
            self._lose(RunnerDead(str(error)))

    def connection_lost(self, exc: Exception | None) -> None:
        """The other process is gone, or we have left it."""
        self._lose(RunnerDead("the engine's process has ended"))

    def _read(self, messages: Iterable[wire.FromEngine]) -> None:
        events: list[EngineEvent] = []
        for message in messages:
            self._take(message, events)
        if events:
            self._deliver(events)

    def _take(self, message: wire.FromEngine, events: list[EngineEvent]) -> None:
        match message:
            case wire.Chunk(event):
                if event.utterance in self._live:
                    self._live[event.utterance] += len(event.pcm)
                    events.append(event)
            case wire.Ended(event):
                self._live.pop(event.utterance, None)
                events.append(event)
            case wire.Warned(event):
                events.append(event)
            case wire.Stats(stats):
                self._stats = stats
            case wire.Tell():
                self.tells = True
            case wire.Picture(number, picture):
                if see := self._pictures.pop(number, None):
                    see(picture)
            case wire.Dead(reason):
                self._lose(RunnerDead(reason))

    def _say(self, message: wire.FromGateway, within: float = 0.0) -> None:
        if self.dead is not None or self._stopped:
            return
        self._out.append(message)
        if within < self._leaves_within and self._transport is not None:
            self._leaves_within = within
            self._loop.call_later(within, self._flush)

    def _flush(self) -> None:
        self._leaves_within = math.inf
        out, self._out = self._out, []
        if out and self._transport is not None:
            self._transport.writelines(self._packer.pack(out))

    def _lose(self, fault: BaseException) -> None:
        """Nothing will come any more: tell everybody who is owed a terminal event."""
        if self.dead is not None or self._stopped:
            return
        self.dead = fault
        self._pictures.clear()
        self._out.clear()  # reports that waited for others
        live, self._live = self._live, {}
        if live:
            self._deliver([died(utterance, sent, fault) for utterance, sent in live.items()])
        if self._transport is not None:
            self._transport.close()
