"""How values of settings are written: each parser raises ``ValueError`` saying what it takes."""

import math
import re
import socket
from collections.abc import Callable


def whole(low: int, high: int) -> Callable[[str], int]:
    """A whole number within bounds."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return value

    return parse


def seconds(low: float, high: float) -> Callable[[str], float]:
    """Seconds within bounds."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise ValueError(f"seconds from {low:g} to {high:g}")
        return value

    return parse


def boolean(text: str) -> bool:
    """One of the usual words for yes and no."""
    known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if text.strip().lower() not in known:
        raise ValueError("one of 1, 0, true, false, yes, no")
    return known[text.strip().lower()]


def choice(options: tuple[str, ...]) -> Callable[[str], str]:
    """One of ``options``, in any case."""

    def parse(text: str) -> str:
        if text.lower() not in options:
            raise ValueError("one of " + ", ".join(options))
        return text.lower()

    return parse


def node(text: str) -> str:
    """A name that fits into a URL and a token; ``auto``: the host's."""
    if text == "auto":
        text = re.sub(r"[^a-z0-9-]", "-", socket.gethostname().lower())[:64]
    if not re.fullmatch(r"[a-z0-9-]{1,64}", text):
        raise ValueError("up to 64 small letters, digits and hyphens")
    return text


def ratio(text: str) -> float:
    """A share."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise ValueError("a number from 0 to 1")
    return value


def origins(text: str) -> tuple[str, ...]:
    """Web origins, separated by commas."""
    found = tuple(part.strip().rstrip("/").lower() for part in text.split(",") if part.strip())
    for origin in found:
        scheme, _, host = origin.partition("://")
        if scheme not in ("http", "https") or not host or "/" in host:
            raise ValueError("origins such as https://app.example, separated by commas")
    return found


def text(given: str) -> str:
    """Anything but nothing."""
    if not given.strip():
        raise ValueError("a value that is not empty")
    return given.strip()


def wss(given: str) -> str:
    """Where a server is reached from outside: no path, no query."""
    base = given.strip().rstrip("/")
    if not re.fullmatch(r"wss?://[^/?#\s@]+", base):
        raise ValueError("wss:// and a host, perhaps with a port")
    return base
