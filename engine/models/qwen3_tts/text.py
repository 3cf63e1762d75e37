"""Text to token ids, also while the text is still growing.

The vocabulary splits a text into words before it merges characters, so the ids of a finished word
never change. :class:`TokenStream` gives ids up to the last place where no later text can change
what came before, whatever the division into deltas.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Protocol

from playhead.engine.models.qwen3_tts.prompt import PromptError

ROLE = "<|im_start|>assistant\n"
ROLE_IDS = 3
"""How many ids that is."""
INSTRUCT = ("<|im_start|>user\n", "<|im_end|>\n")
MOST_HELD = 1024
"""Characters without a safe place to cut after which one is cut all the same."""


class Tokenizer(Protocol):
    """Text to ids, with nothing added."""

    def __call__(self, text: str) -> list[int]:
        """Ids of ``text``; the vocabulary's special tokens are recognised in it."""

    @property
    def specials(self) -> tuple[str, ...]:
        """Special tokens as they are written."""


class HashTokenizer:
    """Stands in for a vocabulary where random weights run without one: an id per four characters
    of a word. Ids stay below ``limit``."""

    specials: tuple[str, ...] = ()

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def __call__(self, text: str) -> list[int]:
        """See :class:`Tokenizer`."""
        pieces = [word[i : i + 4] for word in text.split() for i in range(0, len(word), 4)]
        return [_hash(piece) % self._limit for piece in pieces]


@dataclass(frozen=True, slots=True)
class KnownIds:
    """A tokenizer whose ids are below ``limit``, the size of the model's table: another would end
    every stream on the device. Raises PromptError for one that is not."""

    tokenizer: Tokenizer
    limit: int

    @property
    def specials(self) -> tuple[str, ...]:
        """See :class:`Tokenizer`."""
        return self.tokenizer.specials

    def __call__(self, text: str) -> list[int]:
        """See :class:`Tokenizer`."""
        ids = self.tokenizer(text)
        if ids and not 0 <= min(ids) <= max(ids) < self.limit:
            raise PromptError(
                f"the vocabulary gives id {max(ids)} for a text, and the model has {self.limit}: "
                f"the vocabulary is another model's"
            )
        return ids


def role_ids(tokenizer: Tokenizer) -> tuple[int, ...]:
    """Ids of the opening of the assistant's turn."""
    return tuple(tokenizer(ROLE))


def instruct_ids(tokenizer: Tokenizer, instruct: str) -> tuple[int, ...]:
    """Ids of an instruction, framed as the user's turn; nothing for an empty one."""
    plain, _ = without_specials(instruct, tokenizer.specials)
    if not plain.strip():
        return ()
    return tuple(tokenizer(INSTRUCT[0] + plain.strip() + INSTRUCT[1]))


def without_specials(text: str, specials: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """``text`` with every special token replaced by a space, and which were found. Otherwise a
    text could end its own turn."""
    specials = tuple(specials)
    if not any(first in text for first in _heads(specials).firsts):
        return text, ()
    found = tuple(special for special in specials if special in text)
    for special in found:
        text = text.replace(special, " ")
    if any(special in text for special in specials):
        # Taking one out can put another together.
        return without_specials(text, specials)[0], found
    return text, found


@dataclass(slots=True)
class TokenStream:
    """The text of one utterance. ``removed`` collects special tokens that were taken out."""

    tokenizer: Tokenizer
    removed: list[str] = field(default_factory=list)
    characters: int = 0
    _held: str = ""
    _begun: bool = False

    def push(self, delta: str) -> list[int]:
        """Add text; the ids that became certain."""
        self.characters += len(delta)
        self._held, found = without_specials(self._held + delta, self.tokenizer.specials)
        self.removed += found
        certain = self._held[: self._begun_special()]
        cut = last_cut(certain)
        if not cut and len(certain) > MOST_HELD:
            cut = len(certain)
        return self._take(cut)

    def flush(self) -> list[int]:
        """The ids of everything so far but space at its end; the last word may be unfinished."""
        return self._take(len(self._held.rstrip()))

    def _begun_special(self) -> int:
        """Where a special token begins that later text may complete; else the end."""
        held, heads = self._held, _heads(self.tokenizer.specials)
        for index in range(max(0, len(held) - heads.longest), len(held)):
            if held[index] in heads.firsts and held[index:] in heads.begun:
                return index
        return len(held)

    def _take(self, cut: int) -> list[int]:
        piece, self._held = self._held[:cut], self._held[cut:]
        if not self._begun:
            piece = piece.lstrip()
        self._begun = self._begun or bool(piece)
        return self.tokenizer(piece) if piece else []


class _Heads(NamedTuple):
    """How special tokens begin: their first characters, all proper beginnings, and how long the
    longest of these is."""

    firsts: frozenset[str]
    begun: frozenset[str]
    longest: int


@lru_cache
def _heads(specials: tuple[str, ...]) -> _Heads:
    begun = frozenset(special[:size] for special in specials for size in range(1, len(special)))
    longest = max(map(len, begun), default=0)
    return _Heads(frozenset(special[:1] for special in specials), begun, longest)


def last_cut(text: str) -> int:
    """Where ``text`` can be cut last without changing the ids of what is before and after; or 0.

    That is before a space or mark that follows a letter or digit, or before a space that follows a
    mark. No word of the vocabulary's splitting rule spans such a place, and composing characters
    does not either.
    """
    for index in range(len(text) - 1, 0, -1):
        if _parts(text[index - 1], text[index]):
            return index
    return 0


def _parts(before: str, after: str) -> bool:
    first, second = unicodedata.category(before)[0], unicodedata.category(after)[0]
    if first in "LN":
        return after.isspace() or second in "PS"
    return first in "PS" and after == " "


def _hash(piece: str) -> int:
    value = 2166136261
    for character in piece:
        value = (value ^ ord(character)) * 16777619 & 0xFFFFFFFF
    return value
