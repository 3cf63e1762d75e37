"""OpenAI's Realtime protocol, /v1/realtime, with literal frames."""

import base64
import json
from typing import Any

import pytest
from dialect_kit import Call, facts, opening, stray, types
from playhead.engine.types import Finish, ListenerState, Source
from playhead.gateway.dialects.base import Refused
from playhead.gateway.dialects.realtime import open_realtime
from playhead.gateway.dialects.realtime_parts import MOST_ITEMS

TEXT = "one two three four"
WORDS = (("one", 0, 0), ("two", 24_000, 4), ("three", 48_000, 8), ("four", 72_000, 14))


def call(query: str = "model=gpt-realtime", **limits: Any) -> Call:
    known = facts(**limits)
    return Call(open_realtime(opening(query), known, "r-1"), known)


def message(text: str = TEXT, **more: Any) -> dict[str, Any]:
    part = {"type": "input_text", "text": text}
    return {"type": "message", "role": "user", "content": [part], **more}


def create(text: str = TEXT, **more: Any) -> dict[str, Any]:
    return {"type": "response.create", "response": {"input": [message(text)], **more}}


def say(given: Any) -> dict[str, Any]:
    return {"type": "response.create", "response": {"input": given}}


def add(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "conversation.item.create", "item": item}


SILENT = {"type": "session.update", "session": {"output_modalities": ["text"]}}
MULAW = {"output": {"format": {"type": "audio/pcmu"}}}


def update(**output: Any) -> dict[str, Any]:
    session = {"type": "realtime", "audio": {"output": output}}
    return {"type": "session.update", "session": session}


def truncate(ms: Any, item: str = "item_000000000001", **more: Any) -> dict[str, Any]:
    return {
        "type": "conversation.item.truncate",
        "item_id": item,
        "content_index": 0,
        "audio_end_ms": ms,
        **more,
    }


def spoken(client: Call) -> Call:
    """Four seconds of four words, one word a second, all of it sent."""
    client.send(create())
    client.speak(96_000, words=WORDS)
    client.finish()
    return client


def error(client: Call, frame: Any) -> dict[str, Any]:
    """The error that a frame is answered with; the socket lives."""
    (answer,) = client.send(frame)
    assert answer["type"] == "error"
    assert client.closed is None
    found = answer["error"]
    assert isinstance(found, dict)
    return found


def test_session_created_comes_first() -> None:
    (created,) = call().all
    assert created["type"] == "session.created"
    assert created["event_id"] == "event_000000000001"
    assert created["session"] == {
        "type": "realtime",
        "object": "realtime.session",
        "id": "sess_r-1",
        "model": "gpt-realtime",
        "output_modalities": ["audio"],
        "audio": {
            "output": {
                "format": {"type": "audio/pcm", "rate": 24_000},
                "voice": "alloy",
                "speed": 1.0,
            }
        },
    }


def test_a_response_from_created_to_done() -> None:
    client = call()
    assert types(client.send(create())) == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
    ]
    assert client.text == TEXT
    frames = client.speak(36_000, words=WORDS[:2])
    assert types(frames) == [
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
    ]
    assert frames[0]["delta"] == "one two"
    assert base64.b64decode(frames[1]["delta"]) == b"\1" * 72_000
    assert frames[1]["response_id"] == "resp_000000000001"
    assert frames[1]["item_id"] == "item_000000000001"
    assert (frames[1]["output_index"], frames[1]["content_index"]) == (0, 0)
    client.speak(60_000, words=WORDS[2:])
    frames = client.finish()
    assert types(frames) == [
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
    ]
    assert frames[1]["transcript"] == TEXT
    response = frames[-1]["response"]
    assert (response["status"], response["status_details"]) == ("completed", None)
    assert response["output"][0]["content"] == [{"type": "output_audio", "transcript": TEXT}]
    ids = [frame["event_id"] for frame in client.all]
    assert len(set(ids)) == len(ids)


def test_the_text_behind_the_last_word_is_in_the_transcript() -> None:
    client = call()
    client.send(create("one two!"))
    client.speak(24_000, words=WORDS[:2])
    (delta, *_) = client.finish()
    assert delta["delta"] == "!"


