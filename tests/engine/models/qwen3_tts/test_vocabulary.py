"""The vocabulary of a model folder: read as it is, and refused when it is cut or another's."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from playhead.engine.models.qwen3_tts.config import TextIds
from playhead.engine.models.qwen3_tts.text import role_ids
from playhead.engine.models.qwen3_tts.vocabulary import (
    FolderTokenizer,
    VocabularyError,
    open_vocabulary,
)

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed (extra: qwen)")
transformers = pytest.importorskip("transformers", reason="transformers is not installed (qwen)")

SPECIALS = ("<|im_start|>", "<|im_end|>")


def trained(text: list[str], size: int, specials: tuple[str, ...] = ()) -> "tokenizers.Tokenizer":
    """A byte-level vocabulary of so many entries."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    level = tokenizers.pre_tokenizers.ByteLevel
    made.pre_tokenizer = level(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=level.alphabet(), special_tokens=list(specials)
    )
    made.train_from_iterator(text, trainer)
    return made


def test_one_file_that_holds_it_all(tmp_path: Path) -> None:
    words = trained(["assistant"] * 9, 300, SPECIALS)
    words.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "PreTrainedTokenizerFast", "additional_special_tokens":'
        ' ["<|im_start|>", "<|im_end|>"]}'
    )
    ids = TextIds(*map(words.token_to_id, (*SPECIALS, "assistant")), 0, 0, 0)
    found = open_vocabulary(tmp_path, ids)
    assert set(found.specials) == set(SPECIALS)
    text = "<|im_start|>assistant\nit's 12 你好"
    assert found(text) == words.encode(text).ids


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A vocabulary in the files of a published model; "assistant" is a word of it, merged first."""
    words = [*["assistant"] * 99, "wonderful quick brown foxes jump over lazy dogs by night"]
    trained(words, 300).model.save(str(tmp_path))
    added = {str(600 + place): {"content": word} for place, word in enumerate(SPECIALS)}
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "Qwen2Tokenizer", "added_tokens_decoder": added})
    )
    return tmp_path


def ids_of(folder: Path) -> TextIds:
    """As the folder's config.json would name them."""
    words = json.loads((folder / "vocab.json").read_text())
    start = len(words)  # special tokens come after all others, whatever number they ask for
    return TextIds(start, start + 1, words["assistant"], 0, 0, 0)


def test_the_vocabulary_of_a_published_folder(published: Path) -> None:
    ids = ids_of(published)
    found = open_vocabulary(published, ids)
    assert set(found.specials) >= set(SPECIALS)
    assert role_ids(found)[:2] == (ids.im_start, ids.assistant)
    assert found("<|im_end|>") == [ids.im_end]


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt", "tokenizer_config.json"])
def test_one_that_lacks_a_file_names_it(published: Path, name: str) -> None:
    ids = ids_of(published)
    (published / name).unlink()
    with pytest.raises(VocabularyError, match=f"is partial: {name} is missing; download it again"):
        open_vocabulary(published, ids)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("vocab.json", '{"a": 1, '),
        ("vocab.json", "[]"),
        ("merges.txt", "#version: 0.2\na\n"),
        ("tokenizer_config.json", "[]"),
        ("tokenizer_config.json", "{"),
    ],
)
def test_one_that_is_cut_names_its_files(published: Path, name: str, content: str) -> None:
    ids = ids_of(published)
    (published / name).write_text(content)
    with pytest.raises(VocabularyError, match=r"vocab\.json, merges.* cannot be read as") as caught:
        open_vocabulary(published, ids)
    assert "\n" not in str(caught.value)


def cut(folder: Path, lines: int) -> None:
    """Keep so many merges."""
    merges = folder / "merges.txt"
    merges.write_text("".join(merges.read_text().splitlines(keepends=True)[: 1 + lines]))


def test_one_cut_between_two_lines_is_another(published: Path) -> None:
    """Texts would be spelt letter by letter, which nobody would see but hear."""
    ids = ids_of(published)
    cut(published, 0)
    with pytest.raises(VocabularyError, match=r"config\.json says .* are cut, or another model's"):
        open_vocabulary(published, ids)


def test_one_cut_behind_the_word_that_begins_a_turn_is_cut_as_well(published: Path) -> None:
    ids, lines = ids_of(published), (published / "merges.txt").read_text().splitlines()
    kept = 1 + next(at for at, line in enumerate(lines) if line.replace(" ", "") == "assistant")
    missing = len(lines) - kept
    assert missing > 9
    cut(published, kept - 1)
    said = rf"{missing} of the 300 entries of vocab\.json are made by no line of merges\.txt: it is"
    with pytest.raises(VocabularyError, match=said):
        open_vocabulary(published, ids)


