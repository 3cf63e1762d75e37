"""Cartesia, /tts/websocket, with literal frames."""

import base64
from typing import Any

import pytest
from dialect_kit import Call, facts, opening, types
from playhead.engine.types import Finish
from playhead.gateway.dialects.cartesia import MOST_CONTEXTS, REMEMBERED, open_cartesia

UUID = "a0e99841-438c-4a64-b679-ae501e7d6091"
RAW = {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000}


def ask(transcript: str = "Hello there.", context: str = "c1", **fields: Any) -> dict[str, Any]:
    return {
        "model_id": "sonic-3",
        "transcript": transcript,
        "voice": {"mode": "id", "id": UUID},
        "output_format": RAW,
        "context_id": context,
        **fields,
    }


def call(**limits: float) -> Call:
    known = facts(**limits)
    return Call(open_cartesia(opening("cartesia_version=2025-04-16"), known, "r-1"), known)


def error(frame: dict[str, Any]) -> tuple[int, str, str]:
    assert (frame["type"], frame["done"]) == ("error", True)
    assert frame["request_id"] == "r-1"
    assert frame["error"] == frame["message"]
    return frame["status_code"], frame["error_code"], frame["context_id"]


def test_a_request_is_spoken_and_done() -> None:
    client = call()
    assert client.send(ask()) == []
    assert client.text == "Hello there."
    assert client.pushed[-1].end
    assert client.speak(240) == [
        {
            "type": "chunk",
            "status_code": 206,
            "done": False,
            "context_id": "c1",
            "data": base64.b64encode(b"\1" * 480).decode(),
            "step_time": 0.0,
            "flush_id": 1,
        }
    ]
    assert client.finish() == [
        {"type": "done", "status_code": 200, "done": True, "context_id": "c1"}
    ]
    assert not client.sessions, "the context's session has ended"


def test_pieces_of_a_context_become_one_text() -> None:
    client = call()
    client.send(ask("Hello ", **{"continue": True}), ask("there", **{"continue": True}))
    assert client.speak(240), "speech starts before the text is complete"
    client.send(ask("."), at=0.1)
    assert client.text == "Hello there."
    assert len(client.submitted) == 1
    assert types(client.finish()) == ["done"]


def test_an_empty_end_completes_what_came_before() -> None:
    client = call()
    client.send(ask("Hello.", **{"continue": True}))
    client.send(ask("", voice={"mode": "id", "id": UUID.replace("a", "b")}))
    assert client.pushed[-1].end
    assert types(client.finish()) == ["done"]


def test_nothing_to_say_is_done_at_once() -> None:
    client = call()
    assert types(client.send(ask(""))) == ["done"]
    assert not client.submitted


def test_contexts_speak_side_by_side() -> None:
    client = call()
    client.send(ask("One.", "a"), ask("Two.", "b"))
    first, second = (request.utterance for request in client.submitted)
    assert client.speak(24, number=second)[0]["context_id"] == "b"
    assert client.speak(24, number=first)[0]["context_id"] == "a"
    assert client.finish(first)[-1]["context_id"] == "a"
    assert client.finish(second)[-1]["context_id"] == "b"


def test_a_name_is_free_again_when_its_context_is_done() -> None:
    client = call()
    client.send(ask())
    client.finish()
    client.send(ask("Again."))
    assert client.speak(24)[0]["context_id"] == "c1"


def test_flush_ends_a_stretch_and_times_go_on() -> None:
    client = call()
    client.send(ask("One.", add_timestamps=True, flush=True, **{"continue": True}))
    client.speak(2_400, words=[("One.", 0, 0)])
    assert client.finish() == [
        {
            "type": "flush_done",
            "status_code": 206,
            "done": False,
            "context_id": "c1",
            "flush_done": True,
            "flush_id": 1,
        }
    ]
    client.send(ask("Two."))
    client.wait(10.0)
    chunk, times = client.speak(2_400, words=[("Two.", 240, 0)])
    assert chunk["flush_id"] == 2
    assert times["word_timestamps"] == {"words": ["Two."], "start": [0.11], "end": [0.2]}
    assert types(client.finish()) == ["done"]


def test_flush_without_text_is_answered() -> None:
    client = call()
    flushed = client.send(ask("", flush=True, **{"continue": True}))
    assert types(flushed) == ["flush_done"]
    assert types(client.send(ask(""))) == ["done"]


def test_word_times_are_monotone_and_verbatim() -> None:
    client = call()
    client.send(ask("Well, hello there!", add_timestamps=True))
    _, first = client.speak(2_400, words=[("Well,", 0, 0), ("hello", 1_200, 6)])
    _, second = client.speak(2_400, words=[("there!", 2_640, 12)])
    assert (first["type"], first["status_code"], first["done"]) == ("timestamps", 206, False)
    assert first["word_timestamps"] == {
        "words": ["Well,", "hello"],
        "start": [0.0, 0.05],
        "end": [0.05, 0.1],
    }
    assert second["word_timestamps"] == {"words": ["there!"], "start": [0.11], "end": [0.2]}


def test_times_are_told_only_when_asked_for() -> None:
    client = call()
    client.send(ask())
    assert types(client.speak(240, words=[("Hello", 0, 0)])) == ["chunk"]


def test_cancel_frees_the_engine_and_nothing_follows() -> None:
    client = call()
    client.send(ask(), ask("Other.", "c2"))
    number = client.submitted[0].utterance
    client.speak(240, number=number)
    assert types(client.send({"context_id": "c1", "cancel": True})) == ["done"]
    assert client.cancelled == [number]
    assert client.speak(240, number=number) == []
    assert client.speak(240)[0]["context_id"] == "c2", "the other goes on"


