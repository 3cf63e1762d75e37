"""When words are spoken, as Cartesia tells it."""

from typing import Any

from playhead.gateway.messages import Audio


def word_times(message: Audio, rate: int, base: int = 0) -> dict[str, list[Any]]:
    """Seconds from ``base`` samples before the message's utterance, at ``rate`` Hz. A word ends
    where the next begins, the last one of a message where the audio that has been sent does."""
    starts = [(base + word.position) / rate for word in message.words]
    last = (base + message.position + message.samples) / rate
    ends = [*starts[1:], max(last, starts[-1])]
    return {
        "words": [word.text for word in message.words],
        "start": [round(start, 4) for start in starts],
        "end": [round(end, 4) for end in ends],
    }
