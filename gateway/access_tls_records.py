"""What a peer may send inside TLS that is no message of its own.

TLS has messages of its own that its peer must work for: requests to change keys (KeyUpdate, RFC
8446 section 4.6.3), handshakes again (RFC 5746), alerts, empty records. None of them reaches
whoever counts frames, and OpenSSL works through all that has been read before it gives anything
back: 256 KiB of KeyUpdates are more than half a second in which nobody else is served. So here
OpenSSL is given one record at a time, and a connection whose peer sends too many that carry nothing
is ended. Records of a byte cost as much as those of a WebSocket's frame, so many of them at once
count as well; how much is read at once, ``sockets`` bounds.
"""

import ssl
from typing import Any, Final
from weakref import WeakSet

HEAD: Final = 5
"""Bytes before a record: its type, its version, and its length in the last two."""
TYPES: Final = range(20, 24)
MOST: Final = HEAD + 16_384 + 2_048
"""Bytes of a record (RFC 5246, section 6.2.3)."""
IDLE: Final = 64
"""Records without data that are forgiven. A handshake has three to six; clients change their keys
after millions of records, if ever."""
EARNED: Final = 2048
"""Bytes of data that make up for a record without; one record makes up for one at most."""
TINY: Final = 6
"""Bytes of the smallest frame that a client sends (RFC 6455, 5.2): ping, pong, close. Records with
fewer are pieces, as of clients that write a frame's head, its mask and its payload one by one."""
PIECES: Final = 8
"""Tiny records of one read that are as good as any: whoever sends so few at a time may do so for
ever."""
OF_A_FRAME: Final = 3
"""Those that each other record of the read makes up for: clients may write a frame in four."""
PIECE: Final = EARNED // 16
"""Bytes of data that make up for a tiny record beyond those."""


class Flooded(ssl.SSLError):
    """The peer sends records that carry nothing."""


class Metered(ssl.SSLObject):
    """The server's side of one connection. :class:`Context` makes it."""

    _arrived: ssl.MemoryBIO  # what the transport has read
    _rest: bytes  # taken out of it, from `_at` on not yet given to OpenSSL
    _at: int
    _given: ssl.MemoryBIO  # what OpenSSL reads from
    _more: bool  # whether OpenSSL may have more of a record than was read
    _fed: bool  # whether the latest record has yet to show what it carries
    _idle: int  # bytes of data that would make up for what came to nothing
    _pieces: int  # tiny records of this read, less those that others make up for

    def meter(self, arrived: ssl.MemoryBIO, given: ssl.MemoryBIO) -> None:
        """Read what comes into ``arrived``, and let OpenSSL have it by ``given``."""
        self._arrived, self._given = arrived, given
        self._rest, self._at, self._idle, self._pieces = b"", 0, 0, 0
        self._more = self._fed = False

    def do_handshake(self) -> None:
        """As of ``ssl.SSLObject``. Raises :class:`Flooded` too."""
        if self._arrived.pending:
            _SHAKING.add(self)
        try:
            self._shake()
        except ssl.SSLWantReadError:
            raise
        except OSError:  # of which those of TLS are
            _SHAKING.discard(self)
            raise
        _SHAKING.discard(self)
        self._idle = 0

    def _shake(self) -> None:
        while True:
            try:
                super().do_handshake()
            except ssl.SSLWantReadError:
                self._feed()
            else:
                return

    def read(self, most: int = 1024, buffer: Any = None) -> Any:
        """As of ``ssl.SSLObject``. Raises :class:`Flooded` too."""
        while True:
            if not self._more:
                self._feed()
            try:
                got = super().read(most, buffer)
            except ssl.SSLWantReadError:
                self._more = False
                continue
            size = got if isinstance(got, int) else len(got)
            self._more = size == most
            if self._fed:
                self._fed = False
                self._credit(size)
            return got

    def _credit(self, size: int) -> None:
        """The latest record has carried ``size`` bytes, if not more than were asked for."""
        self._idle -= EARNED
        if size >= TINY or self._more:
            self._pieces -= OF_A_FRAME
            self._idle = max(0, self._idle - min(size, EARNED))
            return
        self._pieces += 1
        if self._pieces > PIECES:
            self._idle += PIECE

    def pending(self) -> int:
        """As of ``ssl.SSLObject``, with what OpenSSL has not been given yet."""
        return super().pending() + len(self._rest) - self._at

    def unwrap(self) -> None:
        """As of ``ssl.SSLObject``. Raises :class:`Flooded` too."""
        while True:
            try:
                super().unwrap()
            except ssl.SSLWantReadError:
                self._feed()
            else:
                return

    def _feed(self) -> None:
        """Give OpenSSL the next record; raises ``SSLWantReadError`` when there is none."""
        if self._arrived.pending:
            self._rest, self._at = self._rest[self._at :] + self._arrived.read(), 0
            self._pieces = 0
        rest, at = self._rest, self._at
        left = len(rest) - at
        if left < HEAD:
            raise ssl.SSLWantReadError
        size = HEAD + rest[at + 3] * 256 + rest[at + 4]
        if rest[at] not in TYPES or size > MOST:
            size = left  # no TLS: OpenSSL says so without waiting for more
        if left < size:
            raise ssl.SSLWantReadError
        if self._idle > IDLE * EARNED:
            raise Flooded("the peer sends records that carry nothing")
        self._idle += EARNED
        self._fed = True
        self._given.write(rest[at : at + size])
        if left == size:
            self._rest, self._at = b"", 0
        else:
            self._at = at + size


_SHAKING: Final[WeakSet[Metered]] = WeakSet()


def shaking() -> bool:
    """Whether a handshake of this process's servers is going on: its client has said something,
    and it has not failed. One whose client is gone may count until its garbage is collected, where
    the loop is asyncio's own."""
    return bool(_SHAKING)


class Context(ssl.SSLContext):
    """A context of servers whose connections are metered."""

    sslobject_class = Metered

    def wrap_bio(self, incoming: ssl.MemoryBIO, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        """As of ``ssl.SSLContext``."""
        given = ssl.MemoryBIO()
        made = super().wrap_bio(given, *args, **kwargs)
        assert isinstance(made, Metered)
        made.meter(incoming, given)
        return made
