"""Deepgram Flux, /v2/speak, with literal frames."""

import json
from typing import Any

import pytest
from dialect_kit import Call, facts, opening, stray, types
from playhead.engine.types import Finish, Source
from playhead.gateway.dialects.base import Refused
from playhead.gateway.dialects.flux import open_flux

FLUSH = {"type": "Flush"}
TEXT = "one two three four"
WORDS = (("one", 0, 0), ("two", 24_000, 4), ("three", 48_000, 8), ("four", 72_000, 14))


def call(query: str = "model=flux-haley-en", **limits: Any) -> Call:
    known = facts(**limits)
    return Call(open_flux(opening(query), known, "r-1"), known)


def speak(text: str = TEXT) -> dict[str, str]:
    return {"type": "Speak", "text": text}


def interrupt(ms: int | None = None) -> dict[str, Any]:
    if ms is None:
        return {"type": "Interrupt"}
    return {"type": "Interrupt", "playback_offset": {"type": "time_ms", "value": ms}}


def spoken(client: Call, *, flush: bool = True) -> Call:
    """Four seconds of four words, one word a second."""
    client.send(speak(), *([FLUSH] if flush else []))
    client.speak(96_000, words=WORDS)
    return client


def metadata(speech_id: str, ms: int, characters: int) -> dict[str, Any]:
    return {
        "speech_id": speech_id,
        "audio_duration_ms": ms,
        "input_character_count": characters,
        "billable_character_count": characters,
        "controls_applied": {
            "pronunciations_applied": 0,
            "breaks_applied": 0,
            "pronunciation_warnings": 0,
        },
    }


ONE = "dg_sp_000000000001"
TWO = "dg_sp_000000000002"


def test_a_turn_from_connected_to_metadata() -> None:
    client = call()
    assert client.all == [
        {
            "type": "Connected",
            "request_id": "r-1",
            "model_name": "flux-haley-en",
            "model_version": "playhead test",
            "model_uuids": ["fake-1"],
        }
    ]
    assert client.send(speak("Hello. ")) == [{"type": "SpeechStarted", "speech_id": ONE}]
    assert client.send(speak("Bye.")) == []
    assert client.send(FLUSH) == [{"type": "Flushed", "speech_id": ONE}]
    assert client.text == "Hello. Bye."
    assert client.speak(24_000) == [b"\1" * 48_000]
    assert client.finish() == [{"type": "SpeechMetadata", **metadata(ONE, 1_000, 11)}]


def test_a_waiting_turn_starts_when_the_one_before_is_complete() -> None:
    client = call()
    client.send(speak("A."), FLUSH)
    assert types(client.send(speak("B."), FLUSH)) == ["Flushed"]
    first = client.number
    client.speak(24_000)
    frames = client.finish()
    assert types(frames) == ["SpeechMetadata", "SpeechStarted"]
    assert frames[1]["speech_id"] == TWO
    assert client.number != first, "it is made while the first still plays"
    assert client.submitted[-1].ahead == 1.0
    assert types(client.speak(24)) == ["bytes"]
    assert types(client.finish()) == ["SpeechMetadata"]


@pytest.mark.parametrize(
    ("offset", "heard", "rest"),
    [
        (0, "", TEXT),
        (1_500, "one two", " three four"),
        (2_000, "one two", " three four"),
        (2_001, "one two three", " four"),
        (4_000, TEXT, ""),
        (9_999, TEXT, ""),
    ],
)
def test_an_interrupt_with_an_offset_splits_the_text(offset: int, heard: str, rest: str) -> None:
    client = spoken(call())
    (answer,) = client.send(interrupt(offset), at=0.5)
    assert answer == {
        "type": "SpeechInterrupted",
        "audio_played_ms": min(offset, 4_000),
        "text_spoken": heard,
        "text_remaining": rest,
        "metadata": metadata(ONE, 4_000, 18),
    }
    assert client.cancelled == [client.number]
    assert client.speak(24) == [], "nothing of it follows"


def test_the_offset_becomes_a_report() -> None:
    client = spoken(call())
    client.send(interrupt(1_500), at=0.5)
    (report,) = client.reports
    assert report.source is Source.OFFSET
    assert (report.received, report.consumed, report.buffered) == (96_000, 36_000, 60_000)


def test_a_turn_can_be_interrupted_when_all_of_it_has_been_sent() -> None:
    client = spoken(call())
    client.finish()
    (answer,) = client.send(interrupt(1_500), at=3.0)
    assert answer["text_spoken"] == "one two"
    assert client.cancelled == [client.number]


