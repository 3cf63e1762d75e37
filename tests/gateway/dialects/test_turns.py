"""The book of a context's utterances."""

from playhead.engine.types import ListenerState, Source
from playhead.gateway.dialects.turns import Turn, Turns
from playhead.gateway.messages import SpokenWord


def test_a_turn_from_opening_to_end() -> None:
    turns = Turns()
    assert (turns.newest, turns.oldest, turns.composing, turns.opening) == (None,) * 4
    turn = turns.open("a")
    assert turns.newest is turns.oldest is turns.composing is turns.opening is turn
    assert turns.started(7) is turn
    assert turn.epoch == 7
    assert turns.opening is None
    assert turns.find(7) is turn
    turn.closed = True
    assert turns.composing is None
    assert list(turns.pop_ended()) == []
    turn.over = True
    assert list(turns.pop_ended()) == [turn]
    assert len(turns) == len(list(turns)) == 0
    assert turns.find(7) is None


def test_ends_are_told_in_order() -> None:
    turns = Turns()
    first, second = turns.open(), turns.open()
    second.closed = second.over = True
    assert list(turns.pop_ended()) == []
    first.closed = first.over = True
    popped = turns.pop_ended()
    assert next(popped) is first
    assert turns.oldest is second, "each is gone when it is given"
    assert next(popped) is second


def test_a_refused_opening_is_no_opening_any_more() -> None:
    turns = Turns()
    assert turns.started(1) is None
    turn = turns.open()
    turn.over = True
    assert turns.opening is None
    turns.open()
    assert turns.started(3) is turns.newest
    assert turns.started(4) is turns.newest, "an epoch is given once"
    assert turns.find(4) is None
    turns.clear()
    assert turns.newest is None


def spoken() -> Turn:
    turn = Turn(epoch=3, samples=1_000)
    turn.script.add_text("one two!")
    turn.script.add_words(
        (
            SpokenWord(text="one", position=0, char_start=0, char_end=3),
            SpokenWord(text="two", position=500, char_start=4, char_end=7),
        )
    )
    return turn


def test_heard_text() -> None:
    turn = spoken()
    assert turn.heard_text(400) == ("one", " two!")
    assert turn.heard_text(1_000) == ("one two!", "")
    turn.script.add_text(" And more")
    assert turn.heard_text(1_000) == ("one two!", " And more")
    turn.closed = turn.over = True
    assert turn.heard_text(1_000) == ("one two! And more", "")
    assert turn.heard_text(999)[1] == " And more"


def test_a_position_as_a_report() -> None:
    turn = spoken()
    report = turn.report(400, Source.MARK, 2.5)
    assert (report.epoch, report.received, report.consumed, report.heard) == (3, 1_000, 400, 400)
    assert (report.buffered, report.state, report.time) == (600, ListenerState.PLAYING, 2_500)
    assert report.source is Source.MARK


def test_a_position_beyond_what_was_sent_is_the_end() -> None:
    turn = spoken()
    assert turn.report(5_000, Source.OFFSET, 0.0).state is ListenerState.PLAYING
    turn.over = True
    report = turn.report(5_000, Source.OFFSET, 0.0)
    assert (report.consumed, report.state) == (1_000, ListenerState.DRAINED)


def test_one_turn_can_be_forgotten() -> None:
    turns = Turns()
    first, second = turns.open(), turns.open()
    turns.drop(first)
    assert list(turns) == [second]
