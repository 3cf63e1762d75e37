"""Which part of an utterance's text the listener has heard.

A word counts as heard once its first sample has left the speaker. Closing punctuation that
touches a heard word goes with it.
"""

import unicodedata

from playhead.gateway.messages import SpokenWord

# Unicode general categories: close, final quote, other punctuation (. , ! ? ; : and the like).
_CLOSING = frozenset({"Pe", "Pf", "Po"})


class Script:
    """The text of one utterance as it was sent, and the words placed in its audio so far."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._words: list[SpokenWord] = []
        self._covered = 0
        self.length = 0

    def add_text(self, delta: str) -> None:
        self._parts.append(delta)
        self.length += len(delta)

    def add_words(self, words: tuple[SpokenWord, ...]) -> None:
        """Words in the order of their positions (wire samples)."""
        self._words += words
        self._covered = max([self._covered, *(word.char_end for word in words)])

    @property
    def text(self) -> str:
        return "".join(self._parts)

    @property
    def covered(self) -> int:
        """Code points up to the end of the last word placed."""
        return min(self._covered, self.length)

    def split(self, heard: int, *, whole: bool = False) -> tuple[str, str]:
        """``(heard_text, unheard_text)``; both together are the text as sent.

        ``heard``: samples that left the speaker. ``whole``: these are all there will ever be.
        """
        text = self.text
        if whole:
            return text, ""
        cut, following = 0, len(text)
        for word in self._words:
            if word.position >= heard:
                following = word.char_start
                break
            cut = max(cut, word.char_end)
        cut = min(cut, len(text))
        while 0 < cut < min(following, len(text)) and unicodedata.category(text[cut]) in _CLOSING:
            cut += 1
        return text[:cut], text[cut:]
