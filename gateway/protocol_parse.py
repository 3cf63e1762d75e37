"""Untrusted bytes to a map of bounded size and depth. Every fault is a ``ProtocolError``.

msgpack: extension types, keys that are not strings and repeated keys are refused. JSON
(RFC 8259): NaN, Infinity, numbers beyond float64 and repeated keys are refused.
"""

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import msgpack
from playhead.gateway.redact import BLOT, is_secret, redact

Told = str | Callable[[], str]
"""A text, or what makes it when it is told: most faults of a peer that floods never are."""


class ProtocolError(Exception):
    """The peer's fault: a stable ``code``, what was wrong, and what would have been right.

    ``retry_after``: seconds after which the same message may be taken.
    """

    def __init__(
        self,
        code: str,
        message: Told,
        expected: str,
        field: Told | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(code)
        self.code = code
        self._message = message
        self.expected = expected
        self._field = field
        self.retry_after = retry_after

    @property
    def message(self) -> str:
        """What was wrong."""
        return _text(self._message)

    @property
    def field(self) -> str | None:
        """The field that it was in."""
        return None if self._field is None else _text(self._field)

    def __str__(self) -> str:
        return self.message


class _Bad(ValueError):
    """A fault that the readers of the libraries pass on."""

    def __init__(self, told: Told) -> None:
        super().__init__()
        self._told = told

    def __str__(self) -> str:
        return _text(self._told)


def _text(told: Told) -> str:
    return told if isinstance(told, str) else told()


@dataclass(frozen=True, slots=True)
class Bounds:
    """Most bytes of a frame, deepest nesting, most entries of one map or list, and most maps and
    lists in all: an empty one takes a byte on the wire and sixty in memory."""

    size: int
    depth: int
    items: int
    containers: int = 1_000


MOST_DIGITS = 20
"""Digits of a whole number that is read: 2^53 has 16, and reading takes the square of them."""
_CONTAINERS = (dict, list)
_LOOKED_AT = 128  # characters of a peer's string that is shown
_WORD_CUT = re.compile(r"\S++\Z")
_SMALL = 1024  # bytes in which there is no room for a flood of containers
# An unclosed string reaches to the end: trying again at each of its quotes would take the square.
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)


def shorten(text: str, most: int = 40) -> str:
    """A peer's string as it may stand in an error: printable ASCII, quoted, short, and without what
    looks like a key: it may have come into the wrong field. Takes some 0.1 ms for the worst."""
    cut, told = len(text) > _LOOKED_AT, redact(text[:_LOOKED_AT])
    if cut:
        told = _WORD_CUT.sub(BLOT, told)  # that it is a secret may only be told by its end
    return ascii(told[:most] + ("..." if cut or len(told) > most else ""))


def wrong(field: str, shown: Callable[[], str]) -> Told:
    """What is wrong with a field whose value is ``shown``: not that value where it is a secret."""
    return f"{field} cannot be used" if is_secret(field) else lambda: f"{field} is {shown()}"


def bad_message(
    problem: Told, expected: str = "one map with string keys and a type"
) -> ProtocolError:
    return ProtocolError("bad_message", problem, expected)


def parse_msgpack(frame: bytes, bounds: Bounds) -> dict[str, Any]:
    """Raises ``ProtocolError`` (``bad_message``) for anything but one bounded map."""
    _check_size(len(frame), bounds)
    count = _Count(bounds)
    try:
        value = msgpack.unpackb(
            frame,
            raw=False,
            strict_map_key=True,
            object_pairs_hook=count.map,
            list_hook=count.list,
            ext_hook=_refuse_extension,
            max_array_len=bounds.items,
            max_map_len=bounds.items,
            max_ext_len=0,
        )
    except msgpack.StackError:
        raise _too_deep(bounds) from None
    except ValueError as fault:
        raise bad_message(partial("not valid msgpack: {}".format, fault)) from None
    return _bounded_map(value, bounds)


def parse_json(frame: str, bounds: Bounds) -> dict[str, Any]:
    """Raises ``ProtocolError`` (``bad_message``) for anything but one bounded object."""
    _check_size(len(frame), bounds)
    _check_containers(frame, bounds)
    try:
        value = json.loads(
            frame,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole,
        )
    except RecursionError:
        raise _too_deep(bounds) from None
    except ValueError as fault:
        raise bad_message(partial("not valid JSON: {}".format, fault)) from None
    return _bounded_map(value, bounds)


def _check_size(size: int, bounds: Bounds) -> None:
    if size > bounds.size:
        raise bad_message(f"the message has {size} bytes", f"at most {bounds.size}")


class _Count:
    """Counts the containers of a message while it is read, and ends that at the bound."""

    __slots__ = ("_left",)

    def __init__(self, bounds: Bounds) -> None:
        self._left = bounds.containers

    def map(self, pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
        self._take()
        return _unique(pairs)

    def list(self, items: list[Any]) -> list[Any]:
        self._take()
        return items

    def _take(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise ValueError("too many maps and lists")


def _check_containers(frame: str, bounds: Bounds) -> None:
    # The reader of the standard library gives no say while it makes lists.
    if len(frame) <= _SMALL or frame.count("[") + frame.count("{") <= bounds.containers:
        return
    bare = _STRING.sub("", frame)
    if bare.count("[") + bare.count("{") > bounds.containers:
        raise bad_message("too many maps and lists", f"at most {bounds.containers}")


def _too_deep(bounds: Bounds) -> ProtocolError:
    return bad_message("the message is nested too deeply", f"at most {bounds.depth} levels")


def _unique(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if not isinstance(key, str):
            raise ValueError("a key is not a string")  # noqa: TRY004 - parsers' callers catch it
        if key in result:
            raise _Bad(partial(_twice, key))
        result[key] = value
    return result


def _twice(key: str) -> str:
    return f"key {shorten(key)} appears twice"


def _refuse_extension(code: int, data: bytes) -> NoReturn:
    raise ValueError(f"extension type {code}")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a whole number has {len(digits)} digits")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _Bad(lambda: f"{shorten(digits)} is beyond float64")
    return value


def _bounded_map(value: Any, bounds: Bounds) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise bad_message("the message is not a map")
    level: list[Any] = [value]
    for _ in range(bounds.depth):
        below: list[Any] = []
        for container in level:
            if len(container) > bounds.items:
                raise bad_message(
                    f"a map or list has {len(container)} entries", f"at most {bounds.items}"
                )
            children = container.values() if isinstance(container, dict) else container
            below += [child for child in children if isinstance(child, _CONTAINERS)]
        if not below:
            return value
        level = below
    raise _too_deep(bounds)