def test_a_few_entries_that_nothing_makes_are_nobodys_mistake(published: Path) -> None:
    """There are such models, whole as they are."""
    ids = ids_of(published)
    cut(published, len((published / "merges.txt").read_text().splitlines()) - 3)
    assert role_ids(open_vocabulary(published, ids))[:2] == (ids.im_start, ids.assistant)


def test_special_tokens_among_the_entries_need_no_merge(published: Path) -> None:
    path = published / "vocab.json"
    entries = json.loads(path.read_text())
    ids, count = ids_of(published), len(entries)
    path.write_text(json.dumps(entries | dict(zip(SPECIALS, range(count, 999), strict=False))))
    assert open_vocabulary(published, ids)("<|im_end|>") == [ids.im_end]


def test_the_end_of_a_turn_is_held_to_the_configuration(published: Path) -> None:
    ids = ids_of(published)
    said = rf"makes \[{ids.im_end}\] of the end of a turn; config\.json says 7: .* another model's"
    with pytest.raises(VocabularyError, match=said):
        open_vocabulary(published, replace(ids, im_end=7))


@pytest.mark.parametrize("name", ["tokenizer_config.json", "config.json"])
def test_code_in_a_folder_is_not_run(
    published: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sits at the terminal is not asked either."""
    ran = published / "ran"
    (published / "own.py").write_text(f"open({str(ran)!r}, 'w')\nclass Own: pass\n")
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    kind = {"tokenizer_config.json": "AutoTokenizer", "config.json": "AutoConfig"}[name]
    chosen = ["own.Own", None] if kind == "AutoTokenizer" else "own.Own"
    words = {"tokenizer_class": "Own", "model_type": "own", "auto_map": {kind: chosen}}
    (published / name).write_text(json.dumps(words))
    if name == "config.json":
        (published / "tokenizer_config.json").write_text("{}")
    with pytest.raises(VocabularyError):
        FolderTokenizer(published)
    assert not ran.exists()


Reads = Callable[[object], None]


@pytest.fixture
def reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reads:
    """The library answers with this, or raises it; ``tmp_path`` holds a vocabulary."""
    (tmp_path / "tokenizer.json").touch()

    def become(answer: object) -> None:
        def read(*_: object, **__: object) -> object:
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", read)

    return become


def test_one_of_another_make_is_called_as_it_is(tmp_path: Path, reads: Reads) -> None:
    class Slow:
        is_fast = False

        def get_added_vocab(self) -> dict[str, int]:
            return {"<|a|>": 3}

        def __call__(self, text: str, *, add_special_tokens: bool) -> dict[str, list[int]]:
            assert not add_special_tokens
            return {"input_ids": [len(text)]}

    reads(Slow())
    assert FolderTokenizer(tmp_path)("word") == [4]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (KeyError("vocab"), "KeyError: 'vocab'"),
        (Exception("no\nsuch"), "Exception: no"),
        (ValueError(), "ValueError"),
        (ValueError("\n "), "ValueError"),
    ],
    ids=repr,
)
def test_what_the_library_says_is_told_with_its_kind(
    tmp_path: Path, reads: Reads, fault: Exception, said: str
) -> None:
    reads(fault)
    with pytest.raises(VocabularyError) as caught:
        FolderTokenizer(tmp_path)
    assert str(caught.value).endswith(f"tokenizer.json cannot be read as a vocabulary: {said}")


@pytest.mark.parametrize("fault", [ImportError("no sentencepiece"), MemoryError()], ids=repr)
def test_what_this_machine_lacks_is_no_fault_of_the_folder(
    tmp_path: Path, reads: Reads, fault: Exception
) -> None:
    reads(fault)
    with pytest.raises(type(fault)) as caught:
        FolderTokenizer(tmp_path)
    assert caught.value is fault


@pytest.mark.parametrize("fails", [False, True])
def test_the_library_is_as_loud_afterwards_as_before(
    published: Path, reads: Reads, *, fails: bool
) -> None:
    if fails:
        reads(ValueError("cut"))
    before = transformers.logging.get_verbosity()
    try:
        transformers.logging.set_verbosity_info()
        if fails:
            with pytest.raises(VocabularyError):
                FolderTokenizer(published)
        else:
            (published / "tokenizer.json").unlink()
            FolderTokenizer(published)
        assert transformers.logging.get_verbosity() == transformers.logging.INFO
    finally:
        transformers.logging.set_verbosity(before)