def test_to_cancel_what_has_just_ended_is_no_fault() -> None:
    client = call()
    client.send(ask())
    client.finish()
    assert client.send({"context_id": "c1", "cancel": True}) == []


def test_a_context_that_never_was_cannot_be_cancelled() -> None:
    client = call()
    (told,) = client.send({"context_id": "nobody", "cancel": True})
    assert error(told) == (404, "unknown_context", "nobody")
    assert client.closed is None


def test_text_after_the_end_is_refused_and_ends_the_context() -> None:
    client = call()
    client.send(ask())
    (told,) = client.send(ask("More."))
    assert error(told) == (400, "context_closed", "c1")
    assert client.cancelled


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"model_id": "parrot-1"}, 404, "unknown_model"),
        ({"voice": {"mode": "id", "id": "zeus"}}, 404, "unknown_voice"),
        ({"language": "tlh"}, 400, "unknown_language"),
        ({"output_format": {**RAW, "sample_rate": 12_345}}, 400, "unsupported_rate"),
        ({"context_id": None}, 400, "missing_field"),
    ],
)
def test_bad_requests_are_errors_and_the_socket_lives(
    fields: dict[str, Any], status: int, code: str
) -> None:
    client = call()
    (told,) = client.send(ask(**fields))
    assert error(told)[:2] == (status, code)
    assert "expected" in told["message"]
    assert not client.submitted
    assert client.send(ask()) == []
    assert client.speak(24), "the next request is served"


@pytest.mark.parametrize("frame", ["{", "[]", b"\0", '"cancel"'])
def test_what_is_no_request_is_an_error_without_a_context(frame: bytes | str) -> None:
    client = call()
    (told,) = client.send(frame)
    assert error(told) == (400, "bad_message", "")
    assert client.closed is None


def test_another_format_in_the_same_context_is_refused() -> None:
    client = call()
    client.send(ask("One ", **{"continue": True}))
    (told,) = client.send(ask("two", output_format={**RAW, "sample_rate": 16_000}))
    assert error(told) == (400, "bad_value", "c1")


def test_a_fault_of_the_voice_ends_its_context_alone() -> None:
    client = call()
    client.send(ask(), ask("Other.", "c2"))
    first = client.submitted[0].utterance
    (told,) = client.finish(first, Finish.FAILED, code="engine_error", message="broken")
    assert error(told) == (500, "engine_error", "c1")
    assert client.speak(24)[0]["context_id"] == "c2"


def test_a_text_over_the_limit_ends_its_context() -> None:
    client = call(text_waiting=10)
    (told,) = client.send(ask("x" * 11))
    assert error(told) == (400, "text_too_long", "c1")
    assert types(client.send(ask("short"))) == []


def test_too_many_contexts_are_refused_one_by_one() -> None:
    client = call(open_burst=100.0)
    for number in range(MOST_CONTEXTS):
        assert client.send(ask("Hi.", f"n{number}")) == []
    for _ in range(5):
        (told,) = client.send(ask("Hi.", "more"))
        assert error(told) == (429, "rate_limited", "more")
    client.finish(client.submitted[0].utterance)
    assert client.send(ask("Hi.", "more")) == []


def test_contexts_may_not_be_opened_in_a_storm() -> None:
    client = call(open_rate=1.0, open_burst=2.0)
    told = client.send(*(ask("", f"n{number}") for number in range(3)))
    assert types(told) == ["done", "done", "error"]
    assert error(told[-1])[:2] == (429, "rate_limited")
    assert types(client.send(ask("", "later"), at=1.5)) == ["done"]


def test_only_so_many_ended_names_are_remembered() -> None:
    client = call(open_burst=1_000.0)
    client.send(*(ask("", f"n{number}") for number in range(REMEMBERED + 1)))
    (told,) = client.send({"context_id": "n0", "cancel": True})
    assert error(told)[1] == "unknown_context"
    assert client.send({"context_id": "n1", "cancel": True}) == []


def test_going_down_is_told_to_every_context_then_closed() -> None:
    client = call()
    client.send(ask("One.", **{"continue": True}))
    client.stop()
    assert types(client.all[-1:]) == ["error"]
    assert client.closed is not None
    assert client.closed[0] == 1001


def test_a_context_without_text_is_told_too() -> None:
    client = call()
    client.send(ask("", **{"continue": True}))
    client.stop(1012)
    assert error(client.all[-1]) == (503, "session_ended", "c1")
    assert client.closed == (1012, "server is shutting down")


def test_what_a_session_says_of_no_context_is_not_told() -> None:
    client = call()
    client.send(ask())
    started = client.sessions["c1"]
    client.send({"context_id": "c1", "cancel": True})
    assert client.dialect.ended("c1", 1000, "", 0.0) == ()
    assert client.dialect.tell("c1", client.ready[0], 0.0) == []
    assert started.ended


@pytest.mark.parametrize("name", ["c" * 129, "c\n1", 7])
@pytest.mark.parametrize("more", [{}, {"cancel": True}])
def test_a_name_that_would_be_said_again_and_again_is_short(
    name: Any, more: dict[str, Any]
) -> None:
    client = call()
    (told,) = client.send({**ask(), "context_id": name, **more})
    assert error(told) == (400, "bad_value", "")
    assert len(str(told)) < 1_000
    assert not client.submitted
    assert client.send(ask(context="c" * 128)) == []
