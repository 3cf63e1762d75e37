"""ElevenLabs' requests for speech over HTTP, as literal bodies and lines."""

import base64
import json
from http import HTTPStatus
from typing import Any

import pytest
from dialect_kit import facts
from order_kit import audio, ready
from playhead.gateway.api.elevenlabs import read_speech
from playhead.gateway.api.errors import ApiError
from playhead.gateway.api.order import Order

VOICE = "21m00Tcm4TlvDq8ikWAM"
PCM = {"output_format": "pcm_24000"}
TIMED = "stream/with-timestamps"


def order(
    kind: str = "", query: dict[str, str] | None = None, voice: str = VOICE, **fields: Any
) -> Order:
    body = json.dumps({"text": "Hi you", "model_id": "eleven_flash_v2_5", **fields}).encode()
    return read_speech(body, voice, PCM if query is None else query, facts(), kind)


@pytest.mark.parametrize(
    ("form", "codec", "rate", "media", "heavy"),
    [
        ("pcm_24000", "pcm_s16le", 24_000, "audio/pcm", False),
        ("ulaw_8000", "mulaw", 8_000, "audio/PCMU", False),
        ("alaw_8000", "alaw", 8_000, "audio/PCMA", False),
        ("mp3_22050_32", "pcm_s16le", 22_050, "audio/mpeg", True),
        (None, "pcm_s16le", 44_100, "audio/mpeg", True),
    ],
)
@pytest.mark.parametrize("kind", ["", "stream"])
def test_sound(kind: str, form: str | None, codec: str, rate: int, media: str, heavy: bool) -> None:
    query = {} if form is None else {"output_format": form, "optimize_streaming_latency": "3"}
    found = order(kind, query, voice_settings={"speed": 0.9, "stability": 0.5})
    assert (found.hello.codec, found.hello.sample_rate, found.hello.speed) == (codec, rate, 0.9)
    assert (found.hello.voice, found.text) == ("alto", "Hi you")
    assert (found.media_type, found.heavy) == (media, heavy)
    writer = found.open(ready(codec=codec, sample_rate=rate))
    made = writer.begin() + writer.add(audio(bytes(2 * rate), rate))
    assert made[:2] == (b"\xff\xf3" if rate == 22_050 else b"\xff\xfb" if heavy else b"\0\0")
    assert writer.end() == b""


def test_a_line_for_each_piece_with_seconds_from_the_beginning() -> None:
    writer = order(TIMED).open(ready())
    assert writer.begin() == b""
    first = json.loads(writer.add(audio(b"ab", 12_000, ("Hi", 0, 0))))
    assert base64.b64decode(first["audio_base64"]) == b"ab"
    assert first["alignment"] == first["normalized_alignment"]
    assert first["alignment"] == {
        "characters": ["H", "i"],
        "character_start_times_seconds": [0.0, 0.25],
        "character_end_times_seconds": [0.25, 0.5],
    }
    second = json.loads(writer.add(audio(b"cd", 12_000, ("you", 12_000, 3), at=12_000, final=True)))
    assert "".join(second["alignment"]["characters"]).split() == ["you"]
    assert second["alignment"]["character_start_times_seconds"][0] >= 0.5
    assert second["alignment"]["character_end_times_seconds"][-1] == 1.0
    assert writer.end() == b""


def test_sound_without_words_and_nothing_at_all() -> None:
    writer = order(TIMED).open(ready())
    assert json.loads(writer.add(audio(b"ab", 1)))["alignment"] is None
    assert writer.add(audio(b"", 0)) == b""
    assert writer.fault(ApiError(HTTPStatus.SERVICE_UNAVAILABLE, "no")) is None


def test_one_object_for_all_of_it() -> None:
    found = order("with-timestamps")
    assert found.media_type == "application/json"
    writer = found.open(ready())
    assert writer.begin() + writer.add(audio(b"ab", 12_000, ("Hi", 0, 0))) == b""
    assert writer.add(audio(b"cd", 12_000, ("you", 12_000, 3), at=12_000, final=True)) == b""
    told = json.loads(writer.end())
    assert base64.b64decode(told["audio_base64"]) == b"abcd"
    assert "".join(told["alignment"]["characters"]).strip() == "Hi you"
    starts = told["alignment"]["character_start_times_seconds"]
    assert starts == sorted(starts)
    silent = order("with-timestamps", text="!").open(ready())
    silent.add(audio(b"", 0))
    assert json.loads(silent.end())["alignment"] is None


@pytest.mark.parametrize(
    ("kind", "query", "voice", "fields", "status", "code"),
    [
        ("", {}, "nobody", {}, 404, "unknown_voice"),
        ("", {}, VOICE, {"model_id": "other"}, 404, "unknown_model"),
        ("", {"output_format": "opus_48000_32"}, VOICE, {}, 400, "unsupported_codec"),
        ("", {}, VOICE, {"text": ""}, 400, "bad_value"),
        ("", {}, VOICE, {"text": None}, 400, "missing_field"),
        ("", {}, VOICE, {"text": 7}, 400, "bad_value"),
        ("", {}, VOICE, {"voice_settings": {"speed": 9}}, 400, "bad_value"),
        ("", {}, VOICE, {"language_code": "xx"}, 400, "unknown_language"),
        ("with-timestamps", {}, VOICE, {"text": "a" * 4_097}, 400, "text_too_long"),
    ],
)
def test_bad_requests(
    kind: str, query: dict[str, str], voice: str, fields: dict[str, Any], status: int, code: str
) -> None:
    with pytest.raises(ApiError) as caught:
        order(kind, query, voice, **fields)
    assert (caught.value.status, caught.value.code) == (status, code)
    assert "expected" in caught.value.message


def test_a_body_that_is_no_json_and_a_long_text_that_is_streamed() -> None:
    with pytest.raises(ApiError):
        read_speech(b"{", VOICE, PCM, facts(), "")
    assert len(order(TIMED, text="a" * 4_097).text) == 4_097
