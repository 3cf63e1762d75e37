"""Effects are values, and the union names every one of them."""

import dataclasses
import inspect
from typing import get_args

import pytest
from playhead.gateway import effects


def test_the_union_is_complete() -> None:
    own = {
        cls
        for _, cls in inspect.getmembers(effects, inspect.isclass)
        if cls.__module__ == effects.__name__
    }
    assert own == set(get_args(effects.Effect))


def test_effects_cannot_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        effects.Close(1000, "bye").code = 1  # type: ignore[misc]
