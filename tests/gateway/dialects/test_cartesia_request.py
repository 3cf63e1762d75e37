"""Requests to Cartesia's socket, field by field, and how a refusal reads."""

from typing import Any

import pytest
from dialect_kit import facts
from playhead.gateway.dialects.cartesia_request import Generation, read_generation
from playhead.gateway.protocol_parse import ProtocolError

UUID = "a0e99841-438c-4a64-b679-ae501e7d6091"
RAW = {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000}


def read(**fields: Any) -> Generation:
    request = {
        "model_id": "sonic-3",
        "transcript": "Hello there.",
        "voice": {"mode": "id", "id": UUID},
        "output_format": RAW,
        "context_id": "c1",
        **fields,
    }
    return read_generation(request, facts())


def test_what_is_not_said_has_the_vendors_default() -> None:
    asked = read()
    assert (asked.transcript, asked.more, asked.flush) == ("Hello there.", False, False)
    assert not asked.timestamps
    assert (asked.hello.voice, asked.hello.speed, asked.hello.reports) == ("alto", 1.0, False)


def test_what_is_said_is_heeded() -> None:
    asked = read(**{"continue": True}, flush=True, add_timestamps=True, max_buffer_delay_ms=0)
    assert (asked.more, asked.flush, asked.timestamps) == (True, True, True)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"model_id": "parrot-1"}, "unknown_model"),
        ({"model_id": None}, "missing_field"),
        ({"voice": {"mode": "id", "id": "zeus"}}, "unknown_voice"),
        ({"voice": {"mode": "embedding", "embedding": [0.1]}}, "bad_value"),
        ({"voice": None}, "missing_field"),
        ({"voice": 3}, "bad_value"),
        ({"output_format": {"container": "wav", "encoding": "pcm_s16le"}}, "bad_value"),
        ({"output_format": None}, "bad_value"),
        ({"output_format": {**RAW, "encoding": "opus"}}, "bad_value"),
        ({"output_format": {**RAW, "sample_rate": 12_345}}, "unsupported_rate"),
        ({"output_format": {**RAW, "encoding": "pcm_mulaw"}}, "unsupported_rate"),
        ({"transcript": None}, "missing_field"),
        ({"transcript": 7}, "bad_value"),
        ({"context_id": ""}, "missing_field"),
        ({"context_id": 5}, "bad_value"),
        ({"continue": "yes"}, "bad_value"),
        ({"add_phoneme_timestamps": True}, "bad_value"),
        ({"max_buffer_delay_ms": 9_000}, "bad_value"),
        ({"generation_config": {"speed": 9}}, "bad_value"),
        ({"speed": "warp"}, "bad_value"),
    ],
)
def test_a_refusal_says_what_would_be_right(fields: dict[str, Any], code: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        read(**fields)
    assert caught.value.code == code
    assert caught.value.expected


@pytest.mark.parametrize("model", ["sonic", "sonic-3", "sonic-2-2025-03-07", "sonic-3.5", "fake-1"])
def test_models_may_be_ours_or_any_of_the_vendors(model: str) -> None:
    assert read(model_id=model).hello.voice == "alto"


@pytest.mark.parametrize(
    ("encoding", "rate", "codec"),
    [
        ("pcm_s16le", 16_000, "pcm_s16le"),
        ("pcm_f32le", 44_100, "pcm_f32le"),
        ("pcm_mulaw", 8_000, "mulaw"),
        ("pcm_alaw", 8_000, "alaw"),
    ],
)
def test_formats(encoding: str, rate: int, codec: str) -> None:
    form = {"container": "raw", "encoding": encoding, "sample_rate": rate}
    hello = read(output_format=form).hello
    assert (hello.codec, hello.sample_rate) == (codec, rate)


@pytest.mark.parametrize(
    ("fields", "speed"),
    [
        ({"generation_config": {"speed": 1.5}}, 1.5),
        ({"generation_config": {"volume": 1.0}, "speed": "fast"}, 1.25),
        ({"voice": {"id": UUID, "__experimental_controls": {"speed": "slow"}}}, 0.8),
        ({"voice": {"id": UUID, "__experimental_controls": {"speed": -0.5}}}, 0.75),
    ],
)
def test_speed_may_stand_in_three_places(fields: dict[str, Any], speed: float) -> None:
    assert read(**fields).hello.speed == speed


@pytest.mark.parametrize(
    ("voice", "found"), [("tenor", "tenor"), ({"id": UUID}, "alto"), (UUID, "alto")]
)
def test_voices_may_be_ours_or_any_of_the_vendors(voice: Any, found: str) -> None:
    assert read(voice=voice).hello.voice == found
