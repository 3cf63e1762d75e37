"""Secrets in lines and messages, blotted out. Pure.

A secret is known by the name before it, however that is written (``apiKey``, ``X-API-KEY``,
``access_token``) and whatever stands between them (a header, a query, JSON, a dump of Python's or
of a library's), by the form that keys have, or by its place in a URL. Names are those of
``access_places``, and whatever ends like them. Nothing here takes more than linear time.
"""

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote

from playhead.gateway.access_places import PLACES, PUBLIC_PROTOCOLS, Where, canonical, names

BLOT: Final = "***"

_NAMED: Final = (Where.HEADER, Where.QUERY, Where.MESSAGE, Where.BODY)
_IN_QUERY: Final = frozenset({"key", "sig", "signature", "xamzsignature", "xgoogsignature"})
"""Names by themselves: secrets in a query, and before a long value in quotes. Not ``monkey=a``."""
_BY_NAME: Final = (
    frozenset(canonical(place.name) for place in PLACES if place.where in _NAMED)
    | frozenset({"setcookie", "jwt"})
) - _IN_QUERY
_ENDINGS: Final = (
    *("token", "secret", "password", "passwd", "pwd", "passphrase", "authorization"),
    *("credential", "credentials", "apikey", "authkey", "accesskey", "secretkey"),
    *("subscriptionkey", "privatekey"),
)
"""What the names of secrets end with, in any service. ``max_tokens`` does not."""
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_OF_TEXT: Final = frozenset(
    {
        *("first", "last", "next", "previous", "per", "new", "text", "audio", "image", "speech"),
        *("eos", "bos", "pad", "unk", "sep", "cls", "mask", "special", "stop", "start", "end"),
        *("input", "output", "prompt", "completion", "codec", "semantic", "acoustic"),
    }
)
"""Words that make a token one of a language model's: ``time_to_first_token``."""
_PROTOCOLS: Final = "secwebsocketprotocol"
_LINES: Final = frozenset({"cookie", "setcookie"})
"""Headers that are secret to the end of the line."""
_PHRASES: Final = ("passphrase", "privatekey")
"""What the names of secrets of several words end with."""

# A letter of a name, also as a URL writes it.
_LETTER: Final = r"(?:[\w.-]|%(?:2[DdEe]|5[Ff]|[46][1-9A-Fa-f]|[57][0-9Aa]))"
_QUOTE: Final = r"""(?:\\*+["']|%22|%27)"""
_PLAIN: Final = r"(?:[bBuUrR]{1,2}(?=[\"']))?"
_NAME: Final = re.compile(
    # Whole names alone are tried, so that a long one is not tried from each of its letters.
    rf"(?:(?<![\w.%-])|(?<=%2[0267CcFf])|(?<=%3[BbDdFfAa])|(?<=%[57][BbDd]))[.-]*+({_LETTER}++)"
    rf"(?:{_QUOTE})?[ \t]*+(?:=>|[=:]|%3[AaDd])[ \t]*+"
)
_PAIR: Final = re.compile(rf"[(\[]\s*+{_PLAIN}([\"'])([\w.-]++)\1\s*+,\s*+(?={_PLAIN}[\"'])")
_SENTENCE: Final = (
    r"(?!(?:an?|at|expected|is|missing|must|one|none|null|true|false|bearer|token|basic)"
    r"(?:[\s.,;:)\]}]|$))"
)
"""What follows in sentences of our own: "token: a string", "the bearer token is missing"."""
_BARE: Final = rf"{_SENTENCE}[^\s\"'\\&,;}})\]]++"
_SCHEME: Final = r"(?:(?:bearer|token|basic|negotiate|ntlm|key|api-?key)(?:\s|%20|\+)++)?"
_VALUE: Final = re.compile(
    rf"(?i){_PLAIN}(?:"
    r"[\[({]([^\])}\n]*+)"
    rf"|\"{_SCHEME}((?:[^\"\\\n]|\\.)*+)"
    rf"|'{_SCHEME}((?:[^'\\\n]|\\.)*+)"
    rf"|\\++[\"']{_SCHEME}([^\"'\\\n]*+)"
    rf"|%2[27]{_SCHEME}((?:(?!%2[27])\S)*+)"
    rf"|{_SCHEME}({_BARE}))"
)
_REST: Final = re.compile(rf"[\[(]?[ \t]*+{_PLAIN}(?:\"([^\"\n]*+)|'([^'\n]*+)|([^\n]*+))")
_FIELDS: Final = re.compile(r"(?i)[\"']?(?:digest|hawk|aws4[\w-]*)\s")
"""Schemes whose credentials are several fields (RFC 7616)."""
_IN_URL: Final = ("?", "&", "%26", "%3F", "%3f")
_LONG: Final = re.compile(rf"{_PLAIN}[\"'][\w.~+/=-]{{16,256}}[\"']")

