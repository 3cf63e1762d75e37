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
READ: Final = 2**16
SILENCE: Final = np.empty(0, np.float32)
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
        self._room = memoryview(bytearray(READ))

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
        """The MessagePack of one message, which stays until the next one is received, and its
        sound. Nothing follows it before it is answered: a message without much sound is taken
        by one call."""
        have = self._more(self._room, 0, wire.HEAD.size)
        size, sound = wire.lengths(self._room[: wire.HEAD.size])
        end = wire.HEAD.size + size
        if end > len(self._room):
            larger = memoryview(bytearray(end))
            larger[:have] = self._room[:have]
            self._room = larger
        have = self._more(self._room, have, end)
        body = self._room[wire.HEAD.size : end]
        if not sound:
            return body, SILENCE
        pcm = np.empty(sound // SILENCE.itemsize, np.float32)
        room = pcm.data.cast("B")
        room[: have - end] = self._room[end:have]
        self._more(room, have - end, sound)
        return body, pcm

    def _more(self, room: memoryview, have: int, wanted: int) -> int:
        """Receive until ``room`` holds at least ``wanted`` bytes, of which it has ``have``."""
        try:
            while have < wanted:
                got = self._sock.recv_into(room[have:])
                if not got:
                    raise Hangup("the other side has closed the line")
                have += got
        except OSError as error:
            raise Hangup(str(error)) from error
        return have

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
