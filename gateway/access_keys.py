"""API keys: what a key looks like, what is kept of it, and how one is recognised. Pure.

A key is ``ph_<id>_<secret>``. The id is public and stands in logs and lists; the secret has 256
random bits, so a plain SHA-256 of the whole key is kept (a slow hash protects guessable secrets,
and would be a lever for whoever floods the door).
"""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from playhead.gateway.access_quota import KEY_QUOTA, Quota

VERSION: Final = 1
SPEAK: Final = "speak"
METRICS: Final = "metrics"
ROLES: Final = (SPEAK, METRICS)
MAX_KEYS: Final = 100_000
MAX_PRESENTED: Final = 256
"""Characters of a key that are looked at; ours have 56."""

KEY_PREFIX: Final = "ph_"
TICKET_PREFIX: Final = "pht_"

_KEY = re.compile(r"ph_([a-z2-7]{8})_[A-Za-z0-9_-]{43}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,64}")


class KeyFileError(ValueError):
    """A key file that cannot be used; the message says where and why, never a digest."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is kept of a key. Times are seconds since the Unix epoch; ``digest`` is SHA-256."""

    id: str
    name: str
    digest: bytes
    created: float
    expires: float | None = None
    revoked: float | None = None
    roles: tuple[str, ...] = (SPEAK,)
    quota: Quota = KEY_QUOTA

    def usable(self, wall: float) -> bool:
        """Neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or wall < self.expires)


_NOBODY = ApiKey("", "", bytes(32), 0.0)
"""Stands in for a key that does not exist: no text is known whose SHA-256 is zero."""


def digest(presented: str) -> bytes:
    """SHA-256 of a presented key or ticket, whatever its characters."""
    return hashlib.sha256(presented.encode("utf-8", "surrogatepass")).digest()


def new_key(
    name: str,
    wall: float,
    *,
    expires: float | None = None,
    roles: tuple[str, ...] = (SPEAK,),
    quota: Quota = KEY_QUOTA,
) -> tuple[str, ApiKey]:
    """A fresh key: its text, which exists nowhere else, and what is to be kept of it.

    Raises :class:`KeyFileError` for a name with control characters or of the wrong length.
    """
    if not _NAME.fullmatch(name):
        raise KeyFileError("a name has 1 to 64 characters, none of them control characters")
    identity = "".join(secrets.choice("abcdefghijklmnopqrstuvwxyz234567") for _ in range(8))
    text = f"{KEY_PREFIX}{identity}_{secrets.token_urlsafe(32)}"
    return text, ApiKey(identity, name, digest(text), wall, expires, None, roles, quota)


class KeyRing:
    """All keys of one file, by id."""

    def __init__(self, keys: Iterable[ApiKey] = ()) -> None:
        self._keys = {key.id: key for key in keys}

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def keys(self) -> tuple[ApiKey, ...]:
        """Every key, in the order of the file."""
        return tuple(self._keys.values())

    def usable(self, identity: str, wall: float) -> ApiKey | None:
        """The key of that id, unless it is gone, revoked or expired."""
        key = self._keys.get(identity)
        return key if key is not None and key.usable(wall) else None

    def recognise(self, presented: str, wall: float) -> ApiKey | None:
        """The usable key whose text was presented.

        One digest and one constant-time comparison are made whatever was presented, and the same
        steps are gone through whether or not its id exists, so that how long it took tells nothing
        about which ids exist or how much of a secret was right.
        """
        shown = presented[:MAX_PRESENTED]
        match = _KEY.fullmatch(shown)
        key = self._keys.get("" if match is None else match[1], _NOBODY)
        fits = hmac.compare_digest(digest(shown), key.digest)
        return key if fits and key.usable(wall) else None


def parse(text: str) -> KeyRing:
    """The ring in a key file. Raises :class:`KeyFileError`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise KeyFileError("it is not JSON; `playhead keys add` makes such a file") from None
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise KeyFileError(f'expected an object with "version": {VERSION}')
    entries = document.get("keys")
    if not isinstance(entries, list) or len(entries) > MAX_KEYS:
        raise KeyFileError(f'expected "keys": a list of at most {MAX_KEYS}')
    keys = [_entry(number, entry) for number, entry in enumerate(entries, 1)]
    if len({key.id for key in keys}) != len(keys):
        raise KeyFileError("an id appears twice")
    return KeyRing(keys)