_ALONE: Final = r"(?:(?<![\w-])|(?<=%2[0267]))"
_PREFIXES: Final = "|".join(re.escape(name) for name in sorted(names(Where.PROTOCOL)))
_BEFORE: Final = "|".join(sorted(names(Where.PROTOCOL_NEXT)))
_FORMS: Final = (
    # Keys and tickets of our own, wherever they stand (access_keys.py).
    (("ph",), re.compile(r"(ph_[a-z2-7]{8}_|pht_)[A-Za-z0-9_-]{16,}"), rf"\1{BLOT}"),
    # Those of OpenAI, Cartesia and ElevenLabs; tokens of RFC 7519, which Deepgram and others give.
    (
        ("sk", "ek"),
        re.compile(rf"{_ALONE}([se]k[-_])(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{{16,}}"),
        rf"\1{BLOT}",
    ),
    (("eyj",), re.compile(rf"{_ALONE}eyJ[\w-]{{8,}}\.[\w-]{{8,}}(?:\.[\w-]*)?"), BLOT),
    (
        tuple(names(Where.PROTOCOL)),
        re.compile(rf"((?:{_PREFIXES})[\"']?)(?!\*)[^\s\"',;)\]]+"),
        rf"\1{BLOT}",
    ),
    (
        tuple(names(Where.PROTOCOL_NEXT)),
        re.compile(
            rf"(?i)\b((?:{_BEFORE})[\"']?\s*,\s*{_PLAIN}[\"']?)"
            r"(?=[\w.~+/=-]*\d)[\w.~+/=-]{16,}"
        ),
        rf"\1{BLOT}",
    ),
    (("bearer",), re.compile(rf"(?i)\b(bearer(?:\s|%20)++){_BARE}"), rf"\1{BLOT}"),
    # Keys of Deepgram, whose scheme this is.
    (("token",), re.compile(r"(?i)\b(token(?:\s|%20)++)[0-9a-f]{32,}"), rf"\1{BLOT}"),
    # RFC 7468; the end may be missing.
    (
        ("private key",),
        re.compile(r"(-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----)(?:[^-]++|-(?!----END))++"),
        rf"\1{BLOT}",
    ),
    # What stands before the host of a URL is a name and a password, or a key; either may have an @
    # that should have been escaped.
    (("://",), re.compile(r"(://)[^/\s\"'?#<>]+@"), rf"\1{BLOT}@"),
)
"""What must be there, in lower case, for a search to be worth its time; the search; and what is put
in the place of what it finds."""


def redact(text: str) -> str:
    """``text`` without the secrets in it: what follows ``Bearer``, ``token=``, ``apiKey:`` and
    their like, what looks like a key, and the user of a URL."""
    if "," in text:
        text = _named(text, _PAIR, 2)
    if "=" in text or ":" in text or "%3" in text:
        text = _named(text, _NAME, 1)
    lower = text.lower()
    for hints, form, blotted in _FORMS:
        for hint in hints:
            if hint in lower:
                text = form.sub(blotted, text)
                break
    return text


def is_secret(name: str) -> bool:
    """Whether what has this name, in any spelling, is to be seen by nobody."""
    return _is_secret(name, canonical(name))


def _is_secret(name: str, plain: str) -> bool:
    if plain in _BY_NAME:
        return True
    if not plain.endswith(_ENDINGS):
        return False
    words = [word.lower() for word in _WORDS.findall(name)]
    return not (len(words) > 1 and words[-1] == "token" and words[-2] in _OF_TEXT)


def _named(text: str, names_: re.Pattern[str], group: int) -> str:
    """Blots out the values behind secret names that ``names_`` finds."""
    parts: list[str] = []
    done = 0
    for match in names_.finditer(text):
        if match.start() < done:
            continue
        found = _find(text, match, unquote(match[group]))
        if found is not None:
            begin, end, told = found
            parts += [text[done:begin], told]
            done = end
    return "".join([*parts, text[done:]]) if parts else text


def _find(text: str, match: re.Match[str], name: str) -> tuple[int, int, str] | None:
    """Where the secret behind a name begins and ends, and what is put in its place."""
    plain = canonical(name)
    if plain == _PROTOCOLS:
        return _span(_REST.match(text, match.end()), _protocols)
    secret = _is_secret(name, plain)
    if secret and (plain in _LINES or plain.endswith(_PHRASES) or _FIELDS.match(text, match.end())):
        return _span(_REST.match(text, match.end()), _blot)
    if secret or (plain in _IN_QUERY and _is_key(text, match)):
        return _span(_VALUE.match(text, match.end()), _blot)
    return None


def _is_key(text: str, match: re.Match[str]) -> bool:
    before = text[max(0, match.start() - 3) : match.start()]
    return before.endswith(_IN_URL) or _LONG.match(text, match.end()) is not None


def _span(value: re.Match[str] | None, told: Callable[[str], str]) -> tuple[int, int, str] | None:
    if value is None or not value.lastindex or not value[value.lastindex]:
        return None
    begin, end = value.span(value.lastindex)
    return begin, end, told(value[value.lastindex])


def _blot(_: str) -> str:
    return BLOT


def _protocols(offered: str) -> str:
    """Of offered subprotocols those that are known, which tell what a client speaks."""
    found = re.split(r"(\s*,\s*|\sor\s)", offered)
    return "".join(
        part if part in ("", " or ") or "," in part or PUBLIC_PROTOCOLS.fullmatch(part) else BLOT
        for part in found
    )
