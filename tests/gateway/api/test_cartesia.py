"""Cartesia's requests for speech over HTTP, as literal bodies and events."""

import base64
import json
from http import HTTPStatus
from typing import Any

import pytest
from dialect_kit import facts
from order_kit import audio, ready
from playhead.codecs.wav import endless_header
from playhead.gateway.api.cartesia import read_bytes, read_sse
from playhead.gateway.api.errors import ApiError

VOICE = "a0e99841-438c-4a64-b679-ae501e7d6091"
RAW = {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 44_100}


def body(output: dict[str, Any] | None = None, **fields: Any) -> bytes:
    given = {
        "model_id": "sonic-3",
        "transcript": "Hello there.",
        "voice": {"mode": "id", "id": VOICE},
        "output_format": RAW if output is None else output,
        **fields,
    }
    return json.dumps({name: value for name, value in given.items() if value is not ...}).encode()


@pytest.mark.parametrize(
    ("output", "codec", "rate", "media", "begin"),
    [
        (RAW, "pcm_s16le", 44_100, "audio/pcm", b""),
        ({**RAW, "encoding": "pcm_f32le"}, "pcm_f32le", 44_100, "audio/pcm", b""),
        (
            {**RAW, "container": "wav", "encoding": "pcm_f32le"},
            "pcm_f32le",
            44_100,
            "audio/wav",
            endless_header(44_100, "pcm_f32le"),
        ),
        (
            {"container": "wav", "encoding": "pcm_mulaw", "sample_rate": 8_000},
            "mulaw",
            8_000,
            "audio/wav",
            endless_header(8_000, "mulaw"),
        ),
    ],
)
def test_samples(output: dict[str, Any], codec: str, rate: int, media: str, begin: bytes) -> None:
    order = read_bytes(body(output), facts())
    assert (order.hello.codec, order.hello.sample_rate) == (codec, rate)
    assert (order.hello.voice, order.hello.reports) == ("alto", False)
    assert (order.text, order.media_type, order.heavy) == ("Hello there.", media, False)
    writer = order.open(ready(codec=codec, sample_rate=rate))
    assert writer.begin() == begin
    assert writer.add(audio(b"abcd", 1)) == b"abcd"


def test_mp3() -> None:
    output = {"container": "mp3", "sample_rate": 44_100, "bit_rate": 128_000}
    order = read_bytes(body(output, generation_config={"speed": 1.2}), facts())
    assert (order.media_type, order.heavy, order.hello.speed) == ("audio/mpeg", True, 1.2)
    assert (order.hello.codec, order.hello.sample_rate) == ("pcm_s16le", 44_100)
    writer = order.open(ready(sample_rate=44_100))
    made = writer.add(audio(bytes(44_100), 22_050)) + writer.add(audio(b"", 0, final=True))
    assert made[:2] == b"\xff\xfb"
    assert abs(len(made) - 8_000) < 1_000  # half a second at 128 kbit/s


def fault(given: bytes, read: Any = read_bytes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        read(given, facts())
    return caught.value


MP3 = {"container": "mp3", "sample_rate": 44_100, "bit_rate": 128_000}


@pytest.mark.parametrize(
    ("given", "status", "param"),
    [
        (b"[]", 400, None),
        (body(transcript=...), 400, "transcript"),
        (body(transcript=" "), 400, "transcript"),
        (body(voice="nobody"), 404, "voice"),
        (body(model_id="other"), 404, None),
        (body(output={**RAW, "container": "ogg"}), 400, "container"),
        (body(output={**RAW, "sample_rate": 11_025}), 400, "sample_rate"),
        (body(output={}), 400, "encoding"),
        (body(output={**MP3, "bit_rate": 1}), 400, "bit_rate"),
        (body(output={**MP3, "sample_rate": 8_000}), 400, "sample_rate"),
        (body(output={"container": "mp3"}), 400, "sample_rate"),
        (body(language="xx"), 400, "language"),
        (body(locale="xx-YY"), 400, "locale"),
    ],
)
def test_bad_requests_name_the_field(given: bytes, status: int, param: str | None) -> None:
    found = fault(given)
    assert (found.status, found.param) == (status, param)
    assert "expected" in found.message


def test_events_are_raw_samples_only() -> None:
    assert fault(body({**RAW, "container": "wav"}), read_sse).param == "container"
    assert fault(body(add_phoneme_timestamps=True), read_sse).status == HTTPStatus.BAD_REQUEST


def events(written: bytes) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for block in written.decode().split("\n\n")[:-1]:
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


@pytest.mark.parametrize("context", ["c-1", None])
def test_events(context: str | None) -> None:
    order = read_sse(body(add_timestamps=True, context_id=context), facts())
    assert order.media_type == "text/event-stream"
    writer = order.open(ready(sample_rate=44_100))
    written = writer.begin() + writer.add(audio(b"ab", 44_100, ("Hello", 4_410, 0)))
    written += writer.add(audio(b"", 0, at=44_100, final=True)) + writer.end()
    more = {} if context is None else {"context_id": context}
    chunk = {"type": "chunk", "status_code": 206, "done": False, "step_time": 0.0}
    times = {"words": ["Hello"], "start": [0.1], "end": [1.0]}
    assert events(written) == [
        ("chunk", {**chunk, **more, "data": base64.b64encode(b"ab").decode()}),
        (
            "timestamps",
            {
                **{"type": "timestamps", "status_code": 206, "done": False, **more},
                "word_timestamps": times,
            },
        ),
        ("done", {"type": "done", "status_code": 200, "done": True, **more}),
    ]


def test_events_without_times_and_with_a_fault() -> None:
    writer = read_sse(body(), facts()).open(ready(sample_rate=44_100))
    assert [name for name, _ in events(writer.add(audio(b"ab", 1, ("Hello", 0, 0))))] == ["chunk"]
    told = writer.fault(ApiError(HTTPStatus.SERVICE_UNAVAILABLE, "busy", code="overloaded"))
    assert told is not None
    ((name, fields),) = events(told)
    assert (name, fields["status_code"], fields["error_code"]) == ("error", 503, "overloaded")
    assert (fields["title"], fields["message"], fields["done"]) == ("overloaded", "busy", True)


def test_the_name_of_a_context_is_short() -> None:
    with pytest.raises(ApiError) as caught:
        read_sse(body(context_id="c" * 129), facts())
    assert caught.value.status == HTTPStatus.BAD_REQUEST
    assert read_sse(body(context_id="c" * 128), facts())
