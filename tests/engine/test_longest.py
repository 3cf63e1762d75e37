"""How long an utterance may get whose model does not end it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playhead.engine.longest import OTHER, PLAIN, Longest, expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("", 0.0),
        ("Good morning, all.", 18 * PLAIN),
        ("Grüße, José! Привет.", 20 * PLAIN),
        ("1234", 4 * OTHER),
        ("早上好", 3 * OTHER),
        ("ok 👍", 3 * PLAIN + OTHER),
        ("\u00d7\u20ac$", PLAIN + 2 * OTHER),
    ],
)
def test_what_is_expected_of_a_text(text: str, seconds: float) -> None:
    assert expected(text) == pytest.approx(seconds)


@given(st.text(max_size=50), st.text(max_size=50))
def test_in_pieces_it_is_the_same(one: str, other: str) -> None:
    assert expected(one + other) == pytest.approx(expected(one) + expected(other))


def test_a_text_may_last_four_times_what_is_expected_and_half_a_minute() -> None:
    assert Longest().seconds(0.0, 1.0) == 30.0
    assert Longest().seconds(10.0, 1.0) == 70.0
    assert Longest().seconds(10.0, 0.5) == 110.0, "slow speech lasts longer"
    assert Longest().seconds(10.0, 2.0) == 70.0
    assert Longest(1.0, 0.0).seconds(10.0, 1.0) == 1.0
