"""Arrivals by the kernel's stamps, with literal control messages."""

import socket
import struct
import sys

import pytest
from playhead.loadgen.stamp import TIMESTAMPNS, Control, arrival, known_here, stamp_of


def control(seconds: int, nanoseconds: int, kind: int = TIMESTAMPNS) -> Control:
    return [(socket.SOL_SOCKET, kind, struct.pack("qq", seconds, nanoseconds))]


def test_an_arrival_is_as_long_ago_as_its_stamp() -> None:
    assert arrival(control(1_000, 250_000_000), now=50.0, wall=1_000.75) == pytest.approx(49.5)


@pytest.mark.parametrize(
    "given",
    [
        [],
        control(1_000, 0, kind=TIMESTAMPNS + 1),
        [(socket.SOL_SOCKET, TIMESTAMPNS, b"short")],
        [(socket.SOL_SOCKET + 1, TIMESTAMPNS, struct.pack("qq", 1, 0))],
    ],
)
def test_without_a_stamp_the_read_counts(given: Control) -> None:
    assert stamp_of(given) is None
    assert arrival(given, now=50.0, wall=1_000.0) == 50.0


@pytest.mark.parametrize("wall", [999.9, 1_061.0])
def test_a_clock_that_was_set_meanwhile_is_not_believed(wall: float) -> None:
    assert arrival(control(1_000, 0), now=50.0, wall=wall) == 50.0


@pytest.mark.parametrize(
    ("platform", "width", "known"),
    [("linux", 2**63 - 1, True), ("linux", 2**31 - 1, False), ("darwin", 2**63 - 1, False)],
)
def test_where_stamps_have_this_shape(
    monkeypatch: pytest.MonkeyPatch, platform: str, width: int, known: bool
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(sys, "maxsize", width)
    assert known_here() is known
