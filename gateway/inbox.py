"""Frames to messages, and messages to whoever takes them: a few at a time, so that others get
their turns between. Event loop only."""

import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

from playhead.gateway.turns import Turns
from websockets.frames import Frame, Opcode

log: Final = logging.getLogger("playhead.gateway.peer")

QUEUE: Final = 1
"""Why a peer's reading is paused here."""
READ_BURST: Final = 4
"""Short messages taken before others get a turn."""
SHORT: Final = 1024
"""Bytes, or characters, of a message that counts as one; each as many more count as another: so
much of the worst takes as long to read as a report takes to be heeded, some 0.3 ms."""
MOST_WAITING: Final = 16
"""Messages read and not yet taken, above which nothing more is read."""
INVALID_DATA: Final = 1007
INTERNAL_ERROR: Final = 1011


class Source(Protocol):
    """The peer that frames come from."""

    id: Any
    failed: bool

    @property
    def turns(self) -> Turns:
        """By which its messages are taken."""

    def pause(self, reason: int) -> None:
        """Read no more."""

    def resume(self, reason: int) -> None:
        """Read on."""

    def fail(self, code: int, reason: str) -> None:
        """End the connection."""


class Inbox:
    """The messages of one peer. ``take`` is called for each, in order, and may raise."""

    __slots__ = ("_parts", "_source", "_take", "_waiting")

    def __init__(self, source: Source, take: Callable[[bytes | str], None]) -> None:
        self._source = source
        self._take = take
        self._parts: tuple[Frame, ...] = ()  # of a message whose last frame is not here
        self._waiting: list[bytes | str] | None = None

    def add(self, frame: Frame) -> None:
        """A data frame came, in an order that the protocol allows."""
        if not frame.fin:
            self._parts = (*self._parts, frame)
            return
        opcode = (self._parts[0] if self._parts else frame).opcode
        data = b"".join(bytes(part.data) for part in (*self._parts, frame))
        self._parts = ()
        if opcode is Opcode.BINARY:
            self._enqueue(data)
            return
        try:
            self._enqueue(data.decode())
        except UnicodeDecodeError as fault:
            self._source.fail(INVALID_DATA, f"{fault.reason} at position {fault.start}")

    def drain(self) -> None:
        """Nothing more will come: give away what waits."""
        while self._waiting:
            self._give(self._waiting.pop(0))

    def _enqueue(self, message: bytes | str) -> None:
        if not self._waiting:
            # Made anew each time, since most connections have nothing waiting; and no deque, which
            # takes 600 bytes for a single message: a whole house may speak at once.
            self._waiting = []
            self._source.turns.add(self)
        self._waiting.append(message)
        if len(self._waiting) > MOST_WAITING:
            self._source.pause(QUEUE)

    def turn(self) -> int:
        """Give a few messages away: how much that was, in short ones."""
        waiting = self._waiting
        done = 0
        while waiting and done < READ_BURST:
            message = waiting.pop(0)
            done += 1 + len(message) // SHORT
            self._give(message)
        if waiting:
            self._source.turns.add(self)
            return done
        self._waiting = None
        self._source.resume(QUEUE)
        return done

    def _give(self, message: bytes | str) -> None:
        if self._source.failed:
            return
        try:
            self._take(message)
        # Top of a callback: a fault in one session must end its connection, and nothing else.
        except Exception:
            log.exception("connection %s failed", self._source.id)
            self._source.fail(INTERNAL_ERROR, "internal_error")
