"""ElevenLabs, stream-input and multi-stream-input, with literal frames."""

import base64
from typing import Any

import pytest
from dialect_kit import Call, facts, opening
from playhead.engine.types import Finish
from playhead.gateway.dialects.elevenlabs import (
    MOST_CONTEXTS,
    MOST_SPEAKING,
    open_multi_stream_input,
    open_stream_input,
)

VOICE = "voice_id=21m00Tcm4TlvDq8ikWAM"
PCM = f"{VOICE}&model_id=eleven_flash_v2_5&output_format=pcm_24000"
BEGIN = {"text": " ", "voice_settings": {"speed": 1.2}}


def single(query: str = PCM, **limits: float) -> Call:
    known = facts(**limits)
    return Call(open_stream_input(opening(query), known, "r-1"), known)


def multi(query: str = PCM, **limits: float) -> Call:
    known = facts(**{"open_burst": 100.0, **limits})
    return Call(open_multi_stream_input(opening(query), known, "r-1"), known)


def text(text: str, context: str = "c1", **fields: Any) -> dict[str, Any]:
    return {"text": text, "context_id": context, **fields}


def fault(client: Call) -> tuple[str, int]:
    """The last message, which is a fault, and the close code."""
    assert client.closed is not None
    last = client.all[-1]
    assert set(last) == {"message", "error", "code"}
    assert last["code"] == client.closed[0]
    assert "expected" in last["message"]
    assert len(client.closed[1].encode()) <= 123
    return last["error"], client.closed[0]


# ------------------------------------------------------------ stream-input


def test_a_text_is_spoken_then_final_then_closed_with_1000() -> None:
    client = single()
    assert client.send(BEGIN) == []
    client.send({"text": "Hello ", "try_trigger_generation": True}, {"text": "there. "})
    assert client.submitted[0].speed == 1.2
    assert client.speak(240) == [
        {
            "audio": base64.b64encode(b"\1" * 480).decode(),
            "isFinal": None,
            "normalizedAlignment": None,
            "alignment": None,
        }
    ]
    assert client.send({"text": ""}) == []
    assert client.text == "Hello there. "
    assert client.pushed[-1].end
    *_, last = client.finish()
    assert last == {"audio": None, "isFinal": True}
    assert client.closed == (1000, "")


def test_characters_are_timed_from_the_end_of_what_was_told_before() -> None:
    client = single()
    client.send({"text": "Well, hi there! "})
    (first,) = client.speak(4_800, words=[("Well,", 0, 0), ("hi", 2_400, 6)])
    assert first["alignment"] == first["normalizedAlignment"]
    assert "".join(first["alignment"]["chars"]) == "Well, hi"
    (second,) = client.speak(4_800, words=[("there!", 6_000, 9)])
    assert "".join(second["alignment"]["chars"]) == " there!"
    assert second["alignment"]["charStartTimesMs"][:2] == [0, 50]
    client.send({"text": ""})
    last, final = client.finish()
    assert (last["audio"], last["alignment"]["chars"]) == ("", [" "])
    assert final["isFinal"]


def test_flush_speaks_what_is_there() -> None:
    client = single()
    client.send({"text": "Hello", "flush": True})
    assert client.pushed[-1].flush
    client.send({"text": "", "flush": True})
    assert client.closed is None
    client.send({"text": " more", "trigger_generation": True}, {"text": ""})
    assert client.pushed[-1].end


def test_the_end_without_text_closes_at_once() -> None:
    client = single()
    assert client.send({"text": ""}) == [{"audio": None, "isFinal": True}]
    assert client.closed == (1000, "")
    opened = single()
    assert opened.send(BEGIN, {"text": ""}) == [{"audio": None, "isFinal": True}]
    assert opened.closed == (1000, "")


def test_a_second_end_is_no_fault() -> None:
    client = single()
    client.send({"text": "Hello."}, {"text": ""}, {"text": ""})
    assert client.closed is None
    assert client.finish()[-1]["isFinal"]


