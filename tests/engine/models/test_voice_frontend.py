# ruff: noqa: RUF001
import time
from collections.abc import Callable

import pytest
from hostile import HOSTILE
from hypothesis import given, settings
from hypothesis import strategies as st
from playhead.engine.models.hibari.frontend import Frontend, Piece, frames_before
from playhead.engine.models.hibari.runner import HibariRunner
from playhead.engine.models.hibari.shape import MAX_PHONEMES
from playhead.engine.text import Segmenter


@pytest.fixture(scope="module")
def frontend(runner: HibariRunner) -> Frontend:
    return runner._voice.frontend


def phonemes(frontend: Frontend, piece: Piece) -> str:
    letters = {number: letter for letter, number in frontend._ids.items()}
    return "".join(letters.get(int(number), "|") for number in piece.ids)


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("Hello there.", {"Hello": "həl", "there.": "ðˈɛ"}),
        ("at 3:30 pm we", {"at": "æt", "3:30": "θɹˈ", "pm": "pˌi", "we": "wi"}),
        ("it costs $5.99 now", {"costs": "kˈɔ", "$5.99": "fˈI", "now": "nˈW"}),
        ("Dr. Smith, 42", {"Dr.": "dˈɑ", "Smith,": "smˈ", "42": "fˈɔ"}),
        ("No. 5 on Jan. 3rd", {"No.": "nˈʌ", "5": "fˈI", "Jan.": "ʤˈæ", "3rd": "θˈɜ"}),
        ("go to example.com today", {"example.com": "ɪɡz", "today": "tədˈ"}),
        ("a 😀 b", {"a": "ɐ", "b": "bˈi"}),
    ],
)
def test_each_word_is_followed_to_its_first_phoneme(
    frontend: Frontend, text: str, starts: dict[str, str]
) -> None:
    (piece,), _ = frontend.plan(text, 100)
    spoken = phonemes(frontend, piece)
    assert spoken[0] == spoken[-1] == "|"
    found = {mark.text: spoken[mark.phoneme :] for mark in piece.marks}
    for word, beginning in starts.items():
        assert found[word].startswith(beginning)
    for mark in piece.marks:
        assert text[mark.char_start - 100 : mark.char_end - 100] == mark.text


def test_what_is_too_long_for_one_run_is_cut_at_clauses_then_spaces(frontend: Frontend) -> None:
    clauses = "seven hundred and seventy seven, " * 20
    pieces, _ = frontend.plan(clauses.strip(), 0)
    assert len(pieces) > 1
    assert all(phonemes(frontend, piece).rstrip("| ").endswith(",") for piece in pieces)
    spaces, _ = frontend.plan("9" * 200, 0)
    assert [piece.last for piece in spaces] == [False] * (len(spaces) - 1) + [True]
    assert all(len(piece.ids) <= MAX_PHONEMES + 2 for piece in spaces)
    assert sum(len(piece.marks) for piece in spaces) == 1


