"""The fields of every message, as one table per direction.

A row names a field's kind; whether it is required, and its default, are the dataclass's own.
Kinds return the checked value or raise ``Unfit`` with what would have been right.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import partial
from operator import attrgetter
from typing import Any

from playhead.engine.types import Lane, ListenerState
from playhead.gateway import messages as m
from playhead.gateway.limits import Limits
from playhead.gateway.protocol_parse import ProtocolError, shorten, wrong

#: Largest integer that every JSON reader holds exactly (RFC 8259, section 6).
SAFE = 2**53 - 1
_LIMITS = Limits()


class Unfit(Exception):
    """A value of the wrong kind; ``expected`` says what would be right."""

    def __init__(self, expected: str, code: str = "bad_value") -> None:
        super().__init__(expected)
        self.expected = expected
        self.code = code


Kind = Callable[[Any], Any]


def integer(low: int = 0, high: int = SAFE) -> Kind:
    def check(value: Any) -> int:
        # Each field of each message passes here. No wire gives another class of whole numbers.
        if type(value) is int and low <= value <= high:
            return value
        raise Unfit(f"a whole number from {low} to {high}")

    return check


def number(low: float = -SAFE, high: float = SAFE) -> Kind:
    def check(value: Any) -> float:
        if value.__class__ is float and low <= value <= high:
            return value
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        if not fits or not low <= value <= high:  # NaN compares false
            raise Unfit(f"a number from {low:g} to {high:g}")
        return float(value)

    return check


def string(most: int, code: str = "bad_value") -> Kind:
    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise Unfit(f"a string of at most {most} characters")
        if len(value) > most:
            raise Unfit(f"at most {most} characters, not {len(value)}", code)
        if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
            raise Unfit("text without unpaired surrogates", "bad_message")
        return value

    return check


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Unfit("true or false")
    return value


def binary(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise Unfit("bytes")
    return value


def choice(values: type[ListenerState] | type[Lane]) -> Kind:
    known = {member.value: member for member in values}

    def check(value: Any) -> Any:
        if not isinstance(value, str) or value not in known:
            raise Unfit("one of " + ", ".join(known))
        return known[value]

    return check


def nullable(kind: Kind) -> Kind:
    return lambda value: None if value is None else kind(value)


def many(kind: Kind) -> Kind:
    def check(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise Unfit("a list")
        return tuple(kind(item) for item in value)

    return check


def mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Unfit("a map")
    return value


@dataclass(frozen=True)
class Spec:
    """How one class of message is read and written."""

    cls: type[Any]
    kinds: Mapping[str, Kind]
    defaults: Mapping[str, Any]  # of the fields that may be absent
    values: Callable[[Any], tuple[Any, ...]]

    def build(self, given: Mapping[str, Any], *, strict: bool) -> Any:
        """Raises ``ProtocolError``; fields that are not known are refused when ``strict``."""
        if strict:
            self._refuse_unknown(given)
        checked = {}
        for name, kind in self.kinds.items():
            value = given.get(name)
            if name in self.defaults:
                if value is None:
                    continue
            elif name not in given:
                raise ProtocolError("missing_field", f"{name} is missing", f"a field {name}", name)
            try:
                checked[name] = kind(value)
            except Unfit as fault:
                raise ProtocolError(
                    fault.code,
                    wrong(name, partial(describe, value)),
                    f"{name}: {fault.expected}",
                    name,
                ) from None
        return self.cls(**checked)

    def _refuse_unknown(self, given: Mapping[str, Any]) -> None:
        for name in given:
            if name not in self.kinds and name != "type":
                raise self._unknown(name)

    def _unknown(self, name: str) -> ProtocolError:
        known = "one of " + ", ".join(self.kinds) if self.kinds else "no fields"
        told = lambda: f"unknown field {shorten(name)}"  # noqa: E731
        return ProtocolError("unknown_field", told, known, lambda: shorten(name)[1:-1])

    def plain(self, message: Any) -> dict[str, Any]:
        """The fields as maps, lists and scalars; those at their default are left out."""
        given = zip(self.kinds, self.values(message), strict=True)
        return {
            name: _plain(value)
            for name, value in given
            if name not in self.defaults or value != self.defaults[name]
        }


def describe(value: Any) -> str:
    """A peer's value as it may stand in an error message."""
    if isinstance(value, str):
        return shorten(value)
    if isinstance(value, bool | float) or value is None:
        return str(value)
    if isinstance(value, int):
        return str(value) if abs(value) <= SAFE else "a number beyond 2^53"
    return f"a {type(value).__name__}"


_SCALARS = frozenset({int, float, str, bytes, bool, type(None)})