def test_items_created_before_are_spoken() -> None:
    client = call()
    frames = client.send({"type": "conversation.item.create", "item": message("Hello.")})
    assert types(frames) == ["conversation.item.added", "conversation.item.done"]
    assert frames[0]["item"]["content"] == [{"type": "input_text", "text": "Hello."}]
    assistant = message("Bye.", role="assistant", id="mine")
    (added, _) = client.send({"type": "conversation.item.create", "item": assistant})
    assert added["item"]["id"] == "mine"
    assert added["item"]["content"] == [{"type": "output_text", "text": "Bye."}]
    client.send({"type": "response.create"})
    assert client.text == "Hello. Bye."
    client.finish()
    assert error(client, {"type": "response.create"})["code"] == "missing_field"


def test_instructions_are_spoken_when_there_is_nothing_else() -> None:
    client = call()
    client.send({"type": "response.create", "response": {"instructions": "Say this."}})
    assert client.text == "Say this."


def test_a_truncation_of_what_was_sent_is_a_report_and_a_cancel() -> None:
    client = spoken(call())
    (answer,) = client.send(truncate(1_500), at=1.5)
    assert answer["type"] == "conversation.item.truncated"
    assert (answer["audio_end_ms"], answer["content_index"]) == (1_500, 0)
    assert answer["transcript"] == "one two"
    (report,) = client.reports
    assert report.source is Source.OFFSET
    assert (report.received, report.consumed, report.buffered) == (96_000, 36_000, 60_000)
    assert client.cancelled == [client.number]
    name = {"type": "conversation.item.retrieve", "item_id": "item_000000000001"}
    (item,) = client.send(name)
    assert item["item"]["content"][0]["transcript"] == "one two"


