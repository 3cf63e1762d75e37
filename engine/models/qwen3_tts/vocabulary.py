"""The vocabulary of a model folder, which a text is spelt with: read, and held to be whole.

A cut one would be heard and not seen: words that it cannot put together any more are spelt letter
by letter.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playhead.engine.models.qwen3_tts.config import TextIds
from playhead.engine.models.qwen3_tts.text import ROLE, ROLE_IDS

ENTRIES, MERGES = "vocab.json", "merges.txt"
VOCABULARY = (ENTRIES, MERGES, "tokenizer_config.json")
WHOLE_VOCABULARY = "tokenizer.json"
"""Says the same as those three."""
TURN_END = "<|im_end|>"
MOST_UNMADE = 0.01
"""Share of the entries that no merge may make. In Qwen's own vocabulary it is none (151,643
entries: 256 bytes and 151,387 merges), in Llama 3's 588 of 128,000, which is whole as well."""


class VocabularyError(ValueError):
    """A model folder's vocabulary is missing, cut, or another model's; says which file."""


class FolderTokenizer:
    """The vocabulary of a model folder. Raises :class:`VocabularyError` when it cannot be read,
    and ImportError where there is no library to read it with."""

    def __init__(self, folder: Path) -> None:
        files = vocabulary_files(folder)
        # Heavy, and not installed with the CPU voice.
        import transformers

        with _quiet():  # it warns of every model it does not know
            try:
                # Not left unsaid: it would ask at the terminal whether to run a folder's code.
                self._tokenizer = transformers.AutoTokenizer.from_pretrained(
                    str(folder), local_files_only=True, trust_remote_code=False
                )
            except (ImportError, MemoryError):  # of this machine
                raise
            except Exception as fault:  # the library raises Exception itself for a cut file
                raise VocabularyError(
                    f"{folder}: {', '.join(files)} cannot be read as a vocabulary: {_said(fault)}"
                ) from fault
        added = self._tokenizer.get_added_vocab()
        self._specials = tuple(sorted(added, key=len, reverse=True))

    @property
    def specials(self) -> tuple[str, ...]:
        """See :class:`~playhead.engine.models.qwen3_tts.text.Tokenizer`."""
        return self._specials

    def __call__(self, text: str) -> list[int]:
        """See :class:`~playhead.engine.models.qwen3_tts.text.Tokenizer`."""
        if self._tokenizer.is_fast:
            # The same ids without the wrapper, which takes five times as long for a word.
            found: list[int] = self._tokenizer.backend_tokenizer.encode(
                text, add_special_tokens=False
            ).ids
            return found
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return list(ids)


def open_vocabulary(folder: Path, ids: TextIds) -> FolderTokenizer:
    """The vocabulary of a model folder, held to the ``ids`` of its config.json. Raises
    :class:`VocabularyError`."""
    tokenizer = FolderTokenizer(folder)
    others = f"{', '.join(vocabulary_files(folder))} are cut, or another model's"
    turn, end = tokenizer(ROLE), tokenizer(TURN_END)
    if len(turn) != ROLE_IDS or turn[:2] != [ids.im_start, ids.assistant]:
        raise VocabularyError(
            f"{folder}: the vocabulary makes {turn} of the beginning of a turn; config.json says "
            f"that it begins with {ids.im_start}, {ids.assistant} and has {ROLE_IDS} ids: {others}"
        )
    if end != [ids.im_end]:
        raise VocabularyError(
            f"{folder}: the vocabulary makes {end} of the end of a turn; config.json says "
            f"{ids.im_end}: {others}"
        )
    _check_merges(folder, tokenizer.specials)
    return tokenizer


def vocabulary_files(folder: Path) -> tuple[str, ...]:
    """The files that hold it. Raises :class:`VocabularyError` for one that is missing."""
    if (folder / WHOLE_VOCABULARY).exists():
        return (WHOLE_VOCABULARY,)
    for name in VOCABULARY:
        if not (folder / name).exists():
            raise VocabularyError(f"{folder} is partial: {name} is missing; download it again")
    return VOCABULARY


def _check_merges(folder: Path, specials: tuple[str, ...]) -> None:
    """Lines missing at the end of the list of merges leave a file that can be read. A JSON file
    that is cut cannot."""
    if (folder / WHOLE_VOCABULARY).exists():
        return
    entries = set(json.loads((folder / ENTRIES).read_text(encoding="utf-8"))).difference(specials)
    lines = (folder / MERGES).read_text(encoding="utf-8").splitlines()
    made = {line.replace(" ", "", 1) for line in lines}
    unmade = sum(len(entry) > 1 and entry not in made for entry in entries)
    if unmade > MOST_UNMADE * len(entries):
        raise VocabularyError(
            f"{folder}: {unmade} of the {len(entries)} entries of {ENTRIES} are made by no line of "
            f"{MERGES}: it is cut, or another model's; download it again"
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """The library says nothing but errors within; its loudness is the whole process's."""
    from transformers import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _said(fault: Exception) -> str:
    """Its kind, and the first line of what it says, if it says anything."""
    first = str(fault).strip().partition("\n")[0]
    return ": ".join(filter(None, (type(fault).__name__, first)))