def test_text_after_the_end_is_refused() -> None:
    client = single()
    client.send({"text": "Hello."}, {"text": ""}, {"text": "More."})
    assert fault(client) == ("invalid_input_message", 1008)
    client.wait(0.01)
    assert client.cancelled


# ------------------------------------------------------------ multi-stream-input


def test_contexts_speak_side_by_side_and_end_one_by_one() -> None:
    client = multi()
    client.send(text(" ", "a"), text("One. ", "a"), text("Two. ", "b"))
    first, second = (request.utterance for request in client.submitted)
    assert client.speak(24, number=second)[0]["contextId"] == "b"
    client.send({"context_id": "a", "flush": True}, {"context_id": "a", "close_context": True})
    assert client.speak(24, number=first)[0]["contextId"] == "a"
    assert client.finish(first)[-1] == {"audio": None, "isFinal": True, "contextId": "a"}
    assert client.closed is None
    assert client.speak(24, number=second)


def test_to_close_a_flushed_context_lets_it_speak() -> None:
    client = multi()
    client.send(text("Hello. "), text("", flush=True), {"context_id": "c1", "close_context": True})
    assert client.pushed[-1].end
    assert client.speak(240)
    assert client.finish()[-1]["isFinal"]
    assert not client.cancelled or client.all[-1]["isFinal"]


def test_to_close_a_context_in_its_text_stops_it() -> None:
    client = multi()
    client.send(text("Hello. "))
    number = client.number
    client.speak(240)
    assert client.send({"context_id": "c1", "close_context": True}) == [
        {"audio": None, "isFinal": True, "contextId": "c1"}
    ]
    assert client.cancelled == [number]
    assert client.speak(240, number=number) == []


def test_to_close_it_a_second_time_stops_it_too() -> None:
    client = multi()
    close = {"context_id": "c1", "close_context": True}
    client.send(text("Hello. ", flush=True), close)
    client.speak(240)
    assert client.send(close)[-1]["isFinal"]
    assert client.cancelled


def test_closing_what_is_not_there_is_no_fault() -> None:
    client = multi()
    assert client.send({"context_id": "nobody", "close_context": True}) == []
    client.send(text(" "))
    assert client.send({"context_id": "c1", "close_context": True})[-1]["isFinal"]


def test_an_empty_text_keeps_alive_and_opens_nothing() -> None:
    client = multi()
    assert client.send({"text": ""}, text("", "x")) == []
    assert not client.sessions


def test_text_for_a_closed_context_is_refused_until_it_has_ended() -> None:
    client = multi()
    client.send(text("Hello. ", flush=True), {"context_id": "c1", "close_context": True})
    client.finish()
    client.send(text("Again. ", flush=True), {"context_id": "c1", "close_context": True})
    assert client.send(text("")) == []
    client.send(text("More."))
    assert fault(client) == ("invalid_input_message", 1008)


def test_six_contexts_are_too_many_and_closing_one_makes_room_at_once() -> None:
    client = multi()
    client.send(*(text("Hi. ", f"n{number}") for number in range(MOST_CONTEXTS)))
    client.send({"context_id": "n0", "close_context": True}, text("Hi. ", "new"))
    assert client.closed is None
    client.send(text("Hi. ", "one more"))
    assert fault(client) == ("max_active_conversations", 1008)


def test_closed_ones_that_still_speak_are_bounded_too() -> None:
    client = multi()
    for number in range(MOST_SPEAKING):
        name = f"n{number}"
        client.send(text("Hi. ", name, flush=True), {"context_id": name, "close_context": True})
    assert client.closed is None
    client.send(text("Hi. ", "more"))
    assert fault(client) == ("max_active_conversations", 1008)


def test_contexts_may_not_be_opened_in_a_storm() -> None:
    client = multi(open_rate=1.0, open_burst=1.0)
    client.send(text("Hi. ", "a"), text("Hi. ", "b"))
    assert fault(client) == ("too_many_concurrent_requests", 1008)


