"""Frames of ``playhead.v1`` to messages and back (docs/protocol.md).

Pure: no sockets. Both ends use it; the server reads strictly, a client ignores message types and
fields that it does not know. Every fault of the peer is a ``ProtocolError``.
"""

import base64
import binascii
import json
from typing import Any, Literal, cast

import msgpack
from playhead.gateway.limits import Limits
from playhead.gateway.messages import Audio, ClientMessage, ServerMessage
from playhead.gateway.protocol_parse import (
    Bounds,
    ProtocolError,
    bad_message,
    parse_json,
    parse_msgpack,
)
from playhead.gateway.protocol_schema import CLIENT, SERVER, Spec, spec_of

__all__ = ["SUBPROTOCOLS", "Encoding", "ProtocolError", "Wire"]

Encoding = Literal["msgpack", "json"]

#: In the order of preference.
SUBPROTOCOLS = ("playhead.v1.msgpack", "playhead.v1.json")

_LIMITS = Limits()
_FROM_CLIENT = Bounds(_LIMITS.message_bytes, _LIMITS.message_depth, _LIMITS.message_items)
# A server's frame holds seconds of audio and a session's voices; a client trusts it further.
_FROM_SERVER = Bounds(16 * 1024 * 1024, 16, 65_536, 65_536)


class Wire:
    """One connection's encoding. Set ``binary_audio`` from ``hello``; JSON alone heeds it.

    With it an audio message is two frames, and the client's ``decode_server`` gives ``None`` for
    the first and the message for the second.
    """

    def __init__(self, encoding: Encoding, binary_audio: bool = False) -> None:
        self.encoding = encoding
        self.binary_audio = binary_audio
        self._awaiting_data: dict[str, Any] | None = None

    # ------------------------------------------------------------ server's side

    def encode(self, message: ServerMessage) -> list[bytes | str]:
        """The frames of one message, in order. Equal messages give equal frames."""
        plain = _plain(message, SERVER)
        if self.encoding == "msgpack":
            return [msgpack.packb(plain)]
        if not isinstance(message, Audio):
            return [_dumps(plain)]
        if not self.binary_audio:
            plain["data"] = base64.b64encode(message.data).decode("ascii")
            return [_dumps(plain)]
        del plain["data"]
        plain["bytes"] = len(message.data)
        return [_dumps(plain), message.data]

    def decode_client(self, frame: bytes | str) -> ClientMessage:
        """Raises ``ProtocolError``, and nothing else, for what a client may not send."""
        given = self._parse(frame, _FROM_CLIENT)
        return cast(ClientMessage, spec_of(given, CLIENT).build(given, strict=True))

    # ------------------------------------------------------------ client's side

    def encode_client(self, message: ClientMessage) -> bytes | str:
        plain = _plain(message, CLIENT)
        return cast(bytes, msgpack.packb(plain)) if self.encoding == "msgpack" else _dumps(plain)

    def decode_server(self, frame: bytes | str) -> ServerMessage | None:
        """``None``: a type that this version does not know, or audio whose data comes next.

        Raises ``ProtocolError`` for a frame that is not of this protocol.
        """
        if self._awaiting_data is not None:
            given, self._awaiting_data = self._awaiting_data, None
            return _build_server(SERVER["audio"], given | {"data": _expect_data(given, frame)})
        given = self._parse(frame, _FROM_SERVER)
        name = given.get("type")
        if not isinstance(name, str) or (spec := SERVER.get(name)) is None:
            return None
        if self.encoding == "json" and spec.cls is Audio:
            if "data" not in given:
                self._awaiting_data = given
                return None
            given["data"] = _from_base64(given["data"])
        return _build_server(spec, given)

    def _parse(self, frame: bytes | str, bounds: Bounds) -> dict[str, Any]:
        if self.encoding == "msgpack":
            if isinstance(frame, str):
                raise bad_message("a text frame", "binary frames, one msgpack map each")
            return parse_msgpack(frame, bounds)
        if not isinstance(frame, str):
            raise bad_message("a binary frame", "text frames, one JSON object each")
        return parse_json(frame, bounds)


def _build_server(spec: Spec, given: dict[str, Any]) -> ServerMessage:
    return cast(ServerMessage, spec.build(given, strict=False))


def _plain(message: ClientMessage | ServerMessage, table: dict[str, Spec]) -> dict[str, Any]:
    return {"type": message.type, **table[message.type].plain(message)}


def _dumps(plain: dict[str, Any]) -> str:
    return json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _expect_data(header: dict[str, Any], frame: bytes | str) -> bytes:
    announced = header.get("bytes")
    if not isinstance(frame, bytes) or len(frame) != announced:
        raise bad_message(
            "the audio message is not followed by its data", f"a binary frame of {announced} bytes"
        )
    return frame


def _from_base64(data: Any) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (TypeError, binascii.Error, ValueError):
        raise bad_message("audio data is not base64", "base64 (RFC 4648) in data") from None
