"""Cuts a growing text into pieces that can be spoken before the rest is known.

A cut is made as soon as nothing that may follow can undo it. Every decision looks at a bounded
window of the text and never at how the text arrived, so any division into deltas gives the same
segments as the whole text at once.
"""

import unicodedata
from dataclasses import dataclass
from enum import Enum

from playhead.engine.text_rules import CLOSERS, FINAL_DOT, NEVER_FINAL, STARTERS, TERMINALS

MAX_CHARS = 250
"""Longest segment, in code points. Well under the 400 phonemes the voice takes at once."""
LOOK_AHEAD = 32
"""How far beyond a possible cut the following text may decide about it."""
CLAUSE_MARKS = frozenset(",;:—")
MIN_CLAUSE_WORDS = 3
MIN_CLAUSE_CHARS = (12, 50)
"""Shortest clause that becomes a segment of its own: for the first segment, for the second."""
MIN_CLAUSE_CHARS_LATER = 100


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the text to be spoken on its own: ``text`` starts at code point ``start``."""

    text: str
    start: int


class _Verdict(Enum):
    CUT = "cut"
    GO_ON = "go on"
    WAIT = "wait"  # the text so far cannot tell


class Segmenter:
    """Incremental splitter for the text of one utterance. Pure: no clock, no threads."""

    def __init__(self) -> None:
        self._text = ""  # from the segment's first character on
        self._offset = 0  # of self._text[0] in the utterance's text
        self._scan = 0  # everything before it has been judged
        self._count = 0  # segments given so far
        self._ended = False

    def push(self, delta: str) -> list[Segment]:
        """Add text; returns the segments that became certain. ValueError after :meth:`end`."""
        if self._ended:
            raise ValueError("text was pushed after the end of the utterance's text")
        self._text += delta
        return self._take(final=False)

    def flush(self) -> list[Segment]:
        """Everything pushed so far, without waiting for the clause to end."""
        return self._take(final=True)

    def end(self) -> list[Segment]:
        """As :meth:`flush`; no text may follow."""
        self._ended = True
        return self._take(final=True)

    def _take(self, *, final: bool) -> list[Segment]:
        found: list[Segment] = []
        begin = 0
        while (cut := self._next_cut(begin, final=final)) is not None:
            found.append(self._segment(begin, cut))
            begin = cut
        begin = _skip_space(self._text, begin)
        self._text = self._text[begin:]
        self._offset += begin
        self._scan = max(0, self._scan - begin)
        return found

    def _segment(self, begin: int, cut: int) -> Segment:
        begin = _skip_space(self._text, begin)
        self._count += 1
        return Segment(self._text[begin:cut].rstrip(), self._offset + begin)

    def _next_cut(self, begin: int, *, final: bool) -> int | None:
        """Index after the segment that starts at ``begin``; None: more text is needed."""
        text = self._text
        begin = _skip_space(text, begin)
        limit = begin + MAX_CHARS
        self._scan = max(self._scan, begin)
        while self._scan < min(len(text), limit):
            verdict, cut = self._judge(begin, self._scan, final=final)
            if verdict is _Verdict.CUT:
                self._scan = cut
                return cut
            if verdict is _Verdict.WAIT:
                return None
            self._scan += 1
        if len(text) >= limit:
            self._scan = _forced_cut(text, begin, limit)
            return self._scan
        if final and begin < len(text):
            self._scan = len(text)
            return len(text)
        return None

    def _judge(self, begin: int, at: int, *, final: bool) -> tuple[_Verdict, int]:
        mark = self._text[at]
        if mark in TERMINALS:
            return _judge_terminal(self._text, begin, at, final=final)
        if mark == "\n":
            return _judge_newline(self._text, begin, at, final=final)
        if mark in CLAUSE_MARKS:
            return self._judge_clause(begin, at, final=final)
        return _Verdict.GO_ON, at

    def _judge_clause(self, begin: int, at: int, *, final: bool) -> tuple[_Verdict, int]:
        length = at + 1 - begin
        least = (*MIN_CLAUSE_CHARS, MIN_CLAUSE_CHARS_LATER)[min(self._count, 2)]
        if length < least or len(self._text[begin:at].split()) < MIN_CLAUSE_WORDS:
            return _Verdict.GO_ON, at
        if at + 1 >= len(self._text):
            return (_Verdict.GO_ON if final else _Verdict.WAIT), at
        return (_Verdict.CUT if self._text[at + 1].isspace() else _Verdict.GO_ON), at + 1


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _judge_newline(text: str, begin: int, at: int, *, final: bool) -> tuple[_Verdict, int]:
    """A line break ends a segment unless the sentence plainly goes on below (hard-wrapped text)."""
    if not _speakable(text[begin:at]):
        return _Verdict.GO_ON, at
    following = at + 1
    while following < len(text) and following - at < LOOK_AHEAD and text[following].isspace():
        if text[following] == "\n":
            return _Verdict.CUT, at + 1
        following += 1
    if following >= len(text):
        return (_Verdict.GO_ON if final else _Verdict.WAIT), at
    return (_Verdict.GO_ON if text[following].islower() else _Verdict.CUT), at + 1


def _judge_terminal(text: str, begin: int, at: int, *, final: bool) -> tuple[_Verdict, int]:
    """Is the sentence mark at ``at`` the last of a sentence? (Punkt-like rules, no statistics.)"""
    if at > begin and text[at - 1] in TERMINALS:
        return _Verdict.GO_ON, at  # inside a run that was judged at its first mark
    waiting = _Verdict.GO_ON if final else _Verdict.WAIT
    window = at + LOOK_AHEAD
    after = at + 1
    while after < len(text) and after < window and text[after] in TERMINALS:
        after += 1
    marks = text[at:after]
    closed = after
    while closed < len(text) and closed < window and text[closed] in CLOSERS:
        closed += 1
    wide = any(mark in "。！？" for mark in marks)  # noqa: RUF001
    if closed >= len(text) and closed < window:
        return waiting, at
    if not wide and (closed >= window or not text[closed].isspace()):
        return _Verdict.GO_ON, at
    if not _speakable(text[begin:at]) or _is_ellipsis(marks) or _is_enumerator(text[begin:at]):
        return _Verdict.GO_ON, at
    if wide:
        return _Verdict.CUT, closed
    return _judge_following(text, begin, at, closed, marks, waiting)


def _judge_following(
    text: str, begin: int, at: int, closed: int, marks: str, waiting: _Verdict
) -> tuple[_Verdict, int]:
    word = _last_word(text, begin, at) if marks == "." else ""
    if word in NEVER_FINAL or (len(word) == 1 and word.isupper() and word != "I"):
        return _Verdict.GO_ON, at
    doubtful = word in FINAL_DOT or word == "I" or _is_acronym(word)
    if not doubtful and closed == at + len(marks):
        return _Verdict.CUT, closed
    following = _next_word(text, closed, closed + LOOK_AHEAD)
    if following is None:
        return waiting, at
    goes_on = following not in STARTERS if doubtful else following[:1].islower()
    return (_Verdict.GO_ON if goes_on else _Verdict.CUT), closed


def _next_word(text: str, start: int, stop: int) -> str | None:
    """The word after ``start`` in full; "": none before ``stop``; None: not known yet."""
    while start < stop and start < len(text) and text[start].isspace():
        start += 1
    end = start
    while end < stop and end < len(text) and (text[end].isalnum() or text[end] in "'’"):  # noqa: RUF001
        end += 1
    return None if end >= len(text) and end < stop else text[start:end]


def _last_word(text: str, begin: int, at: int) -> str:
    start = at
    while start > begin and not text[start - 1].isspace() and at - start < LOOK_AHEAD:
        start -= 1
    return text[start:at].lstrip("\"'([{“‘")  # noqa: RUF001


def _is_acronym(word: str) -> bool:
    parts = word.split(".")
    return len(parts) > 1 and all(part.isalpha() and len(part) <= 2 for part in parts)


def _is_ellipsis(marks: str) -> bool:
    return "…" in marks or (len(marks) > 1 and set(marks) == {"."})


def _is_enumerator(before: str) -> bool:
    """ "1." or "a)" style list markers belong to what follows them."""
    return before.strip("( ").isdigit()


def _speakable(text: str) -> bool:
    """Is there anything but space, punctuation and control characters?"""
    return any(unicodedata.category(char)[0] not in "ZPC" for char in text)


def _forced_cut(text: str, begin: int, limit: int) -> int:
    """Where to break a segment that has grown too long: clause mark, else space, else anywhere."""
    half = begin + MAX_CHARS // 2
    for at in range(limit - 1, half, -1):
        if text[at].isspace() and text[at - 1] in CLAUSE_MARKS:
            return at
    for at in range(limit - 1, half, -1):
        if text[at].isspace():
            return at
    return limit