def test_close_socket_lets_everything_be_spoken() -> None:
    client = multi()
    client.send(text("One. ", "a"), text("Two. ", "b"), {"close_socket": True})
    client.finish(client.submitted[0].utterance)
    assert client.closed is None
    client.finish(client.submitted[1].utterance)
    assert client.closed == (1000, "")


@pytest.mark.parametrize("begun", [False, True])
def test_close_socket_with_nothing_to_speak_closes(begun: bool) -> None:
    client = multi()
    if begun:
        client.send(text(" "))
    client.send({"close_socket": True})
    assert client.closed == (1000, "")


def test_mp3_is_made_of_the_same_samples() -> None:
    client = multi(VOICE)
    client.send(text("Hello. ", flush=True), {"context_id": "c1", "close_context": True})
    assert (client.ready[0].codec, client.ready[0].sample_rate) == ("pcm_s16le", 44_100)
    assert client.speak(100) == [], "no whole frame yet"
    client.speak(24_000)
    client.finish()
    data = b"".join(base64.b64decode(m["audio"]) for m in client.all if m["audio"])
    assert data[:1] == b"\xff"


# ------------------------------------------------------------ faults and time


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("voice_id=zeus", "voice_id_does_not_exist"),
        (f"{VOICE}&model_id=parrot", "model_not_found"),
        (f"{VOICE}&output_format=opus_48000_32", "output_format_not_allowed"),
        (f"{VOICE}&language_code=tlh", "unsupported_language"),
        (f"{VOICE}&inactivity_timeout=999", "invalid_input_message"),
    ],
)
def test_a_bad_url_is_told_when_the_socket_opens(query: str, error: str) -> None:
    for client in (single(query), multi(query)):
        assert fault(client) == (error, 1008)


@pytest.mark.parametrize(
    "frame",
    [
        "{",
        b"\0",
        {"text": 5},
        {"voice_settings": {}},
        {"text": "x", "flush": "yes"},
        {"text": "x", "voice_settings": {"speed": 9}},
        {"text": "x", "voice_settings": "fast"},
    ],
)
def test_a_bad_frame_closes_with_1008(frame: Any) -> None:
    client = single()
    client.send(frame)
    assert fault(client) == ("invalid_input_message", 1008)


def test_a_fault_of_the_voice_is_told() -> None:
    client = multi()
    client.send(text("Hello. "))
    client.finish(reason=Finish.FAILED, code="engine_error", message="broken")
    assert fault(client) == ("engine_error", 1008)


def test_a_text_over_the_limit_is_told() -> None:
    client = multi(text_waiting=10)
    client.send(text("x" * 11))
    assert fault(client) == ("max_character_limit_exceeded", 1008)


def test_silence_is_not_waited_for_longer_than_asked() -> None:
    client = multi(f"{PCM}&inactivity_timeout=30")
    client.send(text("Hello. "), at=10.0)
    client.wait(39.9)
    assert client.closed is None
    assert client.dialect.handle_timer(39.9) == ()
    client.wait(40.0)
    assert fault(client) == ("input_timeout_exceeded", 1008)


def test_what_is_still_spoken_is_waited_for() -> None:
    client = single()
    client.send({"text": "Hello."}, {"text": ""})
    assert client.dialect.get_timer() is None
    assert client.dialect.handle_timer(100.0) == ()


def test_what_a_session_says_of_no_context_is_not_told() -> None:
    client = multi()
    client.send(text("Hello. "))
    client.send({"context_id": "c1", "close_context": True})
    assert client.dialect.tell("c1", client.ready[0], 0.0) == []


def test_going_down_closes_the_socket() -> None:
    client = multi()
    client.send(text(" "))
    client.stop()
    assert client.closed == (1001, "server is shutting down")


@pytest.mark.parametrize("name", ["c" * 129, "c\n1", 7])
def test_a_name_that_would_be_said_again_and_again_is_short(name: Any) -> None:
    client = multi()
    client.send({"text": "Hello there. ", "context_id": name})
    assert fault(client) == ("invalid_input_message", 1008)
    assert not client.submitted
