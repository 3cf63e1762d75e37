"""Text on its way: joined while it waits, cut into messages, held back when too much waits."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playhead.client.script import END, FLUSH, Mark, Script
from playhead.gateway.messages import End, Flush, Text


def take(script: Script, size: int = 2000, room: float = math.inf) -> list[Any]:
    return [m.text if isinstance(m, Text) else m for m in script.take(size, room)]


def test_pieces_that_wait_are_joined() -> None:
    script = Script()
    for piece in ("Hel", "", "lo", FLUSH, " you", END):
        script.add(piece)
    assert script.text == "Hello you"
    assert take(script) == ["Hello", Flush(), " you", End()]
    assert script.exhausted


def test_messages_are_no_longer_than_asked_for() -> None:
    script = Script()
    script.add("abcdefgh")
    assert take(script, size=3) == ["abc", "def", "gh"]


def test_text_waits_for_room_and_what_follows_waits_with_it() -> None:
    script = Script()
    script.add("abcdef")
    script.add(END)
    assert take(script, size=4, room=5) == ["abcd"]
    assert script.waiting == 4
    assert not script.exhausted
    script.spoken_to(3)
    assert script.waiting == 1
    script.skipped(5)
    assert script.waiting == 0
    assert take(script, size=4, room=5) == ["ef", End()]


def test_nothing_after_the_end() -> None:
    script = Script()
    script.add(END)
    for piece in ("more", FLUSH, END):
        with pytest.raises(ValueError, match="no more text"):
            script.add(piece)


def test_cut_drops_what_waits() -> None:
    script = Script()
    script.add("abc")
    script.cut()
    assert take(script) == []
    assert script.exhausted
    script.blocks = True
    assert not script.exhausted


@given(
    st.lists(st.one_of(st.text(max_size=30), st.sampled_from([FLUSH]))),
    st.integers(1, 10),
    st.integers(10, 40),
)
def test_everything_arrives_in_order(pieces: list[str | Mark], size: int, room: int) -> None:
    script, got = Script(), []
    for piece in [*pieces, END]:
        script.add(piece)
        got += take(script, size, room - script.waiting)
        script.spoken_to(len("".join(x for x in got if isinstance(x, str))))
    while not script.exhausted:
        got += take(script, size, room)
    assert "".join(x for x in got if isinstance(x, str)) == script.text
    assert all(len(x) <= size for x in got if isinstance(x, str))
    assert got[-1] == End()
    assert got.count(Flush()) == pieces.count(FLUSH)
