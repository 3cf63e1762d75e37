"""What a WebSocket library's objects hold of each other, cut when a connection has ended.

Where reference counts alone free what has ended, its memory comes back at that moment, all of it.
What is left to the garbage collector stays until the next full collection, which looks at every
living session to find it, and leaves holes between them.
"""

from collections.abc import Generator
from typing import Final

from websockets.asyncio.messages import Assembler
from websockets.server import ServerProtocol


class Unused:
    """Instead of the library's queue of messages, which a flow has no use for."""

    def close(self) -> None:
        """Nobody waits here."""


UNUSED: Final = Unused()


def _ended() -> Generator[None]:
    """A parser that takes nothing more."""
    yield from ()


ENDED: Final = _ended()
next(ENDED, None)


def let_go(protocol: ServerProtocol, messages: Assembler | Unused) -> None:
    """Cut the cycles of a connection that will be given nothing more. What ended it stays readable.

    Its parser is a generator that waits within one of its own methods; the subprotocol is chosen by
    a function that knows the connection; faults that it keeps have tracebacks into it; its queue
    pauses it.
    """
    # Closing it would not do: where nothing in it would notice, Python 3.12.1 to 3.12.3 leave its
    # frame as it is (python/cpython#118272). Without a name it is freed.
    protocol.parser = ENDED
    vars(protocol).pop("select_subprotocol", None)
    for fault in (protocol.parser_exc, protocol.handshake_exc):
        forget_frames(fault)
    if isinstance(messages, Assembler):
        messages.pause = messages.resume = UNUSED.close


def forget_frames(fault: BaseException | None) -> None:
    """Take the tracebacks from a fault that is kept, and from those it came of: their frames hold
    whatever was at work."""
    left, seen = [fault], set[int]()
    while left:
        found = left.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        found.__traceback__ = None
        left += [found.__cause__, found.__context__]
