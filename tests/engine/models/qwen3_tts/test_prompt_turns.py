"""Long prompts in turns with steps."""

from collections.abc import Iterator

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

from playhead.engine.models.qwen3_tts.counts import Counts, Limits
from playhead.engine.models.qwen3_tts.prompt import Style
from playhead.engine.models.qwen3_tts.prompt_turns import EVERYTHING, read_on
from playhead.engine.models.qwen3_tts.stream import Stream
from playhead.engine.models.qwen3_tts.text import HashTokenizer, TokenStream
from runner_lab import request


def stream(*rows: int, read: list[int] | None = None) -> Stream:
    """Whose prompt is in pieces of ``rows``; what is read is noted in ``read``."""
    counts = Counts(1, 8, 0, Limits())
    made = Stream(request(1), Style(0), TokenStream(HashTokenizer(499)), counts)

    def pieces() -> Iterator[tuple[int, int]]:
        for index, count in enumerate(rows):
            if read is not None:
                read.append(count)
            yield count, sum(rows[index + 1 :])

    made.reading = pieces() if rows else None
    return made


def test_one_prompt_goes_on_from_turn_to_turn() -> None:
    read: list[int] = []
    one = stream(256, 256, 64, read=read)
    assert read_on([one], 256) == []
    assert read == [256]
    assert read_on([one], 256) == []
    assert read == [256, 256]
    assert read_on([one], 256) == [one]
    assert read == [256, 256, 64]
    assert one.reading is None
    assert read_on([one], 256) == []


def test_the_first_is_read_to_its_end_before_the_next() -> None:
    first, running, second, third = stream(64, 64), stream(), stream(64), stream(64)
    assert read_on([first, running, second, third], 256) == [first, second, third]
    first, second = stream(256), stream(256)
    assert read_on([first, second], 256) == [first]
    assert read_on([first, second], 256) == [second]


def test_nobody_waits() -> None:
    streams = [stream(256, 256, 256), stream(64)]
    assert read_on(streams, EVERYTHING) == streams
