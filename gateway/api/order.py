"""What a request for speech comes to, whichever vendor's it is: a session to open, a text, and a
writer for the answer. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from playhead.gateway.api.body import Body
from playhead.gateway.api.errors import ApiError
from playhead.gateway.messages import Audio, Hello, Ready


class Writer(Protocol):
    """Makes the bytes of one response, in the order of its methods."""

    def begin(self) -> bytes:
        """What stands before the audio."""

    def add(self, audio: Audio) -> bytes:
        """One message, in order; the last one is ``final``."""

    def end(self) -> bytes:
        """What stands behind all of it."""

    def fault(self, fault: ApiError) -> bytes | None:
        """How the rest that cannot be spoken is told. None: by a body that is cut short."""


class PlainWriter:
    """A body as it is."""

    def __init__(self, body: Body) -> None:
        self._body = body

    def begin(self) -> bytes:
        return self._body.begin()

    def add(self, audio: Audio) -> bytes:
        return self._body.add(audio)

    def end(self) -> bytes:
        return b""

    def fault(self, fault: ApiError) -> bytes | None:
        return None


@dataclass(frozen=True, slots=True)
class Order:
    """``heavy``: the writer's work is too much for the event loop."""

    hello: Hello
    text: str
    media_type: str
    open: Callable[[Ready], Writer]
    heavy: bool = False
