"""The lines between an engine's process and its model's process: socket pairs, one for control and
one for each lane. Whoever waits on one waits in the system, outside of the interpreter's lock."""

import contextlib
import socket
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from playhead.engine.remote import runner_wire as wire
from playhead.engine.remote.wire import Frames
from playhead.engine.types import Lane, Pcm

LANES: Final = tuple(Lane)
BUFFER: Final = 4 * 2**20
"""Bytes that a line should hold, so that sound is not handed over in many small pieces. The system
may allow less."""
READ: Final = 2**18
MOST_PIECES: Final = 512
"""Of one call: the system takes 1024."""


class Hangup(ConnectionError):
    """The other side is gone."""


def pairs() -> tuple[list[socket.socket], list[socket.socket]]:
    """Both ends of all lines: control, then the lanes in the order of :data:`LANES`."""
    made = [socket.socketpair() for _ in range(1 + len(LANES))]
    for pair in made:
        for end in pair:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
    return [ours for ours, _ in made], [theirs for _, theirs in made]


def frames(control: socket.socket) -> Iterator[list[bytes]]:
    """What comes on the control line, as much at a time as is there, until the other side goes."""
    cut = Frames()
    while data := _heard(control):
        if found := cut.feed(data):
            yield found


def _heard(control: socket.socket) -> bytes:
    try:
        return control.recv(READ)
    except OSError:
        return b""


class LaneLine:
    """One end of a lane's line. One thread at a time. All raise :class:`Hangup`, and those that
    receive ``WireError``."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._head = bytearray(wire.HEAD.size)
        self._body = bytearray(2**16)

    def send(self, message: wire.Work | wire.Done, sound: Sequence[Pcm] = ()) -> None:
        """Send one message."""
        left = wire.letter(message, sound)
        try:
            while left:
                left = _after(left, self._sock.sendmsg(left[:MOST_PIECES]))
        except OSError as error:
            raise Hangup(str(error)) from error

    def ask(self, work: wire.Work) -> tuple[wire.Done, Pcm]:
        """Send work and wait for what came of it, with its sound, float32 [samples]."""
        self.send(work)
        body, sound = self._receive()
        return wire.done(body), sound

    def hear(self) -> wire.Work:
        """Wait for work."""
        body, _ = self._receive()
        return wire.work(body)

    def _receive(self) -> tuple[memoryview, Pcm]:
        self._fill(memoryview(self._head))
        size, sound_bytes = wire.lengths(self._head)
        if size > len(self._body):
            self._body = bytearray(size)
        body = memoryview(self._body)[:size]
        self._fill(body)
        sound = np.empty(sound_bytes // 4, np.float32)
        self._fill(sound.data.cast("B"))
        return body, sound

    def _fill(self, room: memoryview) -> None:
        try:
            while room:
                got = self._sock.recv_into(room, len(room), socket.MSG_WAITALL)
                if not got:
                    raise Hangup("the other side has closed the line")
                room = room[got:]
        except OSError as error:
            raise Hangup(str(error)) from error

    def close(self) -> None:
        """Let go of the line; whoever waits on it, on either side, hears a hangup."""
        hang_up(self._sock)


def hang_up(sock: socket.socket) -> None:
    """Close a line, also for a thread that waits on it. Twice is fine."""
    with contextlib.suppress(OSError):  # it was gone already
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()


def _after(pieces: list[memoryview], sent: int) -> list[memoryview]:
    """What is left of ``pieces`` once ``sent`` bytes are gone."""
    for place, piece in enumerate(pieces):
        if sent < len(piece):
            return [piece[sent:], *pieces[place + 1 :]]
        sent -= len(piece)
    return []
