"""Voice, language and manner of speaking: checked before anything is opened."""

from dataclasses import replace
from typing import Any

import pytest
from playhead.gateway.messages import Hello, Start
from playhead.gateway.protocol_parse import ProtocolError
from playhead.gateway.session_style import Style, greeted_style, started_style
from session_kit import facts

FACTS = facts()
PLAIN = replace(FACTS, takes_instruct=False)
SESSION = Style("bob", 1.5, "german", "gravely")


def test_a_greeting_that_asks_for_nothing() -> None:
    assert greeted_style(Hello(), FACTS) == Style("ada", 1.0, "auto", "")


def test_a_greeting_that_asks_for_everything() -> None:
    hello = Hello(voice="bob", speed=1.5, language="German", instruct=" gravely ")
    assert greeted_style(hello, FACTS) == SESSION


def test_an_utterance_is_spoken_as_the_session_is() -> None:
    assert started_style(Start(), SESSION, FACTS) == SESSION


def test_an_utterance_may_differ() -> None:
    start = Start(voice="ada", speed=0.5, language="auto", instruct="")
    assert started_style(start, SESSION, FACTS) == Style("ada", 0.5, "auto", "")


@pytest.mark.parametrize(
    ("asked", "code", "expected"),
    [
        ({"voice": "eve"}, "unknown_voice", "one of ada, bob"),
        ({"language": "klingon"}, "unknown_language", "one of auto, german"),
        ({"instruct": "sing"}, "unsupported_instruct", "no instruct, or a server"),
    ],
)
def test_refusals_name_what_is_accepted(asked: dict[str, Any], code: str, expected: str) -> None:
    for attempt in (
        lambda: greeted_style(Hello(**asked), PLAIN),
        lambda: started_style(Start(**asked), Style("ada", 1.0, "auto", ""), PLAIN),
    ):
        with pytest.raises(ProtocolError) as caught:
            attempt()
        assert caught.value.code == code
        assert caught.value.field == next(iter(asked))
        assert caught.value.expected.startswith(expected)


def test_an_empty_instruction_is_none() -> None:
    assert greeted_style(Hello(instruct="  "), PLAIN).instruct == ""
