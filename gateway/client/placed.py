"""Where the words of one utterance lie in its sound, as far as it has come."""

from dataclasses import replace

from playhead.gateway.heard import Script
from playhead.gateway.messages import SpokenWord


class Placed:
    """``base``: characters that a former server has spoken; ``reached``: where the last word starts
    of which sound has arrived. Both count from the start of the utterance's text."""

    def __init__(self) -> None:
        self.base = 0
        self.reached = 0
        self._words: list[SpokenWord] = []

    def add(self, words: tuple[SpokenWord, ...]) -> tuple[SpokenWord, ...]:
        """Words as their server counts them; the same as the caller does."""
        self._words += words
        counted = tuple(
            replace(w, char_start=w.char_start + self.base, char_end=w.char_end + self.base)
            for w in words
        )
        if counted:
            self.reached = counted[-1].char_start
        return counted

    def moved(self) -> None:
        """The rest is spoken by another server, from the last word that had begun to arrive."""
        self.base = self.reached
        self._words.clear()

    def split(self, text: str, heard: int) -> tuple[str, str]:
        """What of ``text`` was heard and what not; ``heard``: samples of the latest server."""
        script = Script()
        script.add_text(text[self.base :])
        script.add_words(tuple(self._words))
        spoken, rest = script.split(heard)
        return text[: self.base] + spoken, rest
