"""What dialects read and write alike."""

import re
from typing import Any

import pytest
from dialect_kit import facts
from playhead.gateway.dialects import wire
from playhead.gateway.messages import Text
from playhead.gateway.protocol_parse import ProtocolError


def fault(call: Any, *args: Any, **options: Any) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        call(*args, **options)
    return caught.value


def test_objects() -> None:
    assert wire.read_object('{"a": 1}') == {"a": 1}
    assert wire.write_object({"a": "é"}) == '{"a":"é"}'
    assert fault(wire.read_object, b"{}").code == "bad_message"
    assert fault(wire.read_object, "[1]").code == "bad_message"


def test_strings() -> None:
    assert wire.string({"a": "x"}, "a") == "x"
    assert wire.string({"a": None}, "a", "d") == "d"
    assert fault(wire.string, {}, "a").code == "missing_field"
    assert "a: a string" in fault(wire.string, {"a": 3}, "a").expected
    assert fault(wire.string, {"a": "\ud800"}, "a").code == "bad_value"


@pytest.mark.parametrize("value", [0.5, "0.5"])
def test_numbers(value: object) -> None:
    assert wire.number({"a": value}, "a", 0, 1) == 0.5
    assert wire.number({}, "a", 0, 1, 0.25) == 0.25
    assert fault(wire.number, {}, "a", 0, 1).code == "missing_field"


@pytest.mark.parametrize("value", [True, 2, "x", "nan", [], {}, "1" * 400])
def test_what_is_no_number_within_bounds(value: object) -> None:
    error = fault(wire.number, {"a": value}, "a", 0, 1)
    assert (error.code, error.field, error.expected) == (
        "bad_value",
        "a",
        "a: a number from 0 to 1",
    )


def test_booleans() -> None:
    assert wire.boolean({"a": True}, "a")
    assert not wire.boolean({}, "a")
    assert wire.boolean({"a": None}, "a", default=True)
    assert fault(wire.boolean, {"a": 1}, "a").expected == "a: true or false"


def test_maps() -> None:
    assert wire.mapping({"a": {"b": 1}}, "a") == {"b": 1}
    assert wire.mapping({}, "a") == {}
    assert fault(wire.mapping, {"a": []}, "a").expected == "a: an object"


def test_choices() -> None:
    assert wire.choice({}, "a", ("x", "y"), "y") == "y"
    assert fault(wire.choice, {"a": "z"}, "a", ("x", "y"), "y").expected == "a: one of x, y"


def test_long_texts_come_in_pieces() -> None:
    assert list(wire.texts("")) == []
    assert list(wire.texts("abcde", 2)) == [Text("ab"), Text("cd"), Text("e")]
    assert [len(piece.text) for piece in wire.texts("x" * 4_001)] == [2_000, 2_000, 1]


def test_voices() -> None:
    any_star = re.compile("star-[a-z]+")
    assert wire.voice_of("tenor", facts(), any_star) == "tenor"
    assert wire.voice_of("star-vega", facts(), any_star) == "alto"
    assert fault(wire.voice_of, "moon", facts(), any_star).expected == "one of alto, tenor"
    assert fault(wire.voice_of, "moon", facts()).code == "unknown_voice"


def test_rates() -> None:
    assert wire.rate_of("rate", 48_000.0, "pcm_s16le") == 48_000
    assert wire.rate_of("rate", 8_000, "mulaw") == 8_000
    assert fault(wire.rate_of, "rate", 32_000, "pcm_s16le").code == "unsupported_rate"
    assert fault(wire.rate_of, "rate", 16_000, "alaw").expected == "rate: one of 8000"


@pytest.mark.parametrize(
    "good",
    [
        *("", "c1", "a" * wire.MOST_NAME, "Gespräch 7/8", "会話"),
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",  # a family, joined
        *("n\u00b0\u00a07", "n\u00b0\u202f7", "Ge\u00adspr\u00e4ch"),  # spaces, a soft hyphen
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # a Persian word, not joined
        *("\ue000", "\U000e1234", "\u3000"),  # private, not assigned yet, wide
    ],
)
def test_names_of_the_clients_own(good: str) -> None:
    assert wire.label({"name": good}, "name") == good


@pytest.mark.parametrize(
    "bad",
    [
        *("a" * (wire.MOST_NAME + 1), "a\r\nb", "a\0", "\x1b[31m", "a\x85b", "\x9b31m", "\x7f"),
        *("\u2028", "\u2029", "\u202e", "\u2066", "\u200f", "\u061c", "\ud800", 7, ["a"], {}),
    ],
)
def test_names_that_are_none(bad: object) -> None:
    with pytest.raises(ProtocolError) as caught:
        wire.label({"name": bad}, "name")
    assert caught.value.code == "bad_value"
    assert len(caught.value.message) < 200
