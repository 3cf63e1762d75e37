"""Typed access to a JSON object, with errors that say what was wrong and what would be right."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict, TypeVar

Scalar = TypeVar("Scalar", str, bool, int)


class ConfigError(ValueError):
    """A configuration file lacks something or holds something unusable."""


class Table:
    """One JSON object of a configuration file. Getters raise :class:`ConfigError`."""

    def __init__(self, content: Any, path: str) -> None:
        if not isinstance(content, dict):
            raise ConfigError(f"{path} must be a JSON object, not {_kind(content)}")
        self.content: dict[str, Any] = content
        self.path = path

    def get(self, key: str, wanted: str) -> Any:
        """The value of a key that must be there."""
        if key not in self.content:
            raise ConfigError(f"{self.path} has no {key!r}; it must be {wanted}")
        return self.content[key]

    def integer(self, key: str, default: int | None = None, least: int | None = None) -> int:
        """An integer of at least ``least``: unless given 1, or zero where it is an id."""
        if default is not None and key not in self.content:
            return default
        if least is None:
            least = 0 if key.endswith("_id") else 1
        wanted = f"an integer of at least {least}"
        return self._integer(self.get(key, wanted), key, wanted, least)

    def even(self, key: str) -> int:
        """A positive even integer."""
        value = self.integer(key)
        if value % 2:
            raise self._wrong(key, value, "an even integer")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A positive number."""
        if default is not None and key not in self.content:
            return default
        value = self.get(key, "a positive number")
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise self._wrong(key, value, "a positive number")
        return float(value)

    def boolean(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.content.get(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, value, "true or false")
        return value

    def text(self, key: str) -> str:
        """A string."""
        value = self.get(key, "a string")
        if not isinstance(value, str):
            raise self._wrong(key, value, "a string")
        return value

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """One of the given strings."""
        wanted = "one of " + ", ".join(choices)
        value = self.get(key, wanted)
        if value not in choices:
            raise self._wrong(key, value, wanted)
        return str(value)

    def expect(self, key: str, value: Scalar) -> Scalar:
        """The only value that is supported."""
        found = self.get(key, repr(value))
        if found != value or type(found) is not type(value):
            raise self._wrong(key, found, f"{value!r}: nothing else is supported")
        return value

    def integers(self, key: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """A list of positive integers, not empty."""
        if default is not None and key not in self.content:
            return default
        wanted = "a list of integers of at least 1"
        value = self.get(key, wanted)
        if not isinstance(value, list) or not value:
            raise self._wrong(key, value, wanted)
        return tuple(self._integer(item, key, wanted, 1) for item in value)

    def table(self, key: str) -> "Table":
        """A nested object."""
        return Table(self.get(key, "a JSON object"), f"{self.path}: {key}")

    def entries(self, key: str) -> dict[str, Any]:
        """A nested object read as a dictionary, its keys in lower case."""
        return {name.lower(): value for name, value in self.table(key).content.items()}

    def ids(self, key: str) -> dict[str, int]:
        """A nested object of ids, its keys in lower case."""
        wanted = "an object of integers of at least 0"
        return {
            name: self._integer(value, f"{key}.{name}", wanted, 0)
            for name, value in self.entries(key).items()
        }

    def _integer(self, value: Any, key: str, wanted: str, least: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self._wrong(key, value, wanted)
        return value

    def _wrong(self, key: str, value: Any, wanted: str) -> ConfigError:
        return ConfigError(f"{self.path}: {key} is {value!r}; it must be {wanted}")


def read_table(path: Path, folder: str) -> Table:
    """A ``config.json``. ``folder``: what holds one, for the error. Raises :class:`ConfigError`."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist; {folder} holds a config.json") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as fault:
        raise ConfigError(f"{path} is not JSON: {fault}") from None
    return Table(content, str(path))


class TransformerSizes(TypedDict):
    """What every transformer's part of a file states under the same keys."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    rope_theta: float


def transformer_sizes(table: Table) -> TransformerSizes:
    """Raises :class:`ConfigError`."""
    heads = table.integer("num_attention_heads")
    kv_heads = table.integer("num_key_value_heads")
    if heads % kv_heads:
        raise ConfigError(
            f"{table.path}.num_key_value_heads is {kv_heads}; it must divide "
            f"num_attention_heads, {heads}"
        )
    return TransformerSizes(
        layers=table.integer("num_hidden_layers"),
        hidden=table.integer("hidden_size"),
        intermediate=table.integer("intermediate_size"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=table.even("head_dim"),
        rope_theta=table.number("rope_theta"),
    )


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__
