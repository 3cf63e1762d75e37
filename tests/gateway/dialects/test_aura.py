"""Deepgram Aura, /v1/speak, with literal frames."""

import json
from http import HTTPStatus

import pytest
from dialect_kit import Call, facts, opening, stray, types
from playhead.engine.types import Finish
from playhead.gateway.dialects.aura import FLUSHES, open_aura
from playhead.gateway.dialects.base import Frame, Refused
from playhead.gateway.messages import Failed

SPEAK = {"type": "Speak", "text": "Hello there. "}
FLUSH = {"type": "Flush"}


def call(query: str = "model=aura-2-thalia-en", **limits: float) -> Call:
    known = facts(**limits)
    return Call(open_aura(opening(query), known, "r-1"), known)


def test_metadata_comes_first() -> None:
    assert call().all == [
        {
            "type": "Metadata",
            "request_id": "r-1",
            "model_name": "aura-2-thalia-en",
            "model_version": "playhead test",
            "model_uuid": "fake-1",
        }
    ]


def test_speech_is_binary_frames_then_flushed() -> None:
    client = call()
    assert client.send(SPEAK, {"type": "Speak", "text": "How are you?"}) == []
    assert client.send(FLUSH) == []
    assert client.text == "Hello there. How are you?"
    assert client.pushed[-1].end
    assert client.speak(240) == [b"\1" * 480]
    assert client.speak(24, byte=2) == [b"\2" * 48]
    assert client.finish() == [{"type": "Flushed", "sequence_id": 0}]


def test_audio_starts_before_the_flush() -> None:
    client = call()
    client.send(SPEAK)
    assert client.speak(240) == [b"\1" * 480]


def test_every_flush_is_one_utterance_and_one_flushed() -> None:
    client = call()
    client.send(SPEAK, FLUSH, {"type": "Speak", "text": "Next."}, FLUSH)
    client.speak(240)
    assert client.finish()[-1] == {"type": "Flushed", "sequence_id": 0}
    client.wait(10.0)  # the first has been played
    client.speak(240)
    assert client.finish()[-1] == {"type": "Flushed", "sequence_id": 1}
    assert [piece.delta for piece in client.pushed if piece.delta] == ["Hello there. ", "Next."]


def test_flush_without_text_is_answered_behind_those_that_are_due() -> None:
    client = call()
    assert types(client.send(FLUSH)) == ["Flushed"]
    client.send(SPEAK, FLUSH)
    assert client.send(FLUSH) == []
    client.speak(240)
    assert types(client.finish()) == ["Flushed", "Flushed"]


def test_clear_cancels_all_and_the_next_text_is_spoken() -> None:
    client = call()
    client.send(SPEAK, FLUSH, {"type": "Speak", "text": "Queued."}, FLUSH)
    number = client.number
    client.speak(240)
    assert client.send({"type": "Clear"}) == [{"type": "Cleared", "sequence_id": 0}]
    assert client.cancelled == [number]
    assert client.speak(240, number=number) == [], "nothing of it follows"
    client.send({"type": "Speak", "text": "New."}, FLUSH)
    assert client.number != number
    assert client.speak(24) == [b"\1" * 48]
    assert client.finish() == [{"type": "Flushed", "sequence_id": 1}]


def test_clear_before_the_first_audio() -> None:
    client = call()
    client.send(SPEAK)
    old = client.number
    assert types(client.send({"type": "Clear"})) == ["Cleared"]
    client.send({"type": "Speak", "text": "New."})
    assert client.cancelled == [old]
    assert client.speak(24, number=old) == []
    assert types(client.speak(24)) == ["bytes"]


def test_close_ends_at_once() -> None:
    client = call()
    client.send(SPEAK, {"type": "Close"})
    assert client.closed == (1000, "")
    client.wait(0.01)
    assert client.cancelled == [client.number]


@pytest.mark.parametrize(
    ("encoding", "rate", "codec"),
    [("linear16", 48_000, "pcm_s16le"), ("mulaw", 8_000, "mulaw"), ("alaw", 8_000, "alaw")],
)
def test_formats(encoding: str, rate: int, codec: str) -> None:
    client = call(f"encoding={encoding}&sample_rate={rate}&speed=1.5&model=tenor")
    client.send(SPEAK)
    assert client.submitted[0].voice == "tenor"
    assert client.submitted[0].speed == 1.5
    assert not client.submitted[0].reports
    assert (client.ready[0].codec, client.ready[0].sample_rate) == (codec, rate)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("model=gpt-4", "alto, tenor"),
        ("encoding=opus", "linear16, mulaw, alaw"),
        ("sample_rate=44000", "8000, 16000, 22050, 24000, 44100, 48000"),
        ("encoding=mulaw&sample_rate=16000", "one of 8000"),
        ("speed=3", "0.7 to 1.5"),
        ("sample_rate=fast", "sample_rate: a number"),
        ("container=wav", "container: one of none"),
    ],
)
def test_a_bad_query_is_refused_with_what_would_be_right(query: str, named: str) -> None:
    with pytest.raises(Refused) as caught:
        call(query)
    assert caught.value.status is HTTPStatus.BAD_REQUEST
    body = json.loads(caught.value.body)
    assert body["err_code"] == "INVALID_QUERY_PARAMETER"
    assert named in body["err_msg"]
    assert caught.value.headers["dg-error"] == body["err_msg"]


