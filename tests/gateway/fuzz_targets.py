"""What fuzzers call: every parser of untrusted input, with the faults that it may raise.

A target takes any bytes and returns; whatever it lets through is a bug.
"""

import contextlib
import random
from collections.abc import Callable, Sequence

from playhead.engine.text import Segmenter
from playhead.gateway.access_keys import KeyFileError, KeyRing, parse
from playhead.gateway.access_offer import Misplaced, read
from playhead.gateway.admission import address_key, origin_allowed
from playhead.gateway.api.errors import ApiError
from playhead.gateway.api.request import parse_speech
from playhead.gateway.limits import Limits
from playhead.gateway.messages import Hello
from playhead.gateway.protocol import ProtocolError, Wire
from playhead.gateway.session import Session
from session_kit import facts

MOST = 65_536


def msgpack_message(data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        _checked(Wire("msgpack").decode_client(data[:MOST]), Wire("msgpack"))


def json_message(data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        _checked(Wire("json").decode_client(data[:MOST].decode("utf-8", "replace")), Wire("json"))


def _checked(message: object, wire: Wire) -> None:
    """What was taken can be written again, and means the same."""
    again = wire.decode_client(wire.encode_client(message))  # type: ignore[arg-type]
    assert again == message


def dialogue(data: bytes) -> None:
    """Frames, cut at each NUL, to one session: it answers or ends, and never raises."""
    session = Session(facts(Limits()), session="s", token="t", client="c", now=0.0)
    wire = Wire("json")
    for number, part in enumerate(data.split(b"\0")[:64]):
        now = number / 100
        try:
            message = wire.decode_client(part.decode("utf-8", "replace"))
        except ProtocolError as fault:
            session.refuse(fault, now)
            continue
        if not (isinstance(message, Hello) and message.resume is not None):
            session.receive(message, now)
        session.handle_timer(now)


def server_message(data: bytes) -> None:
    """A client reads what a broken server sends."""
    with contextlib.suppress(ProtocolError):
        Wire("msgpack").decode_server(data)
    with contextlib.suppress(ProtocolError):
        Wire("json").decode_server(data.decode("utf-8", "replace"))


def http_speech(data: bytes) -> None:
    with contextlib.suppress(ApiError):
        parse_speech(data, facts(Limits()))


def key_file(data: bytes) -> None:
    with contextlib.suppress(KeyFileError):
        parse(data.decode("utf-8", "replace"))


def door(data: bytes) -> None:
    """A request's headers, one a line, the first its target."""
    target, *lines = data.decode("latin-1").split("\n")
    pairs = [(name, value) for name, _, value in (line.partition(":") for line in lines)]
    with contextlib.suppress(Misplaced):
        offer = read(pairs, target)
        KeyRing().recognise(offer.key or offer.ticket or "", 0.0)
    origin_allowed(lines[0] if lines else None, target, ("https://a.b",), allow_remote=True)
    address_key(target)


def text(data: bytes) -> None:
    """Any text in any pieces: cut without loss of what can be heard."""
    segmenter = Segmenter()
    size = 1 + data[0] % 50 if data else 1
    whole = data.decode("utf-8", "replace")
    found = []
    for at in range(0, len(whole), size):
        found += segmenter.push(whole[at : at + size])
    found += segmenter.end()
    for segment in found:
        assert whole[segment.start :].startswith(segment.text)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "msgpack_message": msgpack_message,
    "json_message": json_message,
    "dialogue": dialogue,
    "server_message": server_message,
    "http_speech": http_speech,
    "key_file": key_file,
    "door": door,
    "text": text,
}


def mutate(data: bytes, seeds: Sequence[bytes], chance: random.Random) -> bytes:
    """A few random changes: bits, bytes, cuts, repeats, and pieces of other seeds."""
    found = bytearray(data[:4096])
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(found) + 1)
        match chance.randrange(6):
            case 0 if at < len(found):
                found[at] ^= 1 << chance.randrange(8)
            case 1 if at < len(found):
                found[at] = chance.choice(b'\x00\xff\x7f\x80\xc1\xd9\xdd\xdf"{}[]\\:,.-e')
            case 2:
                del found[at : at + chance.randint(1, 9)]
            case 3:
                found[at:at] = found[at : at + chance.randint(1, 40)] * chance.randint(1, 20)
            case 4:
                other = chance.choice(seeds)
                start = chance.randrange(len(other) + 1)
                found[at:at] = other[start : start + chance.randint(1, 60)]
            case _:
                found[at:at] = chance.randbytes(chance.randint(1, 8))
    return bytes(found)
