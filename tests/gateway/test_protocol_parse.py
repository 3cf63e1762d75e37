"""Whatever arrives, the parsers give a bounded map or one ProtocolError."""

import json
from collections.abc import Callable
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playhead.gateway.protocol import Wire
from playhead.gateway.protocol_parse import (
    Bounds,
    ProtocolError,
    bad_message,
    parse_json,
    parse_msgpack,
    shorten,
)

BOUNDS = Bounds(size=65_536, depth=16, items=256)


def test_brackets_in_a_text_are_not_counted() -> None:
    text = "[{" * 5_000 + '"' + "\\"
    assert parse_json(json.dumps({"text": text}), BOUNDS) == {"text": text}
    assert parse_msgpack(msgpack.packb({"text": text}), BOUNDS) == {"text": text}
    assert parse_json('{"a":' + "9" * 20 + "}", BOUNDS) == {"a": int("9" * 20)}


def nested(depth: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


HOSTILE_MSGPACK = {
    "empty": b"",
    "reserved byte": b"\xc1",
    "not a map": b"\x93\x01\x02\x03",
    "cut short": b"\x82\xa1a\x01",
    "trailing byte": b"\x80\x00",
    "bad UTF-8": b"\x81\xa1\xff\x01",
    "integer key": b"\x81\x01\x01",
    "bytes key": b"\x81\xc4\x01a\x01",
    "nil key": b"\x81\xc0\x01",
    "list key": b"\x81\x90\x01",
    "repeated key": b"\x82\xa1a\x01\xa1a\x02",
    "extension": b"\x81\xa1a\xd4\x05\x00",
    "empty extension": b"\x81\xa1a\xc7\x00\x05",
    "timestamp": b"\x81\xa1a\xd6\xff\x00\x00\x00\x00",
    "claims 2^32 - 1 entries": b"\xdd\xff\xff\xff\xff",
    "claims a 4 GiB string": b"\x81\xa1a\xdb\xff\xff\xff\xff",
    "too deep for the parser": b"\x91" * 5_000 + b"\x90",
    "257 entries": msgpack.packb({"a": [0] * 257}),
    "1,001 maps": msgpack.packb({"a": [[{}] * 125] * 8}),
    "1,001 lists": msgpack.packb({"a": [[[]] * 250] * 4}),
    "a map of 257": msgpack.packb({str(n): n for n in range(257)}),
}
HOSTILE_JSON = {
    "empty": "",
    "not a map": "[1]",
    "a string": '"hello"',
    "cut short": '{"a":',
    "trailing": "{}{}",
    "NaN": '{"a":NaN}',
    "Infinity": '{"a":-Infinity}',
    "beyond float64": '{"a":1e999}',
    "5,000 digits": '{"a":' + "9" * 5_000 + "}",
    "repeated key": '{"a":1,"a":2}',
    "too deep for the parser": "[" * 990,
    "30,000 lists": "[" * 30_000,
    "single quotes": "{'a':1}",
    "257 entries": json.dumps({"a": [0] * 257}),
    "1,001 maps": json.dumps({"a": [[{}] * 125] * 8}),
    "1,001 lists after a text": json.dumps({"t": 'x"' * 99, "a": [[[]] * 250] * 4}),
    "21 digits": '{"a":' + "9" * 21 + "}",
    "unclosed string of quotes": '{"a":"' + '\\"' * 30_000,
    "unclosed string, brackets": '{"a":"' + "[" * 5_000 + "\\",
    "lone surrogate bytes": "\ud800",
}


@pytest.mark.parametrize("frame", HOSTILE_MSGPACK.values(), ids=HOSTILE_MSGPACK.keys())
def test_hostile_msgpack(frame: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        parse_msgpack(frame, BOUNDS)
    assert caught.value.code == "bad_message"
    assert caught.value.expected


@pytest.mark.parametrize("frame", HOSTILE_JSON.values(), ids=HOSTILE_JSON.keys())
def test_hostile_json(frame: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        parse_json(frame, BOUNDS)
    assert caught.value.code == "bad_message"
    assert len(caught.value.message) < 200


def test_depth_is_bounded_to_the_level() -> None:
    assert parse_msgpack(msgpack.packb(nested(16)), BOUNDS) == nested(16)
    assert parse_json(json.dumps(nested(16)), BOUNDS) == nested(16)
    with pytest.raises(ProtocolError, match="nested too deeply"):
        parse_msgpack(msgpack.packb(nested(17)), BOUNDS)
    with pytest.raises(ProtocolError, match="nested too deeply"):
        parse_json(json.dumps(nested(17)), BOUNDS)


def test_size_is_bounded_to_the_byte() -> None:
    small = Bounds(size=8, depth=4, items=4)
    assert parse_json('{"a": 1}', small) == {"a": 1}
    with pytest.raises(ProtocolError, match="9 bytes"):
        parse_json('{"a": 10}', small)
    assert parse_msgpack(b"\x81\xa1a\xa4abcd", small) == {"a": "abcd"}
    with pytest.raises(ProtocolError, match="9 bytes"):
        parse_msgpack(b"\x81\xa1a\xa5abcde", small)


def test_256_entries_pass() -> None:
    assert parse_json(json.dumps({"a": [0] * 256}), BOUNDS) == {"a": [0] * 256}
    assert parse_msgpack(msgpack.packb({"a": [0] * 256}), BOUNDS) == {"a": [0] * 256}


def test_floats_keep_their_value() -> None:
    assert parse_json('{"a":1.5e3}', BOUNDS) == {"a": 1500.0}


def test_shorten_quotes_cuts_and_escapes() -> None:
    assert shorten("ok") == "'ok'"
    assert shorten("\x1b[31m\n\ud800") == r"'\x1b[31m\n\ud800'"
    assert shorten("x" * 41) == "'" + "x" * 40 + "...'"


def test_of_a_long_string_no_more_is_looked_at_than_is_told() -> None:
    looked: list[int] = []

    def redacted(text: str) -> str:
        looked.append(len(text))
        return text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("playhead.gateway.protocol_parse.redact", redacted)
        for text in ("key=" * 16_000, "two words " * 6_400, "x" * 100):
            assert shorten(text).endswith("...'") == (len(text) > 40)
            assert len(shorten(text)) <= 45
    assert max(looked) <= 128


@pytest.mark.parametrize(
    "text",
    [
        *("https://user:HUSH" + "h" * 200 + "@host", "eyJHUSH" + "h" * 200 + ".hush-hush.hush"),
        *("key='HUSH" + "h" * 200 + "'", "('token', 'HUSH" + "h" * 200 + "')", "HUSH" * 60),
        *(
            "token=" + "h" * 100 + " sk-HUSH" + "h" * 10 + "0123456789abcdef",
            "sk-HUSH1" + "h" * 200,
        ),
        "passphrase: " + "HUSH " * 60,
    ],
)
def test_a_secret_that_is_cut_is_not_told(text: str) -> None:
    assert "HUSH" not in shorten(text)
    assert "***" in shorten(text)


def wire(message: dict[str, Any]) -> object:
    return Wire("json").decode_client(json.dumps(message))


FAULTS: dict[str, Callable[[str], object]] = {
    "a type": lambda text: wire({"type": text}),
    "a field": lambda text: wire({"type": "cancel", text: 1}),
    "a value": lambda text: wire({"type": "hello", "speed": text}),
    "a voice": lambda text: wire({"type": "hello", "voice": text}),
    "a key twice": lambda text: parse_json(f'{{"{text}": 1, "{text}": 2}}', BOUNDS),
    "a key twice, msgpack": lambda text: parse_msgpack(
        b"\x82" + (msgpack.packb(text) + b"\1") * 2, BOUNDS
    ),
    "a number": lambda text: parse_json(f'{{"a": {"9" * 400}.0}}', BOUNDS),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_that_is_not_told_costs_no_search_for_secrets(
    fault: Callable[[str], object],
) -> None:
    looked: list[str] = []

    def redacted(text: str) -> str:
        looked.append(text)
        return text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("playhead.gateway.protocol_parse.redact", redacted)
        with pytest.raises(ProtocolError) as caught:
            fault("key=" * 50)
        assert looked == []
        assert str(caught.value) == caught.value.message
        assert caught.value.field != ""
    assert looked


def test_protocol_error_carries_everything() -> None:
    fault = ProtocolError("code", "wrong", "right", "field", 1.5)
    assert (fault.code, fault.message, fault.expected) == ("code", "wrong", "right")
    assert (fault.field, fault.retry_after, str(fault)) == ("field", 1.5, "wrong")
    assert bad_message("odd").code == "bad_message"


scalars = st.none() | st.booleans() | st.floats() | st.text() | st.binary()
values = st.recursive(
    scalars | st.integers(-(2**63), 2**64 - 1),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(0, 9), inner),
    max_leaves=20,
)


def verdict(parse: Callable[[Any, Bounds], dict[str, Any]], frame: bytes | str) -> str:
    """The code of the refusal, or "read"."""
    try:
        assert isinstance(parse(frame, BOUNDS), dict)
    except ProtocolError as fault:
        return fault.code
    return "read"


@given(st.binary())
def test_any_bytes(frame: bytes) -> None:
    assert verdict(parse_msgpack, frame) in ("read", "bad_message")


@given(st.text())
def test_any_text(frame: str) -> None:
    assert verdict(parse_json, frame) in ("read", "bad_message")


@given(values)
def test_any_msgpack_value(value: object) -> None:
    try:
        frame = msgpack.packb(value)
    except (UnicodeEncodeError, ValueError):
        return
    outcome = verdict(parse_msgpack, frame)
    if outcome == "read":
        assert msgpack.packb(parse_msgpack(frame, BOUNDS)) == frame
    else:
        assert outcome == "bad_message"


@given(st.recursive(scalars.filter(lambda v: not isinstance(v, bytes)), st.lists, max_leaves=20))
def test_any_json_value(value: object) -> None:
    outcome = verdict(parse_json, json.dumps({"a": value}))
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        assert outcome == "bad_message"
    assert outcome in ("read", "bad_message")


def test_the_names_of_what_is_no_number_are_words_like_others() -> None:
    for word in ("Infinity", "-Infinity", "NaN"):
        assert parse_json(json.dumps({"a": word}), BOUNDS) == {"a": word}
        assert verdict(parse_json, f'{{"a": {word}}}') == "bad_message"
