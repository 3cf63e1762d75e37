"""Frames and messages, both ways and in both encodings."""

import base64
import json
from typing import Any, get_args

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from message_strategies import audios, client_messages, server_messages
from playhead.engine.types import Lane, ListenerState
from playhead.gateway import messages as m
from playhead.gateway.protocol import SUBPROTOCOLS, Encoding, ProtocolError, Wire

CODES = {
    "bad_message",
    "unknown_type",
    "unknown_field",
    "missing_field",
    "bad_value",
    "text_too_long",
}
ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
encodings = st.sampled_from(ENCODINGS)
AUDIO = m.Audio(
    seq=3,
    epoch=2,
    index=1,
    position=480,
    samples=2,
    words=(m.SpokenWord(text="Hé", position=480, char_start=0, char_end=2),),
    lane=Lane.BACKGROUND,
    slack=None,
    depth=80.0,
    sent=1234.5,
    final=False,
    data=b"\x00\x01\x02\x03",
)


def test_subprotocols_name_the_encodings() -> None:
    assert tuple(name.rsplit(".", 1)[1] for name in SUBPROTOCOLS) == ENCODINGS


@given(encodings, client_messages)
def test_client_messages_round_trip(encoding: Encoding, message: m.ClientMessage) -> None:
    wire = Wire(encoding)
    frame = wire.encode_client(message)
    assert isinstance(frame, bytes if encoding == "msgpack" else str)
    assert wire.decode_client(frame) == message


@given(encodings, st.booleans(), server_messages)
def test_server_messages_round_trip(
    encoding: Encoding, binary_audio: bool, message: m.ServerMessage
) -> None:
    server, client = Wire(encoding, binary_audio), Wire(encoding)
    frames = server.encode(message)
    decoded = [client.decode_server(frame) for frame in frames]
    assert decoded == [None] * (len(frames) - 1) + [message]
    assert server.encode(message) == frames


def test_msgpack_frame_literally() -> None:
    assert msgpack.unpackb(Wire("msgpack").encode(m.Started(seq=1, epoch=2))[0]) == {
        "type": "started",
        "seq": 1,
        "epoch": 2,
    }


def test_json_audio_is_base64() -> None:
    (frame,) = Wire("json").encode(AUDIO)
    assert isinstance(frame, str)
    value = json.loads(frame)
    assert value["data"] == base64.b64encode(AUDIO.data).decode()
    assert value["slack"] is None
    assert "packets" not in value
    assert value["words"] == [{"text": "Hé", "position": 480, "char_start": 0, "char_end": 2}]


def test_json_binary_audio_is_two_frames() -> None:
    header, data = Wire("json", binary_audio=True).encode(AUDIO)
    assert isinstance(header, str)
    assert data == AUDIO.data
    value = json.loads(header)
    assert value["bytes"] == 4
    assert "data" not in value


def test_msgpack_ignores_binary_audio() -> None:
    assert Wire("msgpack", True).encode(AUDIO) == Wire("msgpack").encode(AUDIO)


@pytest.mark.parametrize("frame", [b"\x00", '{"type":"pong"}'])
def test_a_client_misses_the_announced_data(frame: bytes | str) -> None:
    client = Wire("json")
    assert client.decode_server(Wire("json", True).encode(AUDIO)[0]) is None
    with pytest.raises(ProtocolError, match="not followed by its data"):
        client.decode_server(frame)
    pong = Wire("json").encode(m.Pong(time=1.0, received=2.0, sent=3.0))[0]
    assert client.decode_server(pong) is not None  # the fault is not carried on


