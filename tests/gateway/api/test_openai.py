"""OpenAI's requests as orders."""

import json
from http import HTTPStatus

import pytest
from order_kit import audio, ready
from playhead.gateway.api.errors import ApiError
from playhead.gateway.api.openai import order_of
from playhead.gateway.api.request import SpeechRequest


def asked(form: str = "pcm", stream: str = "audio") -> SpeechRequest:
    return SpeechRequest("Hello.", "ada", form, stream, 1.5, "softly")


@pytest.mark.parametrize(
    ("form", "stream", "media", "codec", "heavy"),
    [
        ("pcm", "audio", "audio/pcm", "pcm_s16le", False),
        ("opus", "audio", "audio/ogg", "opus", False),
        ("mp3", "audio", "audio/mpeg", "pcm_s16le", True),
        ("pcm", "sse", "text/event-stream", "pcm_s16le", False),
    ],
)
def test_the_order(form: str, stream: str, media: str, codec: str, heavy: bool) -> None:
    order = order_of(asked(form, stream))
    assert (order.media_type, order.heavy, order.text) == (media, heavy, "Hello.")
    hello = order.hello
    assert (hello.codec, hello.sample_rate, hello.reports) == (codec, 24_000, False)
    assert (hello.voice, hello.speed, hello.instruct) == ("ada", 1.5, "softly")


def test_a_body_and_events() -> None:
    plain = order_of(asked()).open(ready())
    assert plain.begin() + plain.add(audio(b"ab", 1)) + plain.end() == b"ab"
    events = order_of(asked(stream="sse")).open(ready())
    assert events.begin() == b""
    assert b"speech.audio.delta" in events.add(audio(b"ab", 1_200))
    done = json.loads(events.end().removeprefix(b"data: "))
    assert done["usage"] == {"input_tokens": 6, "output_tokens": 1, "total_tokens": 7}
    told = events.fault(ApiError(HTTPStatus.SERVICE_UNAVAILABLE, "no", code="c"))
    assert told is not None
    assert json.loads(told.removeprefix(b"data: "))["type"] == "error"
