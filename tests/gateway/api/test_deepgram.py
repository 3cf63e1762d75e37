"""Deepgram's requests for speech over HTTP, as literal queries and bodies."""

import json
from typing import Any

import pytest
from dialect_kit import facts
from order_kit import audio, ready
from playhead.codecs.wav import endless_header
from playhead.gateway.api.deepgram import read_speech
from playhead.gateway.api.errors import ApiError
from playhead.gateway.api.order import Order


def order(text: Any = "Hello there.", **query: str) -> Order:
    body = json.dumps({"text": text}).encode()
    return read_speech(body, {"model": "aura-2-thalia-en", **query}, facts())


@pytest.mark.parametrize(
    ("query", "codec", "rate", "media", "begin"),
    [
        (
            {"encoding": "linear16"},
            "pcm_s16le",
            24_000,
            "audio/wav",
            endless_header(24_000),
        ),
        (
            {"encoding": "linear16", "container": "none", "sample_rate": "48000"},
            "pcm_s16le",
            48_000,
            "audio/l16",
            b"",
        ),
        ({"encoding": "mulaw"}, "mulaw", 8_000, "audio/wav", endless_header(8_000, "mulaw")),
        ({"encoding": "alaw", "container": "none"}, "alaw", 8_000, "audio/alaw", b""),
    ],
)
def test_samples(query: dict[str, str], codec: str, rate: int, media: str, begin: bytes) -> None:
    found = order(**query, speed="1.2", mip_opt_out="true")
    hello = found.hello
    assert (hello.codec, hello.sample_rate, hello.speed) == (codec, rate, 1.2)
    assert (hello.voice, hello.reports) == ("alto", False)
    assert (found.media_type, found.heavy, found.text) == (media, False, "Hello there.")
    writer = found.open(ready(codec=codec, sample_rate=rate))
    assert writer.begin() + writer.add(audio(b"ab", 1)) == begin + b"ab"


@pytest.mark.parametrize(("query", "size"), [({}, 6_000), ({"bit_rate": "32000"}, 4_000)])
def test_mp3_is_the_default(query: dict[str, str], size: int) -> None:
    found = order(**query)
    assert (found.media_type, found.heavy, found.hello.sample_rate) == ("audio/mpeg", True, 22_050)
    writer = found.open(ready(sample_rate=22_050))
    made = writer.add(audio(bytes(44_100), 22_050)) + writer.add(audio(b"", 0, final=True))
    assert abs(len(made) - size) < 500


@pytest.mark.parametrize(
    ("text", "query", "status", "param"),
    [
        ("", {}, 400, "text"),
        (" ", {}, 400, "text"),
        (7, {}, 400, "text"),
        (None, {}, 400, "text"),
        ("a" * 2_001, {}, 400, "text"),
        ("a", {"model": "other"}, 404, "voice"),
        ("a", {"encoding": "flac"}, 400, "encoding"),
        ("a", {"encoding": "linear16", "container": "ogg"}, 400, "container"),
        ("a", {"encoding": "linear16", "sample_rate": "11025"}, 400, "sample_rate"),
        ("a", {"sample_rate": "24000"}, 400, "sample_rate"),
        ("a", {"bit_rate": "96000"}, 400, "bit_rate"),
        ("a", {"container": "wav"}, 400, "container"),
        ("a", {"speed": "3"}, 400, "speed"),
    ],
)
def test_bad_requests(text: Any, query: dict[str, str], status: int, param: str) -> None:
    with pytest.raises(ApiError) as caught:
        order(text, **query)
    assert (caught.value.status, caught.value.param) == (status, param)
    assert "expected" in caught.value.message
