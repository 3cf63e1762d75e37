"""Text of a segment to phoneme ids of the voice, keeping track of every word.

Words are the white-space-separated words of the text as typed. Cleaning and normalising change
their number ("$5.99", "3:30 pm"), so each is followed to its first phoneme.
"""

import contextlib
import functools
import json
import logging
import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hibari
import numpy as np
import numpy.typing as npt
from hibari.g2p import G2P
from hibari.g2p.normalize import normalize
from hibari.g2p.oov import OOV
from playhead.engine.models.hibari.align import align
from playhead.engine.models.hibari.clean import MAX_LETTERS, Cleaned, clean
from playhead.engine.models.hibari.shape import MAX_PHONEMES

_log = logging.getLogger(__name__)
_WORD = re.compile(r"\S+")
_PIECE = 20
"""Letters the net for unknown words is given at once; it reads no more than 24."""
_RULE_FAULTS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What rules written for well-formed text may raise on any text; none is known to do so."""
_SILENT = frozenset(';:,.!?—…"()“” ˈˌː')
_CLAUSE = frozenset(",;:.!?—…")
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Mark:
    """A typed word and the index of its first phoneme in the ids of its piece."""

    text: str
    char_start: int
    char_end: int
    phoneme: int


@dataclass(frozen=True, slots=True)
class Piece:
    """What the backbone takes in one run. No ``ids``: nothing of it can be heard."""

    ids: npt.NDArray[np.int64]  # [L], with the silence token at both ends; or empty
    marks: tuple[Mark, ...]
    last: bool  # False: the same segment goes on in the next piece


@dataclass(frozen=True, slots=True)
class Notice:
    """Something was not spoken as written."""

    code: str
    message: str
    text: str


@dataclass(frozen=True, slots=True)
class _Phonemes:
    """``text``: phonemes of a segment; ``starts[i]``: where the i-th normalised word's begin."""

    text: str
    starts: list[int]


class Frontend:
    """Loads lexicon and rules (0.5 s). Calls may run beside each other."""

    def __init__(self) -> None:
        assets = Path(hibari.__file__).parent / "assets"
        self._ids: dict[str, int] = json.loads((assets / "vocab.json").read_text("utf-8"))
        self._unknown = OOV(str(assets / "oov.onnx"))
        self._g2p = G2P(oov=functools.lru_cache(maxsize=4096)(self._read_unknown))

    def plan(self, text: str, offset: int) -> tuple[list[Piece], list[Notice]]:
        """Pieces for a segment's text that starts at code point ``offset`` of the utterance."""
        found = list(_WORD.finditer(text))
        cleaned = [clean(match.group()) for match in found]
        phonemes, starts = self._phonemise(cleaned)
        notices = _notices(found, cleaned, _unsaid(found, phonemes, starts))
        marks = [
            Mark(match.group(), offset + match.start(), offset + match.end(), phonemes.starts[at])
            for match, at in zip(found, starts, strict=True)
        ]
        return self._cut(phonemes.text, marks), notices

    def _phonemise(self, cleaned: Sequence[Cleaned]) -> tuple[_Phonemes, list[int]]:
        """Phonemes, and for each typed word the normalised word it starts at."""
        before = [word for item in cleaned for word in item.words]
        try:
            after = normalize(" ".join(before)).split()
            phonemes = self._read(after)
        except _RULE_FAULTS as fault:
            # Neither the text nor the fault's own words, which may quote it: texts are not logged.
            where = "".join(traceback.format_tb(fault.__traceback__))
            told = "the reading rules failed (%s): words are read one by one\n%s"
            _log.error(told, type(fault).__name__, where)
            after, phonemes = before, self._read_singly(before)
        at = [*align(before, after, _words_alone), len(after)]
        starts = []
        index = 0
        for item in cleaned:
            starts.append(at[index])
            index += len(item.words)
        return phonemes, starts

    def _read(self, words: Sequence[str]) -> _Phonemes:
        tokens = self._g2p.phonemize_tokens(self._g2p.tokenize(" ".join(words)))
        text = ""
        starts = [0]
        for token in tokens:
            text += token.phonemes or ""
            if token.whitespace:
                text += " "
                starts.append(len(text))
        # A token that spans words shows up as too few starts: its words begin together.
        starts = (starts + [starts[-1]] * len(words))[: len(words)]
        return _Phonemes(text, [*starts, len(text)])

    def _read_singly(self, words: Sequence[str]) -> _Phonemes:
        """As :meth:`_read`, leaving out words that break the rules: they end up without sound."""
        text = ""
        starts = []
        for word in words:
            starts.append(len(text))
            with contextlib.suppress(*_RULE_FAULTS):
                text += self._read(normalize(word).split()).text + " "
        return _Phonemes(text, [*starts, len(text)])

    def _read_unknown(self, word: str) -> str | None:
        """Phonemes of a word the lexicon lacks, long ones in pieces."""
        word = word[:MAX_LETTERS]
        parts = [
            self._unknown(word[start : start + _PIECE]) for start in range(0, len(word), _PIECE)
        ]
        return "".join(part or "" for part in parts) or None

    def _cut(self, phonemes: str, marks: Sequence[Mark]) -> list[Piece]:
        """Divides what is too long for one run, and turns phonemes into ids."""
        pieces = []
        bounds = _bounds(phonemes)
        for start, stop in bounds:
            last = stop == bounds[-1][1]
            inside = [
                mark
                for mark in marks
                if start <= mark.phoneme < stop or (last and mark.phoneme >= stop)
            ]
            pieces.append(self._piece(phonemes, start, stop, inside, last=last))
        return pieces

    def _piece(
        self, phonemes: str, start: int, stop: int, marks: Sequence[Mark], *, last: bool
    ) -> Piece:
        part = phonemes[start:stop]
        index = np.cumsum([0, 1, *(char in self._ids for char in part)])
        placed = tuple(
            Mark(
                mark.text,
                mark.char_start,
                mark.char_end,
                int(index[min(mark.phoneme - start, len(part)) + 1]),
            )
            for mark in marks
        )
        if _is_silent(part):
            return Piece(np.zeros(0, np.int64), placed, last)
        ids = [0, *(self._ids[char] for char in part if char in self._ids), 0]
        return Piece(np.array(ids, np.int64), placed, last)