def render(ring: KeyRing) -> str:
    """The key file of a ring, readable and stable."""
    entries = [_plain(key) for key in ring.keys]
    return json.dumps({"version": VERSION, "keys": entries}, indent=1) + "\n"


def _entry(number: int, entry: Any) -> ApiKey:
    try:
        return _key(entry)
    except (KeyError, TypeError, ValueError) as fault:
        raise KeyFileError(f"key {number} of the list: {_reason(fault)}") from None


def _reason(fault: Exception) -> str:
    return f"{fault} is missing" if isinstance(fault, KeyError) else str(fault)


def _key(entry: Any) -> ApiKey:
    if not isinstance(entry, dict):
        raise TypeError("expected an object")
    unknown = set(entry) - {"id", "name", "sha256", "created", "expires", "revoked", "roles"}
    unknown -= {"connections", "streams", "characters_per_minute"}
    if unknown:
        raise ValueError("unknown fields " + ", ".join(sorted(map(ascii, unknown))))
    roles = entry.get("roles", [SPEAK])
    if not isinstance(roles, list) or not roles or not set(map(str, roles)) <= set(ROLES):
        raise ValueError("roles: expected a list of " + " and ".join(ROLES))
    return ApiKey(
        id=_matching(entry["id"], re.compile(r"[a-z2-7]{8}"), "id: expected eight of a-z, 2-7"),
        name=_matching(entry["name"], _NAME, "name: expected 1 to 64 printable characters"),
        digest=bytes.fromhex(
            _matching(entry["sha256"], _DIGEST, "sha256: expected 64 hexadecimal digits")
        ),
        created=_time(entry["created"], "created"),
        expires=_optional_time(entry, "expires"),
        revoked=_optional_time(entry, "revoked"),
        roles=tuple(roles),
        quota=_quota(entry),
    )


def _matching(value: Any, pattern: re.Pattern[str], expected: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(expected)
    return value


def _time(value: Any, name: str) -> float:
    expected = f"{name}: expected a time such as 2026-01-31T12:00:00Z"
    if not isinstance(value, str):
        raise TypeError(expected)
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(expected) from None
    # A time without a zone would mean another moment on another machine.
    if parsed.tzinfo is None:
        raise ValueError(expected)
    return parsed.timestamp()


def _optional_time(entry: Mapping[str, Any], name: str) -> float | None:
    return None if entry.get(name) is None else _time(entry[name], name)


def _quota(entry: Mapping[str, Any]) -> Quota:
    found: list[int] = []
    defaults = (KEY_QUOTA.connections, KEY_QUOTA.streams, KEY_QUOTA.characters_per_minute)
    for name, default in zip(
        ("connections", "streams", "characters_per_minute"), defaults, strict=True
    ):
        value = entry.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 10**9:
            raise ValueError(f"{name}: expected a whole number from 1 to 1000000000")
        found.append(value)
    return Quota(*found)


def _plain(key: ApiKey) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "id": key.id,
        "name": key.name,
        "sha256": key.digest.hex(),
        "created": stamp(key.created),
        "roles": list(key.roles),
        "connections": key.quota.connections,
        "streams": key.quota.streams,
        "characters_per_minute": key.quota.characters_per_minute,
    }
    if key.expires is not None:
        plain["expires"] = stamp(key.expires)
    if key.revoked is not None:
        plain["revoked"] = stamp(key.revoked)
    return plain


def stamp(wall: float) -> str:
    """A moment as the key file writes it: UTC, whole seconds."""
    moment = datetime.fromtimestamp(wall, UTC).replace(microsecond=0)
    return moment.isoformat().replace("+00:00", "Z")
