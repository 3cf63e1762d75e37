"""Every field of every message is checked for kind and range, and errors say what would fit."""

from dataclasses import MISSING, fields
from typing import Any

import pytest
from hypothesis import given
from message_strategies import client_messages, server_messages
from playhead.engine.types import Lane, ListenerState
from playhead.gateway import messages as m
from playhead.gateway.protocol_parse import ProtocolError
from playhead.gateway.protocol_schema import CLIENT, SERVER, Spec, describe, spec_of

REPORT: dict[str, Any] = {
    "epoch": 1,
    "received": 10,
    "consumed": 4,
    "heard": 4,
    "buffered": 6,
    "state": "playing",
    "time": 1.5,
}


def build(given: dict[str, Any]) -> Any:
    return spec_of(given, CLIENT).build(given, strict=True)


def fault_of(given: dict[str, Any]) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        build(given)
    return caught.value


@pytest.mark.parametrize("table", [CLIENT, SERVER], ids=["client", "server"])
def test_every_dataclass_field_has_a_kind(table: dict[str, Spec]) -> None:
    for name, spec in table.items():
        assert spec.cls.type == name
        assert set(spec.kinds) == {
            field.name for field in fields(spec.cls) if field.metadata.get("wire", True)
        }


BAD_VALUES = [
    ("hello", "speed", 0.49),
    ("hello", "speed", 2.01),
    ("hello", "speed", True),
    ("hello", "speed", "1"),
    ("hello", "speed", float("nan")),
    ("hello", "speed", 10**400),
    ("hello", "sample_rate", 24000.0),
    ("hello", "sample_rate", -1),
    ("hello", "codec", 7),
    ("hello", "start_threshold", 2_001),
    ("hello", "playback_rate", float("inf")),
    ("hello", "reports", 1),
    ("hello", "binary_audio", "yes"),
    ("hello", "voice", "v" * 65),
    ("hello", "resume", "s1"),
    ("hello", "resume", []),
    ("start", "id", "i" * 129),
    ("start", "speed", []),
    ("text", "text", None),
    ("text", "text", b"bytes"),
    ("report", "epoch", True),
    ("report", "epoch", None),
    ("report", "received", 2**53),
    ("report", "consumed", 1.5),
    ("report", "state", "dancing"),
    ("report", "state", ["playing"]),
    ("report", "time", "now"),
    ("report", "starved", -0.1),
    ("report", "seq", -1),
    ("cancel", "heard", -1),
    ("cancel", "epoch", {}),
    ("ack", "seq", "3"),
    ("ping", "time", None),
]


@pytest.mark.parametrize(("name", "field", "value"), BAD_VALUES)
def test_values_that_do_not_fit(name: str, field: str, value: object) -> None:
    full = {**(REPORT if name == "report" else {}), "type": name, field: value}
    fault = fault_of(full)
    assert (fault.code, fault.field) == ("bad_value", field)
    assert fault.expected.startswith(f"{field}: ")


@pytest.mark.parametrize("field", sorted(REPORT))
def test_missing_fields(field: str) -> None:
    fault = fault_of({"type": "report", **{k: v for k, v in REPORT.items() if k != field}})
    assert (fault.code, fault.field) == ("missing_field", field)


def test_null_stands_for_an_absent_optional_field() -> None:
    assert build({"type": "cancel", "epoch": None}) == m.Cancel()
    assert build({"type": "report", **REPORT, "seq": None, "starved": None}).starved == 0.0


def test_integers_pass_for_numbers() -> None:
    assert build({"type": "ping", "time": 3}) == m.Ping(3.0)


def test_unknown_fields_are_named_and_the_known_listed() -> None:
    fault = fault_of({"type": "cancel", "h\neard": 1})
    assert (fault.code, fault.field) == ("unknown_field", "h\\neard")
    assert fault.expected == "one of epoch, heard"
    assert fault_of({"type": "end", "text": "x"}).expected == "no fields"


def test_unknown_fields_inside_resume() -> None:
    given = {"session": "s", "token": "t", "seq": 1}
    assert build({"type": "hello", "resume": given}).resume == m.ResumeFrom("s", "t", 1)
    fault = fault_of({"type": "hello", "resume": {**given, "sec": 1}})
    assert (fault.code, fault.field) == ("unknown_field", "sec")


