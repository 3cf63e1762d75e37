# ruff: noqa: RUF001 - the marks of other scripts are meant
"""Ids of a growing text, judged with a vocabulary that splits words as the model's does."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from playhead.engine.models.qwen3_tts.prompt import PromptError
from playhead.engine.models.qwen3_tts.text import (
    MOST_HELD,
    HashTokenizer,
    KnownIds,
    TokenStream,
    instruct_ids,
    last_cut,
    role_ids,
    without_specials,
)

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed (extra: qwen)")

SPECIALS = ("<|im_start|>", "<|im_end|>")
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""The published splitting rule of the vocabulary."""
CORPUS = [
    "The quick brown fox, it's said, doesn't jump over 12,345 dogs... Why? \u201cBecause!\u201d",
    "你好，世界。今天天气很好！ Übergrößenträger straße e\u0301te\u0301 naïve café\n\nnew line",
    "function(x) { return x*2; } user@example.org https://example.org/?a=b&c=d  two  spaces",
]
FRAGMENTS = ("<|im_end|>", "<|im_", "end|>", "it's ", "\u201dno", "\n\n", "  ", "12", "word", "!")
TEXTS = (
    st.lists(st.sampled_from(FRAGMENTS), max_size=10).map("".join)
    | st.text(st.sampled_from("ab e\u0301'st 1,.!\n \u201d你好，。<|im_end|>-"), max_size=40)
    | st.text(max_size=20)
)


def train() -> "tokenizers.Tokenizer":
    """A byte-level vocabulary with the model's normaliser and splitting rule."""
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(WORDS), "isolated")
    level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.normalizer = tokenizers.normalizers.NFC()
    made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([split, level])
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=420, initial_alphabet=alphabet, special_tokens=list(SPECIALS)
    )
    made.train_from_iterator(CORPUS * 3, trainer)
    return made


class Trained:
    """A ``Tokenizer`` over the trained vocabulary."""

    specials = SPECIALS

    def __init__(self) -> None:
        self._made = train()

    def __call__(self, text: str) -> list[int]:
        return list(self._made.encode(text, add_special_tokens=False).ids)


TRAINED = Trained()


def pieces(text: str, cuts: list[int]) -> list[str]:
    """``text`` divided at ``cuts``, wherever they fall."""
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in itertools.pairwise(places)]


@given(TEXTS, st.lists(st.integers(0, 100), max_size=6))
@example("it's a\n\ntest!\n b", [1, 2, 3, 7])
@example("e\u0301 x", [1])
@example("<|im_end|>", [])
@example("a <|im_end|>b", [4])
@example("it's <|im_end|>", [10])
def test_any_division_gives_the_ids_of_the_whole(text: str, cuts: list[int]) -> None:
    stream = TokenStream(TRAINED)
    ids = [token for piece in pieces(text, cuts) for token in stream.push(piece)]
    ids += stream.flush()
    plain, _ = without_specials(text, SPECIALS)
    assert ids == TRAINED(plain.strip())


def test_words_are_given_as_soon_as_they_are_certain() -> None:
    stream = TokenStream(TRAINED)
    assert stream.push("The qui") == TRAINED("The")
    assert stream.push("ck") == []
    assert stream.push(" ") == TRAINED(" quick")
    assert stream.flush() == []
    assert stream.push("brown") == []
    assert stream.flush() == TRAINED(" brown")


def test_a_text_without_any_place_to_cut_is_not_held_for_ever() -> None:
    stream = TokenStream(TRAINED)
    assert stream.push("a" * MOST_HELD) == []
    assert stream.push("a") != []


def test_a_control_word_that_comes_in_pieces_is_left_out() -> None:
    stream = TokenStream(TRAINED)
    ids = stream.push("one <|im")
    ids += stream.push("_end|> two")
    ids += stream.flush()
    assert ids == TRAINED("one   two")
    assert stream.removed == ["<|im_end|>"]


def test_control_words_put_together_by_taking_one_out_are_left_out_too() -> None:
    plain, found = without_specials("<|a|>x<|<|a|>b|>", ("<|a|>", "<| b|>"))
    assert plain == " x "
    assert found == ("<|a|>",)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("", 0),
        ("word", 0),
        ("word ", 4),
        ("one two", 3),
        ("well, so", 5),
        ("end.\n", 3),
        ("end. Next", 4),
        ("你好，世界", 2),
        ("a\u0301b", 0),
    ],
)
def test_last_cut(text: str, at: int) -> None:
    assert last_cut(text) == at


def test_instructions_are_framed_and_cleaned() -> None:
    assert instruct_ids(TRAINED, " ") == ()
    assert instruct_ids(TRAINED, "<|im_end|>") == instruct_ids(TRAINED, "")
    ids = instruct_ids(TRAINED, "Whisper")
    assert list(ids) == TRAINED("<|im_start|>user\nWhisper<|im_end|>\n")
    assert list(role_ids(TRAINED)) == TRAINED("<|im_start|>assistant\n")


def test_the_stand_in_vocabulary_stays_in_range() -> None:
    ids = HashTokenizer(50)("the quick brown foxes jump")
    assert len(ids) == 8
    assert all(0 <= token < 50 for token in ids)
    assert ids == HashTokenizer(50)("the quick brown foxes jump")


@given(st.lists(st.text("<|ab>", min_size=1, max_size=5), max_size=4), st.text("<|ab>x"))
def test_a_special_token_that_may_follow_is_held_back(specials: list[str], text: str) -> None:
    """From its first character on, whichever of several begins first."""

    class Some(HashTokenizer):
        pass

    Some.specials = tuple(specials)
    stream = TokenStream(Some(9))
    stream._held = text
    begun = [
        len(text) - size
        for special in specials
        for size in range(1, len(special))
        if text.endswith(special[:size])
    ]
    assert stream._begun_special() == min(begun, default=len(text))


def test_ids_that_the_model_does_not_have_are_refused() -> None:
    """On a device such an id would end every stream."""
    tokenizer = KnownIds(HashTokenizer(500), 500)
    assert tokenizer("some words") == HashTokenizer(500)("some words")
    assert tokenizer("") == []
    assert tokenizer.specials == ()
    highest = max(HashTokenizer(500)("some words"))
    with pytest.raises(PromptError, match=f"gives id {highest} .*, and the model has {highest}"):
        KnownIds(HashTokenizer(500), highest)("some words")
