"""The texts that are shipped, and the drawn lengths."""

import random
import statistics

import pytest
from playhead.loadgen import texts
from playhead.loadgen.texts import Kind, draw, frames, of_length


def test_sentences_of_the_conversation_have_4_to_20_words() -> None:
    assert all(4 <= len(text.split()) <= 20 for text in texts.CONVERSATION)


def test_no_text_is_there_twice_and_each_fits_one_message() -> None:
    everything = [text for kind in texts.SETS.values() for text in kind]
    assert len(set(everything)) == len(everything)
    assert max(map(len, everything)) <= 2_000


def test_long_form_is_long_and_codes_hold_digits() -> None:
    assert all(len(text.split()) > 50 for text in texts.LONG_FORM)
    assert all(any(c.isdigit() for c in text) for text in texts.CODE_SWITCHING)


@pytest.mark.parametrize("kind", [Kind.CONVERSATION, Kind.LONG_FORM, Kind.CODE_SWITCHING])
def test_draw_takes_from_its_set(kind: Kind) -> None:
    assert draw(random.Random(3), kind) in texts.SETS[kind]


def test_lengths_have_their_mean_and_bounds() -> None:
    rng = random.Random(0)
    drawn = [frames(rng) for _ in range(20_000)]
    assert statistics.mean(drawn) == pytest.approx(71, rel=0.03)
    assert min(drawn) >= 12
    assert max(drawn) == 190


@pytest.mark.parametrize(("count", "words"), [(1, 1), (12, 2), (71, 15), (190, 40)])
def test_a_length_becomes_words(count: int, words: int) -> None:
    text = of_length(random.Random(1), count)
    assert len(text.split()) == words
    assert text.endswith(".")


def test_frames_are_drawn_as_text() -> None:
    assert draw(random.Random(5), Kind.FRAMES) == draw(random.Random(5), Kind.FRAMES)
