"""When each character of a context is spoken, from the times of its words.

A word's characters share its time evenly, and what stands between two words (spaces, punctuation)
belongs to the first of them. Times are told in two ways, as the clients of this protocol read
them: from the end of what was told before (default), or from the start of the context
(``sync_alignment``). Every alignment ends where the audio does that has been sent by then, so that
clients which add the spans up stay right.
"""

from collections.abc import Sequence
from typing import Any

from playhead.gateway.messages import SpokenWord


class Alignment:
    """Of one context. Positions are samples at ``rate``."""

    def __init__(self, rate: int, *, absolute: bool) -> None:
        self._rate = rate
        self._absolute = absolute
        self._text = ""
        self._told = 0  # characters
        self._until = 0  # milliseconds up to which times have been told

    def add_text(self, text: str) -> None:
        """More of the text, as it was sent."""
        self._text += text

    def align(
        self, words: Sequence[SpokenWord], end: int, *, final: bool = False
    ) -> dict[str, list[Any]] | None:
        """For words that start in audio which ends at ``end``; ``final``: no more will come.

        None: there is nothing to tell.
        """
        spans = self._spans(words, self._milliseconds(end), final=final)
        if not spans:
            return None
        base = 0 if self._absolute else self._until
        chars: list[str] = []
        starts: list[int] = []
        for text, begin, until in spans:
            step = (until - begin) / len(text)
            chars += text
            starts += [round(begin + number * step) for number in range(len(text))]
        self._until = spans[-1][2]
        ends = [*starts[1:], self._until]
        return {
            "chars": chars,
            "charStartTimesMs": [start - base for start in starts],
            "charDurationsMs": [end - start for start, end in zip(starts, ends, strict=True)],
        }

    def _spans(
        self, words: Sequence[SpokenWord], end: int, *, final: bool
    ) -> list[tuple[str, int, int]]:
        """Stretches of text that have not been told, with the times at which they begin and end."""
        cuts = [(self._told, self._until)]
        for word in words:
            cuts.append((max(word.char_start, cuts[-1][0]), self._milliseconds(word.position)))
        last = words[-1].char_end if words else self._told
        stop = len(self._text) if final else max(last, self._told)
        spans = []
        for number, (at, begin) in enumerate(cuts):
            following = cuts[number + 1] if number + 1 < len(cuts) else (stop, max(end, begin))
            text = self._text[at : following[0]]
            if text:
                begin = max(begin, self._until)
                spans.append((text, begin, max(begin, following[1])))
        if final and (spans or self._told) and not self._text.endswith(" "):
            # Clients take a word for complete when a space follows it.
            at = spans[-1][2] if spans else self._until
            spans.append((" ", at, at))
        self._told = stop
        return spans

    def _milliseconds(self, samples: int) -> int:
        return round(samples * 1_000 / self._rate)
