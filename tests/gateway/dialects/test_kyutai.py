"""Kyutai's /api/tts_streaming, with literal frames."""

from dataclasses import replace
from typing import Any

import msgpack
import numpy as np
import pytest
from dialect_kit import Call, facts, opening
from playhead.codecs import opus
from playhead.codecs.base import Encoded
from playhead.engine.types import Finish
from playhead.gateway.dialects.kyutai import open_kyutai, pack_audio

needs_opus = pytest.mark.skipif(opus.unavailable() is not None, reason="no libopus")
PACKED = "format=PcmMessagePack&voice=expresso/ex03-ex01_happy_001_channel1_334s.wav&cfg_alpha=1.5"


def call(query: str = PACKED, **limits: float) -> Call:
    known = facts(**limits)
    return Call(open_kyutai(opening(query), known, "r-1"), known)


def maps(frames: list[Any]) -> list[dict[str, Any]]:
    return [msgpack.unpackb(frame) for frame in frames]


def pack(**message: Any) -> bytes:
    return bytes(msgpack.packb(message))


EOS = pack(type="Eos")


def test_ready_words_audio_and_a_clean_close() -> None:
    client = call()
    assert maps(client.all) == [{"type": "Ready"}]
    assert client.send(pack(type="Text", text="Hello"), pack(type="Text", text="there.")) == []
    assert client.text == "Hello there.", "messages hold whole words"
    assert client.send(EOS) == []
    assert client.pushed[-1].end
    told = maps(client.speak(2_400, words=[("Hello", 0, 0), ("there.", 1_200, 6)]))
    assert told[:2] == [
        {"type": "Text", "text": "Hello", "start_s": 0.0, "stop_s": 0.05},
        {"type": "Text", "text": "there.", "start_s": 0.05, "stop_s": 0.1},
    ]
    assert (told[2]["type"], len(told[2]["pcm"])) == ("Audio", 1_200)
    client.finish()
    assert client.closed == (1000, "")


def test_spaces_of_the_client_are_enough() -> None:
    client = call()
    client.send(pack(type="Text", text="One "), pack(type="Text", text="two"))
    client.send(pack(type="Text", text=" three"), pack(type="Text", text=" "))
    assert client.text == "One two three"


def test_older_clients_send_text_frames_and_a_zero() -> None:
    client = call()
    client.send("Hello there.", b"\0")
    assert client.text == "Hello there."
    assert client.pushed[-1].end
    assert client.send(b"\0") == [], "once is enough"


def test_no_text_closes_at_once() -> None:
    client = call()
    client.send(EOS)
    assert client.closed == (1000, "")


def test_bare_samples_are_bare() -> None:
    client = call("format=Pcm")
    assert client.all == []
    client.send("Hi", EOS)
    assert client.speak(2, words=[("Hi", 0, 0)]) == [b"\1\1\1\1"]


def test_audio_is_packed_as_single_floats() -> None:
    samples = np.array([0.5, -0.25, 1e-3], "<f4")
    packed = pack_audio(samples.tobytes())
    assert msgpack.unpackb(packed) == {"type": "Audio", "pcm": samples.tolist()}
    assert len(packed) == len(msgpack.packb({"type": "Audio", "pcm": None})) - 1 + 5 + 3 * 5


@needs_opus
@pytest.mark.parametrize(("form", "packed"), [("OggOpusMessagePack", True), ("OggOpus", False)])
def test_opus_comes_in_ogg(form: str, packed: bool) -> None:
    client = call(f"format={form}")
    head = client.all[-1]
    assert (msgpack.unpackb(head)["data"] if packed else head).startswith(b"OggS")
    client.send("Hi", EOS)
    session = client.sessions[""]
    number = client.number
    client._effects(  # the kit's own audio is made of samples, not of packets
        "", session.audio(number, Encoded(b"xyz", 640, (1, 2)), None, False, 0.0)
    )
    client._perform([])
    page = client.all[-1]
    assert (msgpack.unpackb(page)["data"] if packed else page).endswith(b"xyz")
    client.finish()
    assert client.closed == (1000, "")


def test_opus_is_the_default_and_missed_where_there_is_none() -> None:
    without = replace(facts(), formats=({"codec": "pcm_f32le", "sample_rates": [24_000]},))
    client = Call(open_kyutai(opening("voice=alto"), without, "r"), without)
    assert maps(client.all)[0]["message"].startswith("Opus is not made here")


@pytest.mark.parametrize(
    "query", ["format=Mp3", "format=PcmMessagePack&voice=zeus", "format=&voice=alto"]
)
def test_a_bad_url_is_told_then_closed(query: str) -> None:
    client = call(query)
    (told,) = maps(client.all)
    assert told["type"] == "Error"
    assert "expected" in told["message"]
    assert client.closed is not None
    assert client.closed[0] == 1008


@pytest.mark.parametrize(
    "frame",
    [
        b"\xc1",
        pack(type="Sing"),
        pack(type="Text"),
        pack(type="Text", text=5),
        pack(text="x"),
        pack(type="Voice", embeddings=[0.1], shape=[1]),
        "\ud800",
    ],
)
def test_a_bad_frame_is_told_then_closed(frame: Any) -> None:
    client = call()
    (told,) = maps(client.send(frame))
    assert told["type"] == "Error"
    assert client.closed is not None
    assert client.closed[0] == 1008


def test_text_after_the_end_is_refused() -> None:
    client = call()
    client.send("Hello.", EOS)
    (told,) = maps(client.send("More."))
    assert told["message"].startswith("text after Eos")


@pytest.mark.parametrize(
    ("code", "close"), [("overloaded", 1013), ("engine_error", 1011), ("unspeakable_text", 1008)]
)
def test_a_fault_has_its_close_code(code: str, close: int) -> None:
    client = call()
    client.send("Hello.")
    (told,) = maps(client.finish(reason=Finish.FAILED, code=code, message="no"))
    assert told["type"] == "Error"
    assert client.closed is not None
    assert client.closed[0] == close


def test_without_maps_only_the_close_tells_a_fault() -> None:
    client = call("format=Pcm", text_waiting=3)
    assert client.send("Hello.") == []
    assert client.closed is not None
    assert client.closed[0] == 1008