def test_a_listener_who_started_late_can_still_interrupt() -> None:
    client = spoken(call())
    client.finish()
    client.wait(6.0)  # by the estimate it was over at 4.5 s
    (answer,) = client.send(interrupt(1_500))
    assert answer["text_spoken"] == "one two"
    assert client.reports == []
    assert types(client.send(interrupt(2_000))) == ["Warning"]


def test_offsets_count_the_audio_of_the_session() -> None:
    client = spoken(call())
    client.finish()
    client.wait(5.0)
    spoken(client)
    (answer,) = client.send(interrupt(5_500), at=6.0)
    assert answer["audio_played_ms"] == 5_500
    assert answer["text_spoken"] == "one two"
    assert answer["metadata"]["speech_id"] == TWO


def test_an_interrupt_starts_the_count_anew_where_it_cut() -> None:
    client = spoken(call())
    client.send(interrupt(1_500), at=1.5)
    spoken(client)
    (answer,) = client.send(interrupt(2_700), at=3.0)
    assert answer["text_spoken"] == "one two", "1.2 s into the second turn"
    assert answer["audio_played_ms"] == 2_700


def test_an_offset_must_advance() -> None:
    client = spoken(call())
    client.send(interrupt(1_500), at=1.5)
    spoken(client)
    (warning,) = client.send(interrupt(1_500))
    assert warning["code"] == "INVALID_INTERRUPT_OFFSET"
    assert "1500" in warning["description"]
    assert types(client.speak(24)) == ["bytes"], "it was ignored"


def test_the_first_of_two_turns_is_interrupted_and_the_second_is_dropped() -> None:
    client = spoken(call())
    client.finish()
    spoken(client)
    (answer,) = client.send(interrupt(3_500), at=3.5)
    assert answer["metadata"]["speech_id"] == ONE
    assert answer["text_remaining"] == ""
    assert len(client.cancelled) == 2
    assert client.speak(24) == []


def test_the_second_turn_is_interrupted_and_the_first_was_heard() -> None:
    client = spoken(call())
    client.finish()
    spoken(client)
    (answer,) = client.send(interrupt(5_500), at=4.0)
    assert answer["metadata"]["speech_id"] == TWO
    assert answer["text_spoken"] == "one two"
    assert [(r.consumed, r.buffered) for r in client.reports] == [(96_000, 0), (36_000, 60_000)]


def test_an_interrupt_without_an_offset_uses_what_the_session_believes() -> None:
    client = spoken(call())
    (answer,) = client.send(interrupt(), at=1.5)
    assert answer["text_spoken"] == "one two"
    assert answer["text_remaining"] == " three four"
    assert answer["audio_played_ms"] == 1_500
    assert answer["estimated"] is True
    assert client.cancelled == [client.number]
    spoken(client)
    assert client.send(interrupt(2_700), at=3.0)[0]["text_spoken"] == "one two"


@pytest.mark.parametrize("offset", [0, None])
def test_a_turn_can_be_interrupted_before_its_first_sound(offset: int | None) -> None:
    client = call()
    client.send(speak())
    old = client.number
    (answer,) = client.send(interrupt(offset))
    assert answer["type"] == "SpeechInterrupted"
    assert (answer["text_spoken"], answer["text_remaining"]) == ("", TEXT)
    assert answer["audio_played_ms"] == 0
    assert client.cancelled == [old]
    assert types(client.send(speak("New."))) == ["SpeechStarted"]
    assert client.speak(24, number=old) == []
    assert types(client.speak(24)) == ["bytes"]


def test_a_turn_without_sound_behind_one_that_was_heard() -> None:
    client = spoken(call())
    client.finish()
    client.wait(6.0)
    client.send(speak("More."))
    (answer,) = client.send(interrupt(4_000))
    assert answer["metadata"]["speech_id"] == TWO
    assert answer["audio_played_ms"] == 4_000
    assert answer["text_remaining"] == "More."
    assert client.cancelled == [client.number]


@pytest.mark.parametrize("offset", [None, 100, 4_000])
def test_nothing_to_interrupt(offset: int | None) -> None:
    client = call()
    assert client.send(interrupt(offset))[0]["code"] == "NO_ACTIVE_SPEECH"


@pytest.mark.parametrize("offset", [None, 4_000])
def test_nothing_left_to_interrupt(offset: int | None) -> None:
    client = spoken(call())
    client.finish()
    client.wait(6.0)
    (warning,) = client.send(interrupt(offset))
    assert warning["code"] == "NO_ACTIVE_SPEECH"


def test_a_flush_without_a_turn() -> None:
    assert call().send(FLUSH)[0]["code"] == "NO_ACTIVE_SPEECH"


