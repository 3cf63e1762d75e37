"""Settings from a TOML file: the names of the flags, with values in TOML's own types."""

import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path


class ConfigError(ValueError):
    """The file cannot be used; the message names it and says why."""


def read(path: str, names: Iterable[str]) -> dict[str, str]:
    """Option name to value as a flag would give it. ``names``: the options that exist.

    Raises :class:`ConfigError`.
    """
    try:
        with Path(path).open("rb") as file:
            table = tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"--config {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"--config {path} is not TOML: {error}") from error
    return _values(path, table, set(names))


def _values(path: str, table: Mapping[str, object], known: set[str]) -> dict[str, str]:
    values = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else "see `playhead serve --help`"
            raise ConfigError(f"--config {path}: there is no setting {key!r}; {hint}")
        values[name] = _text(path, key, value)
    return values


def _text(path: str, key: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    raise ConfigError(f"--config {path}: {key} must be a text, a number, true, false or a list")
