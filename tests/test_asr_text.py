"""The word comparison behind the speech-recognition tests (no model is run here)."""

import pytest
from asr import normalise_words, word_error_rate


@pytest.mark.parametrize(
    ("written", "heard"),
    [
        ("at 3:30 pm on Tuesday", "At 3.30 p.m. on Tuesday."),
        ("March 3rd, 1984", "March 3, 1984"),
        ("It costs $5.99", "it costs five dollars and ninety-nine cents"),
        ("a woodchuck by the sea shore", "A wood chuck by the seashore."),
        ("1,250 people and 20%", "one thousand two hundred fifty people and twenty percent"),
        ("Dr. Smith, the 21st", "Doctor Smith the twenty-first"),
        ("9:00 am, 3.14", "9 a.m. 3 point 1 4"),
    ],
)
def test_same_words_in_other_spellings_are_equal(written: str, heard: str) -> None:
    assert normalise_words(written) == normalise_words(heard)


@pytest.mark.parametrize(
    ("written", "heard", "rate"),
    [
        ("one two three four", "one two four", 0.25),
        ("one two three four", "one two too three four", 0.25),
        ("one two three four", "one two tree four", 0.25),
        ("one two", "", 1.0),
        ("", "", 0.0),
    ],
)
def test_errors_are_counted(written: str, heard: str, rate: float) -> None:
    assert word_error_rate(written, heard) == pytest.approx(rate)
