# ruff: noqa: RUF001
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playhead.engine.models.hibari.align import align
from playhead.engine.models.hibari.clean import MAX_LETTERS, Cleaned, clean


@pytest.mark.parametrize(
    ("word", "spoken"),
    [
        ("Hello,", "Hello,"),
        ("don't", "don't"),
        ("$5.99", "$5.99"),
        ("1,234,567.89", "1,234,567.89"),
        ("123456789012345", "123456789012345"),
        ("1234567890123456", "1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6"),
        ("1,234,567,890,123,456", "1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6"),
        (
            "https://www.example.com/a-b?c=1.",
            "example dot com slash a dash b question mark c equals 1.",
        ),
        ("(example.org)", "(example dot org)"),
        ("bob.smith@mail.example.com,", "bob dot smith at mail dot example dot com,"),
        ("[link](/abc/)", "[link] (/abc/)"),
        ("café", "café"),
        ("cafe\u0301", "café"),
        ("Z\u0338\u0321\u0337a\u0334lgo" + "\u0301" * 900, "Zalgó"),
        ("ﬁne", "fine"),
        ("㎏", "kg"),
        ("Ｈｅｌｌｏ", "Hello"),
        ("①", "1"),
        ("٣٤", "34"),
        ("𝓗𝓲", "Hi"),
        ("x\u200db\ufeffc\u00ad", "xbc"),
        ("a\x00b\x07", "ab"),
        ("Ṽ", "V"),
        ("привет", "privet"),
        ("Щука", "Shchuka"),
        ("αθήνα", "athina"),
        ("π", "pi"),
        ("Ω", "omega"),
        ("∞", "infinity"),
        ("5≤6", "5 at most 6"),
        ("Sooooooo", "Soo"),
        ("?!?!?!?!?!", "?!?"),
        ("a_b", "a_b"),
        ("a‿b", "a-b"),
        ("「x」", '"x"'),
        ("‖", ""),
    ],
)
def test_words_are_rewritten(word: str, spoken: str) -> None:
    assert " ".join(clean(word).words) == spoken


@pytest.mark.parametrize(
    ("word", "cleaned"),
    [
        ("😀", Cleaned((), "😀")),
        ("good😀day", Cleaned(("good", "day"), "😀")),
        ("你好", Cleaned((), "你好")),
        ("\ufdfa", Cleaned((), "\ufdfa")),
        ("\ud800x", Cleaned(("x",), "\ufffd")),
        ("=======", Cleaned((), "======")),
        ("мир", Cleaned(("mir",), transliterated=True)),
        ("abcdef" * 100, Cleaned((("abcdef" * 100)[:MAX_LETTERS],), shortened=True)),
        ("a" * 5000, Cleaned(("aa",))),
    ],
)
def test_what_cannot_be_said_is_told(word: str, cleaned: Cleaned) -> None:
    assert clean(word) == cleaned


@given(st.text(min_size=1, max_size=60))
def test_the_result_is_words_of_known_characters(text: str) -> None:
    for word in text.split():
        for part in clean(word).words:
            assert part
            assert part.isprintable()
            assert not any(char.isspace() for char in part)


@pytest.mark.parametrize("bomb", ["\ufdfa", "\u0301", "9", "ab", "!?", "😀", "=", "9,", "Щ", "a."])
def test_time_grows_with_length_only(bomb: str) -> None:
    def least_time(count: int) -> float:
        taken = []
        for _ in range(3):
            started = time.thread_time()
            clean(bomb * count)
            taken.append(time.thread_time() - started)
        return min(taken)

    assert least_time(3000) < 60 * least_time(300) + 0.005  # quadratic would be 100 times


@pytest.mark.parametrize(
    ("before", "after", "starts"),
    [
        ("a b c", "a b c", [0, 1, 2]),
        ("at 3:30 pm we go", "at three thirty P.M. we go", [0, 1, 3, 4, 5]),
        ("it costs $5M now", "it costs 5 million dollars now", [0, 1, 2, 5]),
        ("one , two", "one, two", [0, 0, 1]),
        ("a • b", "a b", [0, 1, 1]),
        ("•", "", [0]),
        ("x", "x y", [0]),
        ("", "", []),
    ],
)
def test_alignment(before: str, after: str, starts: list[int]) -> None:
    alone = {"3:30": 2, "$5M": 3}
    assert align(before.split(), after.split(), lambda word: alone.get(word, 1)) == starts


WORDS = st.lists(st.sampled_from(["a", "b", "c", "1", "one"]), max_size=12)


@given(WORDS, WORDS)
def test_alignment_covers_every_word_and_never_falls(before: list[str], after: list[str]) -> None:
    starts = align(before, after, len)
    assert len(starts) == len(before)
    assert starts == sorted(starts)
    assert all(0 <= start <= len(after) for start in starts)
