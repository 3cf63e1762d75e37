"""What a caller may ask for is checked against what the server said it has."""

from dataclasses import replace

import pytest
from client_stub import READY
from playhead.client.errors import ServerError
from playhead.client.style import USUAL, Style, check_style
from playhead.gateway.messages import Start

ABLE = replace(READY, languages=("auto", "german"), instruct=True)


@pytest.mark.parametrize(
    "style",
    [
        USUAL,
        Style(voice=ABLE.voices[0]),
        Style(language="German"),
        Style(instruct="slowly"),
        Style(instruct=""),
    ],
)
def test_what_the_server_has(style: Style) -> None:
    check_style(style, ABLE)


@pytest.mark.parametrize(
    ("style", "code", "field"),
    [
        (Style(voice="eve"), "unknown_voice", "voice"),
        (Style(language="klingon"), "unknown_language", "language"),
        (Style(instruct="slowly"), "unsupported_instruct", "instruct"),
    ],
)
def test_what_it_has_not(style: Style, code: str, field: str) -> None:
    with pytest.raises(ServerError) as caught:
        check_style(style, replace(ABLE, instruct=False))
    assert (caught.value.code, caught.value.field) == (code, field)


def test_a_server_that_does_not_list_its_languages_is_asked() -> None:
    check_style(Style(language="klingon"), replace(READY, languages=()))


def test_the_opening_message() -> None:
    style = Style(voice="a", speed=1.5, language="b", instruct="c")
    assert style.opening("u1") == Start(voice="a", speed=1.5, id="u1", language="b", instruct="c")
