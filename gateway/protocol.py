"""Frames of ``playhead.v1`` to messages and back (docs/protocol.md)."""

from typing import Literal

from playhead.gateway.messages import ClientMessage, ServerMessage

SUBPROTOCOLS = ("playhead.v1.msgpack", "playhead.v1.json")


class ProtocolError(Exception):
    """The peer's fault. ``expected`` says what would have been right."""

    def __init__(
        self, code: str, message: str, expected: str, field: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.expected = expected
        self.field = field


class Wire:
    """One connection's encoding. Set ``binary_audio`` from ``hello`` (JSON alone heeds it)."""

    def __init__(
        self, encoding: Literal["msgpack", "json"], binary_audio: bool = False
    ) -> None: ...

    def encode(self, message: ServerMessage) -> list[bytes | str]: ...

    def decode_client(self, frame: bytes | str) -> ClientMessage: ...

    def encode_client(self, message: ClientMessage) -> bytes | str: ...

    def decode_server(self, frame: bytes | str) -> ServerMessage | None: ...