def test_rules_that_fail_are_logged_without_the_text(
    frontend: Frontend, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(text: str) -> str:
        raise KeyError(text)

    monkeypatch.setattr("playhead.engine.models.hibari.frontend.normalize", fail)
    (piece,), _ = frontend.plan("my password is swordfish", 0)
    assert [mark.text for mark in piece.marks] == ["my", "password", "is", "swordfish"]
    assert "the reading rules failed (KeyError)" in caplog.text
    assert "in fail" in caplog.text
    assert "swordfish" not in caplog.text


def test_a_word_that_is_too_long_for_one_run_is_cut_anywhere(
    frontend: Frontend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhead.engine.models.hibari.frontend.MAX_PHONEMES", 4)
    pieces, _ = frontend.plan("unbelievable", 0)
    assert [len(piece.ids) for piece in pieces[:-1]] == [6] * (len(pieces) - 1)


@pytest.mark.parametrize(
    ("text", "notices"),
    [
        ("plain words", []),
        ("Hi 😀 你好 there", [("unspeakable_text", "😀 你好")]),
        ("мир 😀", [("unspeakable_text", "😀"), ("text_normalized", "мир")]),
        ("x" + "yz" * 100, [("text_normalized", "x" + "yz" * 29 + "…")]),
        ("\ud800 ok", [("unspeakable_text", "\ufffd")]),
        ("🎉" * 100, [("unspeakable_text", "🎉" * 59 + "…")]),
        ("- (a)", []),
    ],
)
def test_what_is_not_spoken_as_written_is_named_once(
    frontend: Frontend, text: str, notices: list[tuple[str, str]]
) -> None:
    _, found = frontend.plan(text, 0)
    assert [(notice.code, notice.text) for notice in found] == notices
    assert all(notice.text in notice.message for notice in found)


def test_a_word_whose_letters_have_no_sound_is_named(
    frontend: Frontend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frontend._g2p, "_oov", lambda word: None)
    pieces, found = frontend.plan("hello zxqv again", 0)
    assert [(notice.code, notice.text) for notice in found] == [("unspeakable_text", "zxqv")]
    assert len(pieces[0].marks) == 3


def test_a_word_that_breaks_the_rules_is_left_out_and_named(
    frontend: Frontend, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenize = frontend._g2p.tokenize

    def brittle(text: str) -> object:
        if "zxqv" in text:
            raise IndexError("no rule")
        return tokenize(text)

    monkeypatch.setattr(frontend._g2p, "tokenize", brittle)
    (piece,), found = frontend.plan("hello zxqv again", 0)
    assert [(notice.code, notice.text) for notice in found] == [("unspeakable_text", "zxqv")]
    assert [mark.text for mark in piece.marks] == ["hello", "zxqv", "again"]
    assert phonemes(frontend, piece).startswith("|həl")


def test_nothing_audible_gives_a_piece_without_ids(frontend: Frontend) -> None:
    (piece,), _ = frontend.plan("... ?!", 0)
    assert len(piece.ids) == 0
    assert [mark.text for mark in piece.marks] == ["...", "?!"]


RULES = [
    "$",
    "£5",
    "1,2",
    "..",
    "0",
    "1.2.3",
    "'s",
    "'d",
    "5ed",
    "½",
    "12:",
    "3:30",
    "am",
    "No.",
    "Jan.",
    "1/2",
    "-40",
    "°C",
    "km",
    "Rs.",
    "VIII",
    "King",
    "i.e.",
    "U.S.",
    "C++",
    "#1",
    "1st",
    "00",
    "1e9",
    "١",
    "Ⅷ",
    "[a](b)",
    "`",
    "|",
    "~",
    "@",
    "'",
    "’",
    "--",
    "…",
    "a" * 30,
]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.sampled_from(RULES) | st.text(alphabet="0123456789.,:/-$%'aApPmM ", max_size=10),
        max_size=25,
    ).map("".join)
)
def test_no_text_breaks_the_rules(runner: HibariRunner, text: str) -> None:
    pieces, _ = runner._voice.frontend.plan(text, 0)
    marks = [mark for piece in pieces for mark in piece.marks]
    assert [mark.text for mark in marks] == text.split()
    for piece in pieces:
        places = [mark.phoneme for mark in piece.marks]
        assert places == sorted(places)
        assert not len(piece.ids) or all(0 < place < len(piece.ids) for place in places)


def test_frames_are_counted_in_pairs() -> None:
    import numpy as np

    assert frames_before(np.array([3, 0, 2])).tolist() == [0, 6, 6, 10]


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_was_made_to_hurt_is_read_in_time_and_grows_no_more_than_tenfold(
    frontend: Frontend, make: Callable[[int], str]
) -> None:
    """Rules for numbers, dates and names take longer than in proportion to some texts, but never
    see more than a segment of one: a small part of what the watchdog allows a step."""
    segmenter = Segmenter()
    segments = [*segmenter.push(make(2_000)), *segmenter.end()]
    for segment in segments[:3]:
        began = time.process_time()
        pieces, _ = frontend.plan(segment.text, segment.start)
        assert time.process_time() - began < 0.5
        assert sum(len(piece.ids) for piece in pieces) <= 10 * len(segment.text)
