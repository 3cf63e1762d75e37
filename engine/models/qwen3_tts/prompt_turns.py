"""Long prompts take turns with the steps of running streams, so that they hold up nobody.

A prompt that one graph holds is read at once. A longer one is read in pieces, with a step of
everybody else after every ``ROWS_PER_STEP`` rows; its stream joins the steps when all is read.
"""

from collections.abc import Sequence

from playhead.engine.models.qwen3_tts.stream import Stream

ROWS_PER_STEP = 256
"""Rows of long prompts between two steps: about as much work for the device as a step of a few
streams, so that a step with a long prompt before it takes a listener by no surprise."""
EVERYTHING = 1 << 40


def read_on(streams: Sequence[Stream], rows: int) -> list[Stream]:
    """Read prompts piece by piece, the first of ``streams`` to its end before the next, until
    ``rows`` rows have been read or more, less than one piece. Streams without a prompt in work are
    passed over. Returns those whose prompts are complete now."""
    complete: list[Stream] = []
    for stream in streams:
        while stream.reading is not None and rows > 0:
            read, left = next(stream.reading)
            rows -= read
            if not left:
                stream.reading = None
                complete.append(stream)
    return complete
