"""Texts that were made to hurt, of about so many code points."""

from collections.abc import Callable

HOSTILE: dict[str, Callable[[int], str]] = {
    "combining stack": lambda n: "a" + "\u0301" * (n - 1),
    "right to left": lambda n: "\u202e\u2067abc\u2069" * (n // 6),
    "joined faces": lambda n: "\U0001f469\u200d" * (n // 2),
    "NUL and other controls": lambda n: "\x00\x07\x1b[2J\x85" * (n // 7),
    "expanders": lambda n: "\ufdfa" * n,
    "digits": lambda n: "9" * n,
    "exponents": lambda n: "1e999 " * (n // 6),
    "roman numerals": lambda n: "M" * n,
    "full stops": lambda n: "." * n,
    "abbreviations": lambda n: "e.g. " * (n // 5),
    "acronyms": lambda n: "A.B." * (n // 4),
    "open brackets": lambda n: "(" * n,
    "quotes": lambda n: '"\u201c\u2019' * (n // 3),
    "spaces": lambda n: " " * n,
    "spaces and stops": lambda n: " ." * (n // 2),
    "new lines": lambda n: "\n" * n,
    "one word": lambda n: "x" * n,
    "commas": lambda n: "a," * (n // 2),
    "dates": lambda n: "31/12/1999-" * (n // 11),
    "markup": lambda n: "<break time='1e9s'/>" * (n // 20),
    "entities": lambda n: "&lol;" * (n // 5),
}