def _plain(value: Any) -> Any:
    if value.__class__ in _SCALARS:
        return value
    if isinstance(value, ListenerState | Lane):
        return value.value
    if isinstance(value, m.ResumeFrom):
        return RESUME.plain(value)
    if isinstance(value, m.SpokenWord):
        return WORD.plain(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _spec(cls: type[Any], **kinds: Kind) -> Spec:
    # attrgetter gives a bare value for one name and refuses none.
    names = tuple(kinds)
    getter: Callable[[Any], tuple[Any, ...]]
    if len(names) > 1:
        getter = attrgetter(*names)
    else:
        singles = [attrgetter(name) for name in names]
        getter = lambda message: tuple(get(message) for get in singles)  # noqa: E731
    defaults = {f.name: f.default for f in fields(cls) if f.default is not MISSING}
    return Spec(cls, kinds, defaults, getter)


COUNT = integer()
STAMP = number()
NAME = string(64)
LONG = string(SAFE)
INSTRUCT = string(_LIMITS.instruct)

RESUME = _spec(m.ResumeFrom, session=string(128), token=string(128), seq=COUNT)
WORD = _spec(m.SpokenWord, text=LONG, position=COUNT, char_start=COUNT, char_end=COUNT)


def _nested(spec: Spec, *, strict: bool) -> Kind:
    return lambda value: spec.build(mapping(value), strict=strict)


# A message is read at a glance when its fields stand side by side.
# fmt: off
CLIENT: dict[str, Spec] = {
    spec.cls.type: spec
    for spec in (
        _spec(
            m.Hello, voice=NAME, speed=number(0.5, 2.0), codec=NAME, sample_rate=COUNT,
            start_threshold=number(0.0, 2_000.0), playback_rate=number(0.5, 2.0), reports=flag,
            binary_audio=flag, language=NAME, instruct=INSTRUCT,
            resume=_nested(RESUME, strict=True),
        ),
        _spec(
            m.Start, voice=NAME, speed=number(0.5, 2.0), id=string(_LIMITS.id_length),
            language=NAME, instruct=INSTRUCT,
        ),
        _spec(m.Text, text=string(_LIMITS.text_message, "text_too_long")),
        _spec(m.Flush),
        _spec(m.End),
        _spec(
            m.PlaybackReport, epoch=COUNT, received=COUNT, consumed=COUNT, heard=COUNT,
            buffered=COUNT, state=choice(ListenerState), time=STAMP, discarded=COUNT,
            underruns=COUNT, starved=number(0.0), seq=COUNT, echo=STAMP, hold=number(0.0),
        ),
        _spec(m.Cancel, epoch=COUNT, heard=COUNT),
        _spec(m.Pause),
        _spec(m.ResumePlayback),
        _spec(m.Ack, seq=COUNT),
        _spec(m.Ping, time=STAMP),
        _spec(m.CloseSession),
    )
}

_HEARD = {"heard": COUNT, "heard_text": LONG, "unheard_text": LONG}
_LAST = {"epoch": COUNT, **_HEARD}
_FAULT = {"code": LONG, "message": LONG, "expected": LONG, "retry_after": STAMP}

SERVER: dict[str, Spec] = {
    spec.cls.type: spec
    for spec in (
        _spec(
            m.Ready, session=LONG, token=LONG, resumed=flag, codec=LONG, sample_rate=COUNT,
            pre_skip=COUNT, packet_samples=COUNT, voice=LONG, voices=many(LONG),
            formats=many(mapping), limits=mapping, grace=STAMP, epoch=COUNT, time=STAMP,
            model=LONG, server=LONG, received=COUNT, language=LONG, languages=many(LONG),
            instruct=flag, report_interval=COUNT,
        ),
        _spec(m.Started, seq=COUNT, epoch=COUNT, id=LONG),
        _spec(
            m.Audio, seq=COUNT, epoch=COUNT, index=COUNT, position=COUNT, samples=COUNT,
            words=many(_nested(WORD, strict=False)), lane=choice(Lane), slack=nullable(STAMP),
            depth=STAMP, sent=STAMP, final=flag, packets=many(COUNT), data=binary,
        ),
        _spec(
            m.Done, seq=COUNT, epoch=COUNT, samples=COUNT, heard=COUNT, estimated=flag,
            reason=LONG,
        ),
        _spec(m.Cancelled, seq=COUNT, epoch=COUNT, estimated=flag, **_HEARD),
        _spec(m.Failed, seq=COUNT, epoch=COUNT, **_FAULT, **_HEARD),
        _spec(m.Warn, seq=COUNT, epoch=COUNT, code=LONG, message=LONG, text=LONG),
        _spec(m.Draining, seq=COUNT, deadline=STAMP),
        _spec(m.Pong, time=STAMP, received=STAMP, sent=STAMP),
        _spec(m.ErrorEvent, field=LONG, recovered=flag, reason=NAME, **_LAST, **_FAULT),
    )
}
# fmt: on


def spec_of(given: Mapping[str, Any], table: Mapping[str, Spec]) -> Spec:
    """The spec for a parsed map. Raises ``ProtocolError`` naming the types there are."""
    known = "one of " + ", ".join(table)
    if "type" not in given:
        raise ProtocolError("missing_field", "type is missing", f"type: {known}", "type")
    name = given["type"]
    if not isinstance(name, str):
        raise ProtocolError("bad_value", f"type is {describe(name)}", f"type: {known}", "type")
    if name not in table:
        told = lambda: f"unknown message type {shorten(name)}"  # noqa: E731
        raise ProtocolError("unknown_type", told, known, "type")
    return table[name]
