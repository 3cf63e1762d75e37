"""The text of one utterance on its way to the server, piece by piece. No I/O."""

from collections import deque
from collections.abc import Iterator
from enum import Enum, auto

from playhead.client.style import USUAL, Style
from playhead.gateway.messages import ClientMessage, End, Flush, Text


class Mark(Enum):
    """A point in the stream of text."""

    FLUSH = auto()
    END = auto()


FLUSH, END = Mark.FLUSH, Mark.END


class Script:
    """Collects text and marks, and hands them out as messages.

    Small pieces that wait are joined, so that a stalled connection does not end in a flood of
    tiny messages. ``waiting`` tells how much sent text has not become sound yet, as far as word
    timings and warnings say: servers bound it.
    """

    def __init__(self, style: Style = USUAL) -> None:
        self.style = style
        self.text = ""
        self.started = False  # set by whoever sends: ``start`` is on its way
        self.closed = False  # takes no more text
        self.severed = False  # was cut: nothing of it is wanted any more
        self.blocks = False  # is to be cancelled as soon as its epoch is known
        self._pieces: deque[str | Mark] = deque()
        self._sent = 0
        self._spoken = 0
        self._flushed = -1  # how much had been sent at the last flush

    def add(self, piece: str | Mark) -> None:
        """Queue text or a mark. Raises ``ValueError`` once the text is complete."""
        if self.closed:
            raise ValueError("this utterance takes no more text: it has ended")
        if isinstance(piece, Mark):
            self.closed = piece is END
            self._pieces.append(piece)
            return
        self.text += piece
        last = self._pieces[-1] if self._pieces else None
        if isinstance(last, str):
            self._pieces[-1] = last + piece
        elif piece:
            self._pieces.append(piece)

    def cut(self) -> None:
        """Take no more text and drop what has not been handed out."""
        self.closed = self.severed = True
        self._pieces.clear()

    def rewind(self, position: int) -> None:
        """What comes after this character must be sent again, to a server that knows nothing."""
        spoken, pieces = self.text[position : self._sent], self._pieces
        marks = [FLUSH] if self._flushed == self._sent else []
        if self.closed and END not in pieces:
            marks.append(END)
        if not marks and pieces and isinstance(pieces[0], str):
            spoken += str(pieces.popleft())
        self._pieces = deque([*([spoken] if spoken else []), *marks, *pieces])
        self.started = self.blocks = False
        self._sent = self._spoken = position

    @property
    def exhausted(self) -> bool:
        """Whether what is behind it may be sent."""
        return self.closed and not self._pieces and not self.blocks

    @property
    def waiting(self) -> int:
        """Characters handed out that are not known to be sound or skipped."""
        return max(0, self._sent - self._spoken)

    def take(self, size: int, room: float) -> Iterator[ClientMessage]:
        """Messages of at most ``size`` characters, while ``room`` for unspoken text lasts."""
        while self._pieces:
            piece = self._pieces[0]
            if isinstance(piece, Mark):
                self._pieces.popleft()
                self._flushed = self._sent if piece is FLUSH else self._flushed
                yield Flush() if piece is FLUSH else End()
                continue
            part = piece[:size]
            if len(part) > room:
                return
            room -= len(part)
            self._sent += len(part)
            if len(part) == len(piece):
                self._pieces.popleft()
            else:
                self._pieces[0] = piece[len(part) :]
            yield Text(part)

    def spoken_to(self, position: int) -> None:
        """Text up to this character has become sound."""
        self._spoken = max(self._spoken, position)

    def skipped(self, characters: int) -> None:
        """So many characters will never become sound."""
        self._spoken += characters