def test_empty_text_opens_no_turn() -> None:
    assert call().send(speak("")) == []


def test_a_turn_without_sound_is_said_to_have_none() -> None:
    client = call()
    client.send(speak("..."), FLUSH)
    frames = client.finish()
    assert types(frames) == ["Warning", "SpeechMetadata"]
    assert frames[0]["code"] == "NO_SYNTHESIZABLE_TEXT"
    assert frames[1]["audio_duration_ms"] == 0


def test_speed_of_later_turns() -> None:
    client = call()
    assert client.send({"type": "Configure", "speed": 1.25}) == [
        {"type": "ConfigureSuccess", "applied": {"speed": 1.25}}
    ]
    assert client.send({"type": "Configure"}) == [{"type": "ConfigureSuccess", "applied": {}}]
    client.send(speak())
    assert client.submitted[0].speed == 1.25


@pytest.mark.parametrize(
    ("speed", "code"),
    [
        (3, "SPEED_OUT_OF_RANGE"),
        ("fast", "SPEED_OUT_OF_RANGE"),
        (1.01, "SPEED_INCREMENT_INVALID"),
    ],
)
def test_a_speed_that_cannot_be(speed: object, code: str) -> None:
    (failure,) = call().send({"type": "Configure", "speed": speed})
    assert failure["type"] == "ConfigureFailure"
    assert (failure["code"], failure["field"], failure["value"]) == (code, "speed", speed)


def test_close_gives_the_totals() -> None:
    client = spoken(call())
    assert client.send({"type": "Close"}) == [
        {
            "type": "SessionMetadata",
            "total_audio_duration_ms": 4_000,
            "total_input_character_count": 18,
            "total_billable_character_count": 18,
        }
    ]
    assert client.closed == (1000, "")
    client.wait(0.01)
    assert client.cancelled == [client.number]


@pytest.mark.parametrize(
    ("frame", "code", "close"),
    [
        (b"\0", "MESSAGE-0000", 1003),
        ("{", "DATA-0000", 1008),
        ({"type": "Sing"}, "DATA-0000", 1008),
        ({"type": "Speak"}, "DATA-0000", 1008),
        ({"type": "Interrupt", "playback_offset": 5}, "DATA-0000", 1008),
        ({"type": "Interrupt", "playback_offset": {"type": "bytes"}}, "DATA-0000", 1008),
        ({"type": "Interrupt", "playback_offset": {"type": "time_ms"}}, "DATA-0000", 1008),
        (interrupt(-1), "DATA-0000", 1008),
    ],
)
def test_what_is_no_message_ends_the_connection(frame: Any, code: str, close: int) -> None:
    client = call()
    (error,) = client.send(frame)
    assert (error["type"], error["code"]) == ("Error", code)
    assert "expected" in error["description"] or code == "MESSAGE-0000"
    assert client.closed == (close, code)


def test_a_failed_turn_ends_the_connection() -> None:
    client = call()
    client.send(speak())
    (error,) = client.finish(reason=Finish.FAILED, code="overloaded", message="too many")
    assert error["code"] == "NET-0000"
    assert "too many" in error["description"]
    assert client.closed == (1011, "NET-0000")


def test_too_much_text() -> None:
    client = call(text_waiting=20)
    client.send(speak())
    (error,) = client.send(speak())
    assert error["code"] == "BIG-0000"
    assert client.closed == (1009, "BIG-0000")


@pytest.mark.parametrize("query", ["", "model=aura-2-thalia-en", "model=flux-haley-en&speed=9"])
def test_a_bad_query(query: str) -> None:
    with pytest.raises(Refused) as caught:
        call(query)
    assert json.loads(caught.value.body)["err_code"] == "INVALID_QUERY_PARAMETER"


def test_warnings_of_the_engine_pass() -> None:
    client = call()
    client.send(speak())
    (warning,) = client.warn("unspeakable_text", "three emoji were skipped")
    assert warning["code"] == "UNSPEAKABLE_TEXT"


def test_positions_at_another_rate() -> None:
    client = call("model=flux-haley-en&sample_rate=48000")
    client.send(speak())
    client.speak(96_000, words=WORDS)  # what the engine makes at 24 kHz, as the encoder gives it
    (answer,) = client.send(interrupt(1_500), at=1.5)
    assert answer["audio_played_ms"] == 1_500
    assert answer["text_spoken"] == "one two"


def test_audio_of_a_forgotten_turn_is_dropped() -> None:
    assert call().dialect.tell("", stray(), 0.0) == []