def _bounds(phonemes: str) -> list[tuple[int, int]]:
    """Parts of at most MAX_PHONEMES: cut after a clause mark, else at a space, else anywhere."""
    bounds = []
    start = 0
    while len(phonemes) - start > MAX_PHONEMES:
        limit = start + MAX_PHONEMES
        spaces = [at + 1 for at in range(start + 1, limit) if phonemes[at] == " "]
        clauses = [at for at in spaces if phonemes[at - 2] in _CLAUSE]
        late = [at for at in clauses if at > start + MAX_PHONEMES // 2]
        stop = (late or spaces or [limit])[-1]
        bounds.append((start, stop))
        start = stop
    return [*bounds, (start, len(phonemes))]


def _is_silent(phonemes: str) -> bool:
    return all(char in _SILENT for char in phonemes)


def _words_alone(word: str) -> int:
    return len(normalize(word).split())


def _unsaid(
    found: Sequence[re.Match[str]], phonemes: _Phonemes, starts: Sequence[int]
) -> list[bool]:
    """Which typed words have letters or digits and got no sound."""
    ends = [*starts, len(phonemes.starts) - 1][1:]
    unsaid = []
    for match, start, end in zip(found, starts, ends, strict=True):
        stop = phonemes.starts[max(end, min(start + 1, len(phonemes.starts) - 1))]
        meant = any(char.isalnum() for char in match.group())
        unsaid.append(meant and _is_silent(phonemes.text[phonemes.starts[start] : stop]))
    return unsaid


def _notices(
    found: Sequence[re.Match[str]], cleaned: Sequence[Cleaned], unsaid: Sequence[bool]
) -> list[Notice]:
    """One notice per kind and segment, however many words it concerns."""
    words = [match.group() for match in found]
    pairs = list(zip(words, cleaned, strict=True))
    silent = [
        item.dropped or word
        for (word, item), without_sound in zip(pairs, unsaid, strict=True)
        if item.dropped or without_sound
    ]
    shortened = [word for word, item in pairs if item.shortened]
    foreign = [word for word, item in pairs if item.transliterated]
    rows = (
        ("unspeakable_text", "the voice cannot say", silent),
        ("text_normalized", f"only the first {MAX_LETTERS} letters are spoken of", shortened),
        ("text_normalized", "read by its Latin spelling", foreign),
    )
    return [_notice(code, message, concerned) for code, message, concerned in rows if concerned]


def _notice(code: str, message: str, words: Sequence[str]) -> Notice:
    text = _shorten(_printable(" ".join(words)))
    return Notice(code, f"{message}: {text}", text)


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def frames_before(durations: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """First frame of each phoneme id: [L + 1]. The backbone counts in pairs of frames."""
    return np.concatenate([[0], 2 * np.cumsum(durations, dtype=np.int64)])
