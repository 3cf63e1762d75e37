"""What may be asked of ``POST /v1/audio/speech``, and how a refusal reads."""

import json
from dataclasses import replace
from typing import Any

import pytest
from harness import facts
from playhead.gateway.api.errors import ApiError
from playhead.gateway.api.request import MOST_BODY, SpeechRequest, parse_speech

GOOD = {"model": "tts-1", "input": "Hello.", "voice": "alloy"}


def parse(**fields: Any) -> SpeechRequest:
    given = {name: value for name, value in {**GOOD, **fields}.items() if value is not ...}
    return parse_speech(json.dumps(given).encode(), facts())


def refused(body: bytes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        parse_speech(body, facts())
    return caught.value


def test_defaults_are_those_of_the_vendor() -> None:
    assert parse() == SpeechRequest("Hello.", "alto", "mp3", "audio", 1.0)


def test_every_field_is_heeded() -> None:
    asked = parse(
        model="fake",
        voice={"id": "tenor"},
        instructions="gently",
        response_format="pcm",
        speed=2,
        stream_format="sse",
    )
    assert asked == SpeechRequest("Hello.", "tenor", "pcm", "sse", 2.0)


def test_null_is_as_good_as_absent() -> None:
    optional = ("instructions", "response_format", "speed", "stream_format")
    assert parse(**dict.fromkeys(optional)) == parse()


@pytest.mark.parametrize("model", ["fake", "tts-1", "tts-1-hd", "gpt-4o-mini-tts"])
def test_models_that_clients_ask_for_by_default_are_known(model: str) -> None:
    assert parse(model=model).voice == "alto"


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"input": ...}, "input", "missing"),
        ({"voice": None}, "voice", "missing"),
        ({"model": ...}, "model", "missing"),
        ({"pitch": 3}, "pitch", "unknown field"),
        ({"model": 7}, "model", "does not exist"),
        ({"input": "  \n"}, "input", "no text"),
        ({"input": ["Hi"]}, "input", "no text"),
        ({"input": "x" * 4097}, "input", "4097 characters"),
        ({"input": "\ud800"}, "input", "surrogate"),
        ({"voice": "zeus"}, "voice", "'zeus' does not exist: expected alto, tenor, alloy"),
        ({"voice": {"id": "alto", "x": 1}}, "voice", "of that type"),
        ({"voice": 5}, "voice", "of that type"),
        ({"instructions": 5}, "instructions", "at most 4096"),
        ({"instructions": "x" * 4097}, "instructions", "at most 4096"),
        ({"response_format": "aac"}, "response_format", "is not made by this server"),
        ({"response_format": "midi"}, "response_format", "is not known"),
        ({"response_format": 1}, "response_format", "is not known"),
        ({"response_format": ["pcm"]}, "response_format", "is not known"),
        ({"stream_format": "webrtc"}, "stream_format", "expected audio or sse"),
        ({"stream_format": "sse", "response_format": "wav"}, "response_format", "wav cannot"),
        ({"speed": 0.25}, "speed", "from 0.5 to 2"),
        ({"speed": True}, "speed", "from 0.5 to 2"),
        ({"speed": "fast"}, "speed", "from 0.5 to 2"),
    ],
)
def test_a_refusal_names_the_field_and_what_would_be_right(
    fields: dict[str, Any], param: str, words: str
) -> None:
    with pytest.raises(ApiError) as caught:
        parse(**fields)
    assert caught.value.param == param
    assert words in caught.value.message


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff", b'{"a":NaN}', b'{"a":1,"a":2}', b"[" * 5000]
)
def test_what_is_no_object_is_refused(body: bytes) -> None:
    assert "expected one JSON object" in refused(body).message


def test_a_body_over_the_limit_is_refused() -> None:
    assert refused(b" " * (MOST_BODY + 1)).status == 400


def test_directions_go_to_a_model_that_takes_them() -> None:
    able = replace(facts(), takes_instruct=True)
    body = json.dumps({**GOOD, "instructions": "gently"}).encode()
    assert parse_speech(body, able).instruct == "gently"
    assert parse_speech(body, facts()).instruct is None
    long = json.dumps({**GOOD, "instructions": "x" * 1_001}).encode()
    with pytest.raises(ApiError, match="at most 1000"):
        parse_speech(long, able)


def test_opus_is_offered_where_it_can_be_made() -> None:
    without = replace(facts(), formats=())
    body = json.dumps({**GOOD, "response_format": "opus"}).encode()
    with pytest.raises(ApiError, match="is not made by this server: expected mp3, wav, pcm"):
        parse_speech(body, without)
    able = replace(facts(), formats=({"codec": "opus", "sample_rates": [24_000]},))
    assert parse_speech(body, able).format == "opus"
