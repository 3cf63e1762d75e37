"""What an ElevenLabs URL asks for."""

import pytest
from dialect_kit import facts
from playhead.gateway.dialects.elevenlabs_query import FORMATS, read_query
from playhead.gateway.protocol_parse import ProtocolError

VOICE = "21m00Tcm4TlvDq8ikWAM"


def test_what_is_not_said_has_the_vendors_default() -> None:
    query = read_query({"voice_id": VOICE}, facts())
    assert (query.hello.voice, query.hello.sample_rate, query.format.bit_rate) == (
        "alto",
        44_100,
        128,
    )
    assert (query.timeout, query.absolute, query.hello.reports) == (20.0, False, False)


def test_what_is_said_is_heeded() -> None:
    query = read_query(
        {
            **{"voice_id": "tenor", "model_id": "fake-1", "output_format": "ulaw_8000"},
            **{"inactivity_timeout": "180", "sync_alignment": "true", "auto_mode": "true"},
        },
        facts(),
    )
    assert (query.hello.voice, query.hello.codec, query.hello.sample_rate) == (
        "tenor",
        "mulaw",
        8_000,
    )
    assert (query.timeout, query.absolute) == (180.0, True)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"voice_id": "zeus"}, "unknown_voice"),
        ({"model_id": "parrot"}, "unknown_model"),
        ({"output_format": "pcm_1"}, "unsupported_codec"),
        ({"language_code": "tlh"}, "unknown_language"),
        ({"inactivity_timeout": "long"}, "bad_value"),
    ],
)
def test_a_refusal_has_a_code(fields: dict[str, str], code: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        read_query({"voice_id": VOICE, **fields}, facts())
    assert caught.value.code == code


def test_every_format_can_be_opened() -> None:
    known = facts()
    for form in FORMATS.values():
        assert known.open_format(form.codec, form.sample_rate)
