"""Word times as Cartesia tells them."""

from dataclasses import replace

from dialect_kit import stray
from playhead.gateway.dialects.cartesia_times import word_times
from playhead.gateway.messages import SpokenWord


def test_a_word_ends_where_the_next_begins_and_the_last_with_its_audio() -> None:
    words = tuple(
        SpokenWord(text=text, position=at, char_start=0, char_end=1)
        for text, at in (("a", 800), ("b", 1_200))
    )
    message = replace(stray(), position=800, samples=800, words=words)
    assert word_times(message, 8_000) == {
        "words": ["a", "b"],
        "start": [0.1, 0.15],
        "end": [0.15, 0.2],
    }
    assert word_times(message, 8_000, base=8_000)["start"] == [1.1, 1.15]
    late = replace(message, samples=100)
    assert word_times(late, 8_000)["end"] == [0.15, 0.15], "a word never ends before it begins"
