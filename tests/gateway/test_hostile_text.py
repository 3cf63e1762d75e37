"""Texts that were made to hurt: whatever they are, time grows with their length and no faster."""

import time
from collections.abc import Callable

import pytest
from hostile import HOSTILE
from playhead.engine.text import Segmenter
from playhead.gateway.messages import Text
from playhead.gateway.protocol import Wire

SIZES = (1_000, 8_000)
"""Code points: the longer is what may wait to be spoken (docs/protocol.md)."""


def seconds(work: Callable[[str], object], text: str) -> float:
    """The lesser of two: what is measured is the work, not the machine's other tasks."""
    best = 10.0
    for _ in range(2):
        began = time.process_time()
        work(text)
        best = min(best, time.process_time() - began)
    return best


def in_one_piece(text: str) -> None:
    segmenter = Segmenter()
    segmenter.push(text)
    segmenter.end()


def in_crumbs(text: str) -> None:
    segmenter = Segmenter()
    for at in range(0, len(text), 10):
        segmenter.push(text[at : at + 10])
    segmenter.end()


@pytest.mark.parametrize("work", [in_one_piece, in_crumbs])
@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_cutting_takes_linear_time(work: Callable[[str], None], make: Callable[[int], str]) -> None:
    short, long = (seconds(work, make(size)) for size in SIZES)
    # Eight times the text: the square would be 64 times. Half a millisecond is noise.
    assert long < 24 * max(short, 0.0005)


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_nothing_is_lost_or_made(make: Callable[[int], str]) -> None:
    text = make(3_000)
    segmenter = Segmenter()
    found = "".join(segment.text for segment in [*segmenter.push(text), *segmenter.end()])
    assert len(found) <= len(text)


@pytest.mark.parametrize("encoding", ["msgpack", "json"])
@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_every_text_passes_the_wire_unchanged(encoding: str, make: Callable[[int], str]) -> None:
    wire = Wire(encoding)  # type: ignore[arg-type]
    message = Text(make(2_000))
    assert wire.decode_client(wire.encode_client(message)) == message