def test_types() -> None:
    assert fault_of({"text": "x"}).code == "missing_field"
    assert fault_of({"type": 7}).message == "type is 7"
    fault = fault_of({"type": "speek" * 20})
    assert fault.code == "unknown_type"
    assert len(fault.message) < 80
    assert "text" in fault.expected


def test_text_length_in_code_points() -> None:
    assert len(build({"type": "text", "text": "\U0001f600" * 2_000}).text) == 2_000
    fault = fault_of({"type": "text", "text": "a" * 2_001})
    assert fault.code == "text_too_long"
    assert "2000" in fault.expected


def test_lone_surrogates_are_refused() -> None:
    assert fault_of({"type": "text", "text": "a\ud800"}).code == "bad_message"
    assert build({"type": "text", "text": "é😀"}).text == "é😀"


def test_lenient_reading_skips_what_it_does_not_know() -> None:
    spec = SERVER["started"]
    assert spec.build({"seq": 1, "epoch": 2, "new": []}, strict=False) == m.Started(seq=1, epoch=2)


SERVER_MISFITS = [
    ("ready", "voices", "ada"),
    ("ready", "limits", []),
    ("ready", "resumed", 0),
    ("audio", "data", "text"),
    ("audio", "lane", "fast"),
    ("audio", "words", [3]),
    ("audio", "packets", [1.5]),
    ("audio", "slack", "none"),
]
AUDIO = {
    "seq": 1,
    "epoch": 1,
    "index": 0,
    "position": 0,
    "samples": 1,
    "words": [],
    "lane": "urgent",
    "slack": None,
    "depth": 1.0,
    "sent": 1.0,
    "final": False,
    "data": b"ab",
}
READY = {
    "session": "s",
    "token": "t",
    "resumed": False,
    "codec": "pcm_s16le",
    "sample_rate": 24_000,
    "pre_skip": 0,
    "packet_samples": 0,
    "voice": "ada",
    "voices": ["ada"],
    "formats": [],
    "limits": {},
    "grace": 1.0,
    "epoch": 0,
    "time": 1.0,
    "model": "m",
    "server": "s",
}


@pytest.mark.parametrize(("name", "field", "value"), SERVER_MISFITS)
def test_a_client_is_not_fooled_either(name: str, field: str, value: object) -> None:
    full = {**(AUDIO if name == "audio" else READY), field: value}
    with pytest.raises(ProtocolError) as caught:
        SERVER[name].build(full, strict=False)
    assert caught.value.field == field


def test_kinds_of_server_fields() -> None:
    audio = SERVER["audio"].build({**AUDIO, "packets": [1, 2]}, strict=False)
    assert (audio.lane, audio.packets, audio.slack) == (Lane.URGENT, (1, 2), None)
    assert SERVER["ready"].build(READY, strict=False).received == 0


def test_describe() -> None:
    assert [describe(v) for v in (None, True, 1.5, 3, 2**60, "a", [], {}, b"")] == [
        "None",
        "True",
        "1.5",
        "3",
        "a number beyond 2^53",
        "'a'",
        "a list",
        "a dict",
        "a bytes",
    ]


def test_plain_leaves_defaults_out_and_spells_enums() -> None:
    report = m.PlaybackReport(**{**REPORT, "state": ListenerState.PLAYING})
    assert CLIENT["report"].plain(report) == REPORT
    assert CLIENT["ack"].plain(m.Ack(4)) == {"seq": 4}
    assert CLIENT["end"].plain(m.End()) == {}


@given(client_messages)
def test_client_messages_survive(message: m.ClientMessage) -> None:
    spec = CLIENT[message.type]
    assert spec.build(spec.plain(message), strict=True) == message


@given(server_messages)
def test_server_messages_survive(message: m.ServerMessage) -> None:
    spec = SERVER[message.type]
    assert spec.build(spec.plain(message), strict=False) == message


def test_required_fields_are_those_without_a_default() -> None:
    for spec in (*CLIENT.values(), *SERVER.values()):
        required = {f.name for f in fields(spec.cls) if f.default is MISSING}
        assert required == set(spec.kinds) - set(spec.defaults)
