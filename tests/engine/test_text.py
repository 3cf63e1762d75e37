# ruff: noqa: RUF001
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from playhead.engine.text import LOOK_AHEAD, MAX_CHARS, Segment, Segmenter


def cut(text: str) -> list[str]:
    return [segment.text for segment in segments_of([text])]


def segments_of(deltas: list[str]) -> list[Segment]:
    segmenter = Segmenter()
    found = [segment for delta in deltas for segment in segmenter.push(delta)]
    return found + segmenter.end()


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        # sentences
        ("Hello there. How are you?", ["Hello there.", "How are you?"]),
        ("Stop! Who goes there?! A friend.", ["Stop!", "Who goes there?!", "A friend."]),
        ("It is 5 o'clock. dinner is ready", ["It is 5 o'clock.", "dinner is ready"]),
        ("你好。世界！", ["你好。", "世界！"]),
        # numbers, times, money, addresses
        ("Pi is 3.14. It costs $5.99. Fine.", ["Pi is 3.14.", "It costs $5.99.", "Fine."]),
        ("At 3:30 pm. tomorrow", ["At 3:30 pm. tomorrow"]),
        ("See https://a.b/c?d=e.f, ok. Bye.", ["See https://a.b/c?d=e.f, ok.", "Bye."]),
        ("Write to bob@example.com. Now.", ["Write to bob@example.com.", "Now."]),
        ("Version 3. Then 4.", ["Version 3.", "Then 4."]),
        # abbreviations
        ("Dr. Smith met Mr. Jones. They spoke.", ["Dr. Smith met Mr. Jones.", "They spoke."]),
        ("Use a tool, e.g. A hammer.", ["Use a tool, e.g. A hammer."]),
        ("J. K. Rowling wrote it.", ["J. K. Rowling wrote it."]),
        ("So am I. The end.", ["So am I.", "The end."]),
        ("The U.S. Army left at 5 p.m. The end.", ["The U.S. Army left at 5 p.m.", "The end."]),
        ("Acme Inc., etc. We buy.", ["Acme Inc., etc.", "We buy."]),
        ("Read No. 5 now. No. It is late.", ["Read No. 5 now.", "No.", "It is late."]),
        ("On Jan. 3rd it ended. (Jan. 4th?)", ["On Jan. 3rd it ended.", "(Jan. 4th?)"]),
        # ellipses
        ("Wait... What? Well… Maybe.", ["Wait... What?", "Well… Maybe."]),
        # quotes and brackets
        ('He said "Hi." Then he left.', ['He said "Hi."', "Then he left."]),
        ('"What?" he asked. (Twice.) Yes.', ['"What?" he asked.', "(Twice.)", "Yes."]),
        # list marks and line breaks
        ("1. First item\n2. Second item", ["1. First item", "2. Second item"]),
        ("a line\nthat goes on\nNew one", ["a line\nthat goes on", "New one"]),
        ("a line\n  that goes on\n  New", ["a line\n  that goes on", "New"]),
        ("a title\n\nthe text", ["a title", "the text"]),
        ("...\nHello", ["...\nHello"]),
        # clauses: the first may be short, but no single word; later ones are longer
        (
            "Well, I think so, and then we go on, and on, and on, for ever and ever, and more.",
            [
                "Well, I think so,",
                "and then we go on, and on, and on, for ever and ever,",
                "and more.",
            ],
        ),
        ("One two three: 4", ["One two three:", "4"]),
        ("One two three,four", ["One two three,four"]),
        ("One two three,", ["One two three,"]),
        # nothing to say
        ("", []),
        (" \n\t ", []),
    ],
)
def test_cuts(text: str, segments: list[str]) -> None:
    assert cut(text) == segments


def test_a_later_clause_is_cut_only_when_it_is_long() -> None:
    short = "Yes. Go. One clause of middling length, and the rest of the sentence, that ends."
    assert cut(short) == ["Yes.", "Go.", short[9:]]
    long = "Yes. Go. " + "many " * 20 + "words, and more."
    assert cut(long) == ["Yes.", "Go.", "many " * 20 + "words,", "and more."]