@pytest.mark.parametrize(
    ("frame", "code", "reason"),
    [
        (b"\0\1", 1003, "MESSAGE-0000"),
        ("Speak", 1008, "DATA-0000"),
        ("[]", 1008, "DATA-0000"),
        ({"type": "Sing"}, 1008, "DATA-0000"),
        ({"text": "x"}, 1008, "DATA-0000"),
        ({"type": "Speak", "text": 5}, 1008, "DATA-0000"),
    ],
)
def test_what_is_no_message_closes_the_socket(frame: object, code: int, reason: str) -> None:
    client = call()
    client.send(frame)
    assert client.closed is not None
    assert client.closed[0] == code
    assert client.closed[1].startswith(reason)


@pytest.mark.parametrize("text", ["", "x" * 2_001])
def test_a_text_that_cannot_be_spoken_is_a_warning(text: str) -> None:
    client = call()
    (warning,) = client.send({"type": "Speak", "text": text})
    assert warning["type"] == "Warning"
    assert warning["code"] == warning["warn_code"] == "DATA-0001"
    assert warning["description"] == warning["warn_msg"]
    client.send(SPEAK, FLUSH)
    client.speak(24)
    assert types(client.finish()) == ["Flushed"]


def test_too_many_flushes() -> None:
    client = call()
    for _ in range(FLUSHES):
        assert types(client.send(FLUSH)) == ["Flushed"]
    (warning,) = client.send(FLUSH)
    assert warning["code"] == "EXCESSIVE_FLUSH"
    assert types(client.send(FLUSH, at=60.0)) == ["Flushed"]


def test_an_utterance_that_fails_is_a_warning_and_still_flushed() -> None:
    client = call()
    client.send(SPEAK, FLUSH)
    frames = client.finish(reason=Finish.FAILED, code="overloaded", message="too many")
    assert types(frames) == ["Warning", "Flushed"]
    assert frames[0]["code"] == "overloaded"
    assert "too many" in frames[0]["description"]


def test_an_utterance_that_fails_before_its_flush() -> None:
    client = call()
    client.send(SPEAK)
    assert types(client.finish(reason=Finish.FAILED, code="engine_error", message="x")) == [
        "Warning"
    ]
    assert client.send(SPEAK) == [], "the rest of the failed text is dropped"
    assert types(client.send(FLUSH)) == ["Flushed"]
    client.send(SPEAK, FLUSH)
    client.speak(24)
    assert types(client.finish()) == ["Flushed"]


def test_an_utterance_that_is_not_let_in() -> None:
    client = call(queued_utterances=0)
    client.send(SPEAK, FLUSH)
    assert types(client.send(SPEAK)) == ["Warning"]
    client.speak(24)
    assert types(client.finish()) == ["Flushed"]
    assert types(client.send(FLUSH)) == ["Flushed"]


def test_text_beyond_what_may_wait_is_a_warning() -> None:
    client = call(text_waiting=20)
    client.send(SPEAK)
    (warning,) = client.send(SPEAK)
    assert warning["code"] == "text_too_long"


def test_a_length_budget_ends_like_any_text() -> None:
    client = call()
    client.send(SPEAK)
    client.speak(24)
    assert client.finish(reason=Finish.LENGTH_BUDGET) == []
    assert types(client.send(FLUSH)) == ["Flushed"]


def test_the_server_goes_down() -> None:
    client = call()
    client.send(SPEAK)
    client.stop(1012)
    assert types(client.all) == ["Metadata", "Warning"]
    assert client.closed == (1012, "server is shutting down")


def test_audio_of_a_forgotten_turn_is_dropped() -> None:
    assert call().dialect.tell("", stray(), 0.0) == []


def test_a_forgotten_turn_that_fails_is_a_warning_alone() -> None:
    failed = Failed(
        seq=1,
        epoch=99,
        code="engine_error",
        message="it broke",
        expected="",
        heard=0,
        heard_text="",
        unheard_text="",
    )
    (action,) = call().dialect.tell("", failed, 0.0)
    assert isinstance(action, Frame)
    assert json.loads(action.data)["type"] == "Warning"


def test_warnings_of_the_engine_pass() -> None:
    client = call()
    client.send(SPEAK)
    (warning,) = client.warn("unspeakable_text", "three emoji were skipped")
    assert warning["code"] == "unspeakable_text"
    assert warning["description"] == "three emoji were skipped"
