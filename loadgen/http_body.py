"""The body of a streaming HTTP/1.1 response, piece by piece as it comes (RFC 9112). Pure.

Only what a speech server sends: a status line, headers, and a body that is chunked, has a length,
or ends with the connection.
"""

from dataclasses import dataclass, field

_MOST_HEAD = 65_536


class BadResponse(ValueError):
    """The bytes are no HTTP response."""


@dataclass(slots=True)
class Response:
    """Feed it bytes; it gives the body's. ``status`` is 0 until the head has come."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    over: bool = False
    _pending: bytes = b""
    _left: int = 0  # of the chunk, or of the body when it has a length
    _chunked: bool = False
    _sized: bool = False

    def feed(self, data: bytes) -> bytes:
        """The part of the body that is in ``data``. Raises :class:`BadResponse`."""
        self._pending += data
        if not self.status and not self._take_head():
            return b""
        return self._chunks() if self._chunked else self._plain()

    def end(self) -> bool:
        """The connection was closed; whether the body is complete."""
        if self.status and not self._chunked and not self._sized:
            self.over = True
        return self.over

    def _take_head(self) -> bool:
        head, blank, rest = self._pending.partition(b"\r\n\r\n")
        if not blank:
            if len(head) > _MOST_HEAD:
                raise BadResponse("its head does not end")
            return False
        first, *lines = head.decode("latin-1").split("\r\n")
        version, _, status = first.partition(" ")
        if not version.startswith("HTTP/1.") or not status[:3].isdigit():
            raise BadResponse(f"{first[:40]!r} is no status line")
        self.status = int(status[:3])
        for line in lines:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        self._chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        length = self.headers.get("content-length", "")
        self._sized = length.isdigit()
        self._left = int(length) if self._sized else 0
        self._pending = rest
        return True

    def _plain(self) -> bytes:
        data, self._pending = self._pending, b""
        if not self._sized:
            return data
        data = data[: self._left]
        self._left -= len(data)
        self.over = self._left == 0
        return data

    def _chunks(self) -> bytes:
        """Chunks are ``size CRLF data CRLF``; the data is given on before its chunk is whole."""
        pieces = []
        while not self.over and (self._left > 0 or self._next_chunk()):
            piece = self._pending[: self._left]
            if not piece:
                break
            pieces.append(piece)
            self._pending = self._pending[len(piece) :]
            self._left -= len(piece)
        return b"".join(pieces)

    def _next_chunk(self) -> bool:
        line, end, rest = self._pending.removeprefix(b"\r\n").partition(b"\r\n")
        if not end:
            return False
        try:
            self._left = int(line.partition(b";")[0], 16)
        except ValueError:
            raise BadResponse(f"{line[:20]!r} is no chunk size") from None
        self._pending = rest
        self.over = self._left == 0
        return not self.over
