"""Turns one typed word into words the voice's grapheme-to-phoneme rules can take.

Whatever is typed must be survived in linear time: what has a reading is rewritten, what has none is
dropped and named. Each input word is treated on its own, so its position in the text stays known.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from playhead.engine.models.hibari.letters import (
    LETTERS,
    READINGS,
    SYMBOLS,
    TRANSLITERATION,
)

MAX_LETTERS = 120
"""Letters of one word that are spoken; far beyond any word of English."""
MAX_NUMBER_DIGITS = 15
"""Longer numbers are read digit by digit."""
MAX_COMBINING = 4
_MARK_RUN = 6

_PLAIN = re.compile(r"[A-Za-z]{1,24}(?:['-][A-Za-z]{1,24})?[.,;:!?]?")
_ADDRESS = re.compile(
    r"(?:https?://|ftp://|www\.)\S+"
    r"|[\w.+-]{1,64}@(?:[\w-]{1,63}\.)+[A-Za-z]{2,24}"
    r"|(?:[\w-]{1,63}\.)+(?:com|org|net|edu|gov|io|dev|app|co|uk|de|fr|eu|info|biz|ai|me|tv)(?:/\S*)?",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"^(?:https?://|ftp://)?(?:www\.)?", re.IGNORECASE)
_ADDRESS_MARKS = {
    ".": "dot",
    "/": "slash",
    "@": "at",
    "-": "dash",
    "_": "underscore",
    ":": "colon",
    "?": "question mark",
    "=": "equals",
    "&": "and",
    "#": "hash",
    "%": "percent",
    "+": "plus",
    "~": "tilde",
}
_LONG_NUMBER = re.compile(rf"\d[\d,]{{{MAX_NUMBER_DIGITS},}}")
_SAME_LETTER = re.compile(r"([^\W\d_])\1{3,}")
_LETTER_RUN = re.compile(rf"[^\W\d_]{{{MAX_LETTERS + 1},}}")
_MARKS = re.compile(rf"[^\w\s]{{{_MARK_RUN + 1},}}")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """``words``: what to say. ``dropped``: characters with no reading."""

    words: tuple[str, ...]
    dropped: str = ""
    shortened: bool = False  # only the first letters of it
    transliterated: bool = False  # another script, read by its Latin spelling


def clean(word: str) -> Cleaned:
    """``word`` has no white space and may be anything else."""
    if _PLAIN.fullmatch(word) and not _SAME_LETTER.search(word):
        return Cleaned((word,))
    if len(word) == 1 and word.lower() in TRANSLITERATION:
        return Cleaned((_name(word),))
    text, dropped = _convert(word)
    text, marks = _limit_marks(text)
    text = _spell_address(text)
    text = _LONG_NUMBER.sub(lambda found: _spell_digits(found.group()), text)
    shorter = _LETTER_RUN.sub(lambda found: found.group()[:MAX_LETTERS], _calm(text))
    return Cleaned(
        tuple(shorter.split()),
        dropped + marks,
        shortened=len(shorter) < len(_calm(text)),
        transliterated=any(char.lower() in TRANSLITERATION for char in word),
    )


def _name(letter: str) -> str:
    """ "π" standing alone is a symbol: "pi"."""
    return unicodedata.name(letter).rpartition("LETTER ")[2].split(" WITH ")[0].lower()


def _calm(text: str) -> str:
    """ "Soooooo" is said like "soo": a letter is not held by writing it often."""
    return _SAME_LETTER.sub(r"\1\1", text)


def _limit_marks(text: str) -> tuple[str, str]:
    """Rulers and other long runs of marks are no words; of "?!?!?!?!?!" the start is enough."""
    if text.strip("=-_*~#+<>|^%&@$/\\") == "" and len(text) > 2:
        return "", text[:_MARK_RUN]
    return _MARKS.sub(lambda found: found.group()[:3], text), ""


def _spell_address(text: str) -> str:
    found = _ADDRESS.match(text.lstrip("(<[\"'"))
    if found is None:
        return text.replace("](", "] (")  # a Markdown link is not a phoneme annotation
    address = found.group().rstrip(".,;:!?)>]\"'")
    start = text.index(address)
    bare = _SCHEME.sub("", address).rstrip("/")
    spelled = "".join(
        f" {_ADDRESS_MARKS[char]} " if char in _ADDRESS_MARKS else char for char in bare
    )
    return f"{text[:start]}{spelled.strip()}{text[start + len(address) :]}"


def _spell_digits(number: str) -> str:
    return " " + " ".join(number.replace(",", "")) + " "


def _convert(word: str) -> tuple[str, str]:
    """Known characters, others by compatibility form, by name, or dropped: (text, dropped)."""
    if word.isascii():
        kept = "".join(char for char in word if char.isprintable())
        return kept, ""
    kept_parts: list[str] = []
    dropped: list[str] = []
    for char in unicodedata.normalize("NFC", _thin_out(word)):
        readings = list(_readings(char))
        if None in readings:
            dropped.append("\ufffd" if unicodedata.category(char) == "Cs" else char)
            kept_parts.append(" ")
        kept_parts += (reading for reading in readings if reading is not None)
    return "".join(kept_parts), "".join(dropped)


def _thin_out(word: str) -> str:
    """Stacks of combining marks are decoration: normalising keeps only the first few."""
    thinned: list[str] = []
    stacked = 0
    for char in word:
        stacked = stacked + 1 if unicodedata.combining(char) else 0
        if stacked <= MAX_COMBINING:
            thinned.append(char)
    return "".join(thinned)


def _readings(char: str) -> Iterator[str | None]:
    """Text that stands for ``char``; "" for what has no sound of its own; None: no reading."""
    if char in READINGS:
        yield READINGS[char]
        return
    if _known(char):
        yield char
        return
    if char.lower() in TRANSLITERATION:
        latin = TRANSLITERATION[char.lower()]
        yield latin if char.islower() else latin.capitalize()
        return
    expanded = unicodedata.normalize("NFKC", char)
    if expanded != char:
        for part in expanded:
            yield from _readings(part)
        return
    yield _by_property(char)


def _known(char: str) -> bool:
    return char in LETTERS or char in SYMBOLS or (char.isascii() and char.isprintable())


def _by_property(char: str) -> str | None:
    category = unicodedata.category(char)
    if category in ("Mn", "Me", "Mc", "Cf", "Cc", "Sk"):
        return ""
    if category == "Nd":
        return str(unicodedata.digit(char))
    if category in ("Pd", "Pc"):
        return "-"
    if category in ("Ps", "Pe", "Pi", "Pf"):
        return '"'
    base = unicodedata.normalize("NFD", char)[0]
    return base if _known(base) else None
