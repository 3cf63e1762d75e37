"""Twilio Media Streams, /v1/twilio, with literal frames."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from dialect_kit import Call, facts, opening, stray
from playhead.engine.types import Finish, ListenerState, Source
from playhead.gateway.access_offer import Offer
from playhead.gateway.dialects.base import Action, Frame
from playhead.gateway.dialects.twilio import MARK_EVERY, open_twilio
from playhead.gateway.messages import Done, ErrorEvent

SID = "MZ18ad3ab5a668481ce02b83e7395059f0"
TEXT = "one two three four"
WORDS = (("one", 0, 0), ("two", 1_200, 4), ("three", 2_400, 8), ("four", 3_600, 14))
"""Positions at 24 kHz: a word every 400 samples of the call."""


def call(**limits: Any) -> Call:
    known = facts(**limits)
    return Call(open_twilio(opening(), known, "r-1"), known)


def start(**custom: str) -> dict[str, Any]:
    return {
        "event": "start",
        "sequenceNumber": "1",
        "streamSid": SID,
        "start": {
            "streamSid": SID,
            "callSid": "CA1",
            "tracks": ["inbound"],
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
            "customParameters": custom,
        },
    }


def started(**custom: str) -> Call:
    client = call()
    connected = {"event": "connected", "protocol": "Call", "version": "1.0.0"}
    assert client.send(connected, start(**custom)) == []
    return client


def agent(text: str = TEXT, *, end: bool = True) -> Call:
    """A call for which software says what is to be spoken."""
    client = started()
    client.send({"event": "speak", "text": text, "end": end})
    return client


def mark(name: str) -> dict[str, Any]:
    return {"event": "mark", "streamSid": SID, "sequenceNumber": "9", "mark": {"name": name}}


def told(action: Action) -> Any:
    assert isinstance(action, Frame)
    return json.loads(action.data)


def names(frames: list[Any]) -> list[str]:
    return [frame["mark"]["name"] for frame in frames if frame["event"] == "mark"]


def sound(frames: list[Any]) -> bytes:
    media = [frame["media"]["payload"] for frame in frames if frame["event"] == "media"]
    return b"".join(map(base64.b64decode, media))


def test_the_text_of_the_call_is_spoken_in_its_format() -> None:
    client = started(text="Hello.", voice="tenor", speed="1.25")
    assert client.text == "Hello."
    (request,) = client.submitted
    assert (request.voice, request.speed, request.reports) == ("tenor", 1.25, True)
    assert (client.ready[0].codec, client.ready[0].sample_rate) == ("mulaw", 8_000)


def test_sound_comes_in_pieces_with_a_mark_behind_each() -> None:
    client = agent()
    frames = client.speak(4_000)
    assert {frame["streamSid"] for frame in frames} == {SID}
    assert [frame["event"] for frame in frames] == ["media", "mark"] * 3
    assert sound(frames) == b"\1" * 4_000
    assert names(frames) == [f"1:{MARK_EVERY}", f"1:{2 * MARK_EVERY}", "1:4000"]
    assert names(client.finish()) == ["1:4000"]


def test_a_mark_is_a_report() -> None:
    client = agent()
    client.speak(2_000)
    client.send(mark(f"1:{MARK_EVERY}"), at=0.3)
    (report,) = client.reports
    assert report.source is Source.MARK
    # What the engine counts: its own 24 kHz.
    assert (report.consumed, report.received) == (3 * MARK_EVERY, 3 * 2_000)
    assert report.client_time == MARK_EVERY / 8_000


def test_the_last_mark_is_the_end_and_closes_a_call_that_came_with_its_text() -> None:
    client = started(text="Hello.")
    client.speak(800)
    client.send(mark("1:400"))
    assert client.closed is None, "more may come"
    (name,) = names(client.finish())
    client.send(mark(name))
    assert client.reports[-1].state is ListenerState.DRAINED
    assert client.closed == (1000, "")


def test_marks_after_a_clear_are_sound_thrown_away() -> None:
    client = agent()
    client.speak(2_000)
    client.send(mark(f"1:{MARK_EVERY}"), at=0.2)
    frames = client.send({"event": "clear"}, at=0.2)
    assert frames[0] == {"event": "clear", "streamSid": SID}
    client.send(mark(f"1:{2 * MARK_EVERY}"), mark("1:2000"))
    assert len(client.reports) == 1, "those were not heard"
    assert client.cancelled == [client.number]


def test_a_clear_tells_what_was_heard() -> None:
    client = agent()
    client.speak(1_600, words=WORDS)
    client.send(mark("1:1600"), at=0.2)
    frames = client.send({"event": "clear"}, at=0.2)
    assert frames[1]["event"] == "cleared"
    assert frames[1]["cleared"] == {
        "heardMs": 200,
        "heardText": TEXT,
        "unheardText": "",
        "estimated": False,
    }


def test_between_marks_the_call_plays_on() -> None:
    client = agent()
    client.speak(1_600, words=WORDS)
    client.send(mark("1:400"), at=0.05)
    frames = client.send({"event": "clear"}, at=0.075)
    assert frames[1]["cleared"]["heardText"] == "one two"


def test_what_is_said_after_a_clear_has_marks_of_its_own() -> None:
    client = agent()
    old = client.number
    client.speak(800)
    client.send({"event": "clear"})
    client.send({"event": "speak", "text": "New.", "end": True})
    assert client.speak(800, number=old) == []
    assert names(client.speak(800)) == ["2:800"]
    client.send(mark("2:800"))
    assert [report.utterance for report in client.reports] == [client.number]


def test_pieces_of_text_are_one_utterance() -> None:
    client = agent("Hello ", end=False)
    client.send({"event": "speak", "text": "there."}, {"event": "speak", "end": True})
    assert client.text == "Hello there."
    assert len(client.submitted) == 1
    client.send({"event": "speak", "end": True})
    assert len(client.submitted) == 1, "nothing to say opens nothing"


def test_the_next_is_made_while_the_last_plays() -> None:
    client = agent()
    client.speak(800)
    client.finish()
    client.send({"event": "speak", "text": "More.", "end": True})
    client.speak(800)
    client.send(mark("1:800"), mark("2:800"))
    assert len({report.utterance for report in client.reports}) == 2


@pytest.mark.parametrize(("interrupt", "cleared"), [("dtmf", True), ("no", False)])
def test_a_key_interrupts_where_that_is_wanted(interrupt: str, cleared: bool) -> None:
    client = started(text=TEXT, interrupt=interrupt)
    client.speak(800)
    frames = client.send({"event": "dtmf", "streamSid": SID, "dtmf": {"digit": "1"}})
    assert [frame["event"] for frame in frames] == (["clear"] if cleared else [])
    assert client.closed == ((1000, "") if cleared else None)
    client.wait(0.01)
    assert client.cancelled == ([client.number] if cleared else [])


def test_the_end_of_the_call_ends_the_speech() -> None:
    client = agent()
    client.send({"event": "stop", "streamSid": SID, "stop": {"callSid": "CA1"}})
    assert client.closed == (1000, "")
    client.wait(0.01)
    assert client.cancelled == [client.number]


@pytest.mark.parametrize(
    "frame",
    [
        {"event": "media", "media": {"track": "inbound", "payload": "%% no base64 %%"}},
        {"event": "something-new"},
        mark("of-somebody-else"),
        mark("7:100"),
        mark("1:x"),
        mark("1:999999"),
    ],
)
def test_what_means_nothing_here_is_passed_over(frame: Any) -> None:
    client = agent()
    client.speak(800)
    assert client.send(frame) == []
    assert client.closed is None


@pytest.mark.parametrize(
    "frame",
    [
        "{",
        {"x": 1},
        {"event": 5},
        {"event": "start", "start": 5},
        start(voice="nobody", text="x"),
        start(speed="9", text="x"),
    ],
)
def test_twilio_is_told_of_faults_by_the_close_alone(frame: Any) -> None:
    client = call()
    assert client.send(frame) == []
    assert client.closed is not None
    assert client.closed[0] == 1008
    assert "expected" in client.closed[1]


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("{", "bad_message"),
        ({"event": "speak", "text": 5}, "bad_value"),
        ({"event": "speak", "text": "x", "end": "yes"}, "bad_value"),
        ({"event": "mark", "mark": {}}, "missing_field"),
    ],
)
def test_who_speaks_is_told_of_faults_and_the_socket_lives(frame: Any, code: str) -> None:
    client = agent()
    (answer,) = client.send(frame)
    assert (answer["event"], answer["error"]["code"]) == ("error", code)
    assert answer["error"]["expected"]
    assert client.closed is None


def test_speech_before_the_start() -> None:
    client = call()
    (answer,) = client.send({"event": "speak", "text": "x"})
    assert answer["error"]["code"] == "invalid_state"


def test_a_failure_ends_a_call_that_came_with_its_text() -> None:
    client = started(text="Hello.")
    client.finish(reason=Finish.FAILED, code="overloaded", message="too many")
    assert client.closed == (1008, "overloaded: too many")


@pytest.mark.parametrize("end", [True, False])
def test_a_failure_is_told_to_who_speaks(end: bool) -> None:
    client = agent(end=end)
    (answer,) = client.finish(reason=Finish.FAILED, code="engine_error", message="broken")
    assert answer["error"]["code"] == "engine_error"
    if not end:
        client.send({"event": "speak", "text": "the rest", "end": True})
    client.send({"event": "speak", "text": "More.", "end": True})
    assert client.text.endswith("More.")
    assert names(client.speak(800)) == ["2:800"]


def test_an_utterance_that_is_not_let_in() -> None:
    client = call(queued_utterances=0)
    client.send(start(), {"event": "speak", "text": "a", "end": True})
    (answer,) = client.send({"event": "speak", "text": "b", "end": True})
    assert answer["error"]["code"] == "overloaded"
    client.speak(800)
    client.finish()
    client.send(mark("1:800"))
    client.send({"event": "speak", "text": "c", "end": True})
    assert client.text == "ac"


def test_a_failure_of_what_was_cleared_is_told_once() -> None:
    client = agent()
    client.send({"event": "clear"})
    assert client.dialect.tell("", stray(), 0.0) == []
    assert client.finish(reason=Finish.FAILED, code="engine_error", message="x") == []


def test_a_final_piece_with_sound_needs_no_mark_of_its_own() -> None:
    client = agent()
    last = replace(stray(1), data=b"\1" * 80, samples=80, final=True)
    frames = [told(action) for action in client.dialect.tell("", last, 0.0)]
    assert [frame["event"] for frame in frames] == ["media", "mark"]


def test_an_error_of_no_turn_is_told() -> None:
    client = agent("x" * 9, end=False)
    limits = ErrorEvent(code="rate_limited", message="too many", expected="fewer")
    (action,) = client.dialect.tell("", limits, 0.0)
    assert told(action)["error"]["code"] == "rate_limited"


def test_a_call_whose_last_mark_never_comes_back_is_over_all_the_same() -> None:
    client = started(text="Hello.")
    client.speak(800)
    client.finish()
    client.send(mark("1:400"), at=0.05)
    client.wait(0.5)
    assert client.closed is None
    client.wait(0.7)  # by its marks it was played at 0.1 s, and half a second more
    assert client.closed == (1000, "")


def test_the_next_is_spoken_though_no_mark_of_the_last_came_back() -> None:
    client = agent()
    client.speak(800)
    client.finish()
    client.wait(1.0)
    assert client.send(mark("1:800")) == [], "too late to mean anything"
    client.send({"event": "speak", "text": "More.", "end": True}, at=1.0)
    assert names(client.speak(800)) == ["2:800"]


def test_an_end_of_nothing_we_know_is_passed_over() -> None:
    over = Done(seq=1, epoch=99, samples=0, heard=0, estimated=False, reason="complete")
    assert agent().dialect.tell("", over, 0.0) == []


def test_a_ticket_is_shown_before_anything_is_said() -> None:
    client = started(text=TEXT, ticket="pht_t")
    assert client.shown == [Offer(ticket="pht_t")]
    assert client.text == TEXT
    assert started(text=TEXT).shown == []


def test_a_key_in_the_markup_is_refused() -> None:
    client = call()
    assert client.send(start(text=TEXT, ticket="ph_abcdefgh_secret")) == []
    assert client.closed is not None
    assert client.closed[0] == 1008
    assert "secret" not in client.closed[1]
    assert "ticket" in client.closed[1]


def test_the_name_of_a_stream_is_short() -> None:
    client = call()
    given = start()
    given["streamSid"] = "M" * 129
    client.send(given)
    assert client.closed is not None
    assert client.closed[0] == 1008
