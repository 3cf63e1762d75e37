"""Messages are values: named as on the wire, immutable, quiet about audio and complete."""

import dataclasses
import inspect
from typing import get_args

import pytest
from playhead.engine.types import Lane
from playhead.gateway import messages as m

CLIENT = get_args(m.ClientMessage)
SERVER = get_args(m.ServerMessage)


def test_type_names_are_unique_in_each_direction() -> None:
    for direction in (CLIENT, SERVER):
        assert len({cls.type for cls in direction}) == len(direction)


def test_every_message_belongs_to_a_direction() -> None:
    typed = {cls for _, cls in inspect.getmembers(m, inspect.isclass) if "type" in vars(cls)}
    assert typed == {*CLIENT, *SERVER}


def test_numbered_messages_alone_have_a_seq() -> None:
    numbered = {cls for cls in SERVER if "seq" in {field.name for field in dataclasses.fields(cls)}}
    assert numbered == set(get_args(m.NumberedMessage))


def test_messages_cannot_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        m.Text("a").text = "b"  # type: ignore[misc]


def test_audio_is_not_shown() -> None:
    audio = m.Audio(
        seq=1,
        epoch=1,
        index=0,
        position=0,
        samples=2,
        words=(),
        lane=Lane.URGENT,
        slack=None,
        depth=0.0,
        sent=0.0,
        final=False,
        data=b"secret sound",
    )
    assert "secret" not in repr(audio)