def test_a_segment_is_given_as_soon_as_it_is_safe() -> None:
    segmenter = Segmenter()
    assert segmenter.push("Hello there.") == []
    assert segmenter.push(" ") == [Segment("Hello there.", 0)]
    assert segmenter.push("Ask Dr.") == []
    assert segmenter.push(" Who") == []
    assert segmenter.push(" now? ") == [Segment("Ask Dr. Who now?", 13)]
    assert segmenter.push("It is 5 p.m.") == []
    assert segmenter.push(" The") == []
    assert segmenter.push(" ") == [Segment("It is 5 p.m.", 30)]


def test_flush_gives_what_is_there_and_text_may_follow() -> None:
    segmenter = Segmenter()
    assert segmenter.push("and the") == []
    assert segmenter.flush() == [Segment("and the", 0)]
    assert segmenter.flush() == []
    assert segmenter.push(" rest. ") == [Segment("rest.", 8)]
    assert segmenter.end() == []


def test_text_after_the_end_is_refused() -> None:
    segmenter = Segmenter()
    segmenter.end()
    with pytest.raises(ValueError, match="after the end"):
        segmenter.push("more")


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("word " * 100, "word " * 49 + "word"),
        ("a" * 600, "a" * MAX_CHARS),
        ("b " * 70 + "c,d" * 60 + ", " + "e " * 60, None),
        ("x" * 200 + ", " + "y" * 100, "x" * 200 + ","),
    ],
)
def test_a_segment_never_grows_beyond_the_limit(text: str, first: str | None) -> None:
    found = cut(text)
    assert all(len(segment) <= MAX_CHARS for segment in found)
    assert "".join("".join(found).split()) == "".join(text.split())
    if first is not None:
        assert found[0] == first.strip()


@pytest.mark.parametrize("mark", ["!", ".", '."', ".\n", ". ", "\n", "I. ", "5 p.m. A"])
def test_marks_without_end_are_decided_within_the_window(mark: str) -> None:
    text = "word" + mark + mark[-1] * 2000
    found = segments_of(list(text))
    assert found == segments_of([text])
    assert max(len(segment.text) for segment in found) <= MAX_CHARS + LOOK_AHEAD


PIECES = st.sampled_from(
    [
        "Hello",
        "the",
        "Dr",
        "Mr.",
        "U.S.",
        "p.m.",
        "I",
        "etc.",
        "No.",
        "3",
        "14",
        ".",
        ". ",
        "...",
        "…",
        "!",
        "?",
        ",",
        ", ",
        ": ",
        ";",
        "—",
        " ",
        "\n",
        "\n\n",
        '"',
        ")",
        "'",
        "The",
        "he",
        "A",
        "http://a.b",
        "$5.99",
        "。",
        "😀",
        "\u0301",
        "\ud800",
        "word " * 60,
        "a" * 260,
        "1.",
        "J.",
    ]
)


@settings(deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join), st.randoms(use_true_random=False))
@example("It's 5 p.m." + " " * 40 + "The", random.Random(1))
def test_any_division_into_deltas_gives_the_same_segments(text: str, chance: random.Random) -> None:
    deltas = []
    rest = text
    while rest:
        size = chance.choice([1, 1, 2, 3, 7, 50])
        deltas.append(rest[:size])
        rest = rest[size:]
    assert segments_of(deltas) == segments_of([text])


@given(st.text(max_size=400) | st.lists(PIECES, max_size=40).map("".join))
def test_segments_are_slices_in_order_and_only_white_space_is_left_out(text: str) -> None:
    position = 0
    for segment in segments_of([text]):
        assert text[position : segment.start].strip() == ""
        position = segment.start + len(segment.text)
        assert text[segment.start : position] == segment.text == segment.text.strip() != ""
    assert text[position:].strip() == ""