def test_a_client_refuses_bad_base64() -> None:
    (frame,) = Wire("json").encode(AUDIO)
    assert isinstance(frame, str)
    for bad in ("@@@@", "AAA", 7):
        value = json.loads(frame) | {"data": bad}
        with pytest.raises(ProtocolError, match="not base64"):
            Wire("json").decode_server(json.dumps(value))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_client_ignores_what_it_does_not_know(encoding: Encoding) -> None:
    pack: Any = msgpack.packb if encoding == "msgpack" else json.dumps
    client = Wire(encoding)
    assert client.decode_server(pack({"type": "applause", "level": 11})) is None
    assert client.decode_server(pack({"level": 11})) is None
    assert client.decode_server(pack({"type": ["started"]})) is None
    known = {"type": "started", "seq": 1, "epoch": 2, "mood": {"a": [1]}}
    assert client.decode_server(pack(known)) == m.Started(seq=1, epoch=2)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_client_refuses_half_a_message(encoding: Encoding) -> None:
    pack: Any = msgpack.packb if encoding == "msgpack" else json.dumps
    with pytest.raises(ProtocolError, match="epoch is missing"):
        Wire(encoding).decode_server(pack({"type": "started", "seq": 1}))


def test_frames_of_the_wrong_kind() -> None:
    with pytest.raises(ProtocolError, match="a text frame"):
        Wire("msgpack").decode_client("{}")
    with pytest.raises(ProtocolError, match="a binary frame"):
        Wire("json").decode_client(b"\x80")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_size_limit_of_client_frames(encoding: Encoding) -> None:
    frame = Wire(encoding).encode_client(m.Text("x" * 70_000))
    with pytest.raises(ProtocolError, match="bytes") as caught:
        Wire(encoding).decode_client(frame)
    assert caught.value.code == "bad_message"


def test_large_audio_reaches_a_client() -> None:
    long = m.Audio(
        seq=1,
        epoch=1,
        index=0,
        position=0,
        samples=1,
        words=AUDIO.words * 300,
        lane=Lane.URGENT,
        slack=1.0,
        depth=1.0,
        sent=1.0,
        final=True,
        data=bytes(400_000),
        packets=(40,) * 1_000,
    )
    for encoding in ENCODINGS:
        (frame,) = Wire(encoding).encode(long)
        assert Wire(encoding).decode_server(frame) == long


def refuses_or_reads(encoding: Encoding, frame: bytes | str) -> None:
    try:
        message = Wire(encoding).decode_client(frame)
    except ProtocolError as error:
        fault = error
    else:
        assert isinstance(message, m.ClientMessage)
        return
    assert fault.code in CODES
    assert fault.message.isascii()
    assert fault.expected


@given(encodings, st.binary() | st.text())
def test_any_frame(encoding: Encoding, frame: bytes | str) -> None:
    refuses_or_reads(encoding, frame)


junk = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(encodings, client_messages, st.data())
def test_mutated_fields(encoding: Encoding, message: m.ClientMessage, data: st.DataObject) -> None:
    valid = json.loads(Wire("json").encode_client(message))
    name = data.draw(st.sampled_from(sorted(valid)) | st.text())
    changed = {**valid, name: data.draw(junk)}
    try:
        frame = msgpack.packb(changed) if encoding == "msgpack" else json.dumps(changed)
    except UnicodeEncodeError:
        return
    refuses_or_reads(encoding, frame)


@given(client_messages, st.data())
def test_mutated_bytes(message: m.ClientMessage, data: st.DataObject) -> None:
    frame = bytearray(Wire("msgpack").encode_client(message))  # type: ignore[arg-type]
    place = data.draw(st.integers(0, len(frame) - 1))
    frame[place] = data.draw(st.integers(0, 255))
    refuses_or_reads("msgpack", bytes(frame))


@given(audios, st.binary(max_size=60))
def test_any_binary_after_a_header(audio: m.Audio, frame: bytes) -> None:
    client = Wire("json")
    client.decode_server(Wire("json", True).encode(audio)[0])
    if len(frame) == len(audio.data):
        assert client.decode_server(frame) is not None
    else:
        with pytest.raises(ProtocolError):
            client.decode_server(frame)


def test_report_frame_of_the_documentation() -> None:
    frame = (
        '{"type":"report","epoch":1,"received":4800,"consumed":2400,"heard":2000,'
        '"buffered":2400,"state":"playing","time":512.25,"seq":7,"echo":88.5,"hold":3}'
    )
    assert Wire("json").decode_client(frame) == m.PlaybackReport(
        epoch=1,
        received=4800,
        consumed=2400,
        heard=2000,
        buffered=2400,
        state=ListenerState.PLAYING,
        time=512.25,
        seq=7,
        echo=88.5,
        hold=3.0,
    )
