"""How long an utterance may get before it is ended although its model does not end it. Pure.

A model that draws what comes next may never draw the end, and some texts make that likely. Models
have bounds of their own; this one holds for all, and is far from what honest speech takes: a part
for short texts, and four times what the text is expected to take beyond it.
"""

import re
from dataclasses import dataclass
from typing import Final

PLAIN: Final = 0.1
"""Seconds that a letter of an alphabet, a space or a mark takes in slow speech (usual: 0.07)."""
OTHER: Final = 0.5
"""The same of a digit, a symbol, an emoji or a character of Chinese, each of which is read out as a
syllable or as words."""

_OTHERS = re.compile(r"[^A-Za-z\s.,;:!?'\"()\u00c0-\u06ff-]")


def expected(text: str) -> float:
    """Seconds that ``text`` takes at usual speed, rather too many than too few."""
    others = len(_OTHERS.findall(text))
    return PLAIN * (len(text) - others) + OTHER * others


@dataclass(frozen=True, slots=True)
class Longest:
    """``base`` seconds for every utterance, ``factor`` times what its text is expected to take."""

    base: float = 30.0
    factor: float = 4.0

    def seconds(self, text: float, speed: float) -> float:
        """The most for a text that is expected to take ``text`` seconds at usual speed, spoken at
        ``speed`` (below 1: slowly)."""
        return self.base + self.factor * text / min(speed, 1.0)