def test_cancel_and_then_truncate() -> None:
    client = call()
    client.send(create())
    client.speak(96_000, words=WORDS)
    frames = client.send({"type": "response.cancel"}, at=1.5)
    done = frames[-1]["response"]
    assert done["status"] == "cancelled"
    assert done["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}
    assert done["output"][0]["status"] == "incomplete"
    assert client.cancelled == [client.number]
    assert client.speak(24) == [], "nothing of it follows"
    (answer,) = client.send(truncate(1_500))
    assert answer["transcript"] == "one two"


def test_truncate_alone_ends_a_response_in_progress() -> None:
    client = call()
    client.send(create())
    client.speak(96_000, words=WORDS)
    frames = client.send(truncate(500), at=0.5)
    assert types(frames)[-2:] == ["response.done", "conversation.item.truncated"]
    assert frames[-2]["response"]["status"] == "cancelled"
    assert client.cancelled == [client.number]
    client.send(create("More."))
    assert client.text.endswith("More.")


def test_cancel_before_the_first_sound() -> None:
    client = call()
    client.send(create())
    old = client.number
    assert client.send({"type": "response.cancel"})[-1]["type"] == "response.done"
    assert client.cancelled == [old]
    client.send(create("New."))
    assert client.speak(24, number=old) == []
    assert types(client.speak(24)) == ["response.output_audio.delta"]
    assert client.send(truncate(0))[0]["transcript"] == ""


def test_an_item_behind_which_another_is_spoken_ends_alone() -> None:
    client = spoken(call())
    client.send(create("More."))
    (answer,) = client.send(truncate(1_500), at=1.5)
    assert answer["transcript"] == "one two"
    (report,) = client.reports
    assert (report.consumed, report.discarded, report.state) == (
        36_000,
        60_000,
        ListenerState.DRAINED,
    )
    assert client.cancelled == []
    assert types(client.speak(24)) == ["response.output_audio.delta"]


def test_a_truncation_is_reported_once() -> None:
    client = spoken(call())
    client.send(truncate(1_500), at=1.5)
    (answer,) = client.send(truncate(500))
    assert answer["transcript"] == "one"
    assert len(client.reports) == 1


@pytest.mark.parametrize("ms", [4_001, -1, "x", None])
def test_a_truncation_beyond_the_audio_is_an_error(ms: object) -> None:
    client = spoken(call())
    assert error(client, truncate(ms))["param"] == "audio_end_ms"
    assert client.cancelled == []
    assert client.reports == []


def test_what_cannot_be_truncated() -> None:
    client = spoken(call())
    client.send({"type": "conversation.item.create", "item": message(id="typed")})
    assert error(client, truncate(0, "nothing"))["code"] == "item_not_found"
    assert error(client, truncate(0, "typed"))["param"] == "item_id"
    assert error(client, truncate(0, content_index=1))["param"] == "content_index"


def test_voice_and_speed_of_the_session_and_of_one_response() -> None:
    client = call()
    (updated,) = client.send(update(voice="tenor", speed=1.2))
    assert updated["session"]["audio"]["output"]["voice"] == "tenor"
    client.send(create())
    assert (client.submitted[0].voice, client.submitted[0].speed) == ("tenor", 1.2)
    client.finish()
    client.send(create(audio={"output": {"voice": "ash"}}))
    client.wait(9.0)
    assert client.submitted[-1].voice == "tenor", "the second of two"
    client.finish()
    client.send(create(audio={"output": {"voice": {"id": "alto"}}}))
    assert client.submitted[-1].voice == "alto"


def test_settings_without_meaning_are_told_back() -> None:
    client = call()
    session = {"type": "realtime", "instructions": "Be kind.", "tools": [], "id": "mine"}
    (updated,) = client.send({"type": "session.update", "session": session})
    assert updated["session"]["instructions"] == "Be kind."
    assert updated["session"]["id"] == "sess_r-1"


def test_the_format_changes_between_responses() -> None:
    client = spoken(call())
    client.send(add(message("typed")))
    (updated,) = client.send(update(format={"type": "audio/pcmu"}))
    assert updated["session"]["audio"]["output"]["format"] == {"type": "audio/pcmu"}
    client.send(create("More."))
    assert [(r.codec, r.sample_rate) for r in client.ready] == [
        ("pcm_s16le", 24_000),
        ("mulaw", 8_000),
    ]
    (answer,) = client.send(truncate(1_500))
    assert answer["transcript"] == "one two"
    assert client.reports == [], "its session is gone"
    refused = error(client, update(format={"type": "audio/pcma"}))
    assert refused["code"] == "invalid_state"
    client.finish()
    (answer,) = client.send(update(format={"type": "audio/pcm", "rate": 24_000}))
    assert answer["type"] == "session.updated"


def test_the_format_before_the_first_response() -> None:
    client = call()
    client.send(update(format={"type": "audio/pcma"}), create())
    assert [r.codec for r in client.ready] == ["alaw"]


@pytest.mark.parametrize(
    ("frame", "code", "param"),
    [
        (b"\0", "bad_message", None),
        ("{", "bad_message", None),
        ({}, "missing_field", "type"),
        ({"type": "input_audio_buffer.append", "audio": "%%%"}, "unknown_type", "type"),
        (update(voice="nobody"), "unknown_voice", "session.audio.output.voice"),
        (update(voice=7), "bad_value", "voice"),
        (update(speed=9), "bad_value", "speed"),
        (update(format={"type": "audio/opus"}), "bad_value", "type"),
        (update(format={"rate": 8_000}), "bad_value", "session.audio.output.format.rate"),
        (
            {"type": "session.update", "session": {"output_modalities": ["text"]}},
            "bad_value",
            "output_modalities",
        ),
        ({"type": "response.create"}, "missing_field", "input"),
        (
            create(audio={"output": {"format": {"type": "audio/pcmu"}}}),
            "bad_value",
            "audio.output.format",
        ),
        ({"type": "response.create", "response": {"input": 5}}, "bad_value", "input"),
        ({"type": "response.create", "response": {"input": [5]}}, "bad_value", "item"),
        (
            {"type": "response.create", "response": {"input": [{"content": 5}]}},
            "bad_value",
            "item.content",
        ),
        (
            {
                "type": "response.create",
                "response": {"input": [{"content": [{"type": "input_audio"}]}]},
            },
            "bad_value",
            "item.content.type",
        ),
        (
            {"type": "response.create", "response": {"input": [{"content": [5]}]}},
            "bad_value",
            "item.content.type",
        ),
        ({"type": "response.cancel"}, "response_cancel_not_active", None),
        ({"type": "conversation.item.delete", "item_id": "x"}, "item_not_found", "item_id"),
        (
            {"type": "conversation.item.create", "item": message(id="x" * 65)},
            "bad_value",
            "item.id",
        ),
    ],
)
def test_what_cannot_be_done_is_an_error_and_the_socket_lives(
    frame: Any, code: str, param: str | None
) -> None:
    client = call()
    if isinstance(frame, dict):
        frame = {**frame, "event_id": "mine"}
    found = error(client, frame)
    assert (found["type"], found["code"], found["param"]) == ("invalid_request_error", code, param)
    assert "expected" in found["message"]
    assert found["event_id"] == ("mine" if isinstance(frame, dict) else None)
    client.send(create())
    assert client.text == TEXT


def test_one_response_at_a_time() -> None:
    client = call()
    client.send(create())
    assert error(client, create())["code"] == "conversation_already_has_active_response"
    wrong = {"type": "response.cancel", "response_id": "resp_9"}
    assert error(client, wrong)["code"] == "response_cancel_not_active"


def test_a_failed_response_leaves_the_session() -> None:
    client = call()
    client.send(create())
    frames = client.finish(reason=Finish.FAILED, code="engine_error", message="broken")
    assert frames[0]["error"]["type"] == "server_error"
    done = frames[-1]["response"]
    assert done["status"] == "failed"
    assert done["status_details"]["error"]["code"] == "engine_error"
    client.send(create("More."))
    assert client.text.endswith("More.")


def test_text_over_the_limit_is_a_failed_response() -> None:
    client = call(text_waiting=10)
    frames = client.send(create())
    assert frames[-1]["response"]["status"] == "failed"
    assert "text_too_long" in json.dumps(frames)


def test_items_are_deleted_and_bounded() -> None:
    client = call()
    client.send({"type": "conversation.item.create", "item": message("Gone.", id="a")})
    (deleted,) = client.send({"type": "conversation.item.delete", "item_id": "a"})
    assert (deleted["type"], deleted["item_id"]) == ("conversation.item.deleted", "a")
    for number in range(MOST_ITEMS + 1):
        item = message(f"{number}.", id=str(number))
        client.send({"type": "conversation.item.create", "item": item})
    assert error(client, {"type": "conversation.item.retrieve", "item_id": "0"})
    again = {"type": "conversation.item.create", "item": message(id="5")}
    assert error(client, again)["param"] == "item.id"
    client.send({"type": "response.create"})
    assert client.text.startswith("1. 2. ")


def test_what_a_session_says_of_nothing_is_dropped() -> None:
    client = call()
    assert client.dialect.tell("1", stray(), 0.0) == []
    client.send(create())
    assert client.dialect.tell("1", stray(), 0.0) == []
    assert client.dialect.tell("other", stray(1), 0.0) == []


def test_models() -> None:
    assert call("model=fake-1").all[0]["session"]["model"] == "fake-1"
    assert call("").all[0]["session"]["model"] == "fake-1"
    assert call("").dialect.subprotocol == "realtime"
    with pytest.raises(Refused) as caught:
        call("model=whisper-1")
    assert caught.value.status == 404
    assert json.loads(caught.value.body)["error"]["code"] == "model_not_found"


def test_what_is_told_back_is_short() -> None:
    client = call()
    for given in (
        add(message(role="u" * 129)),
        {**add(message()), "previous_item_id": ["x"] * 99},
    ):
        (told,) = client.send(given)
        assert told["error"]["code"] == "bad_value"
    (told,) = client.send({"type": "nothing", "event_id": "e" * 65})
    assert told["error"]["event_id"] is None
    assert len(client.send({**add(message()), "previous_item_id": "item_1"})) == 2
