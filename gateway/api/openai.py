"""OpenAI's request for speech as an order. Pure."""

from functools import partial

from playhead.gateway.api.body import EVENTS, FORMATS, RATE, Body, audio_event, done_event, event
from playhead.gateway.api.errors import ApiError
from playhead.gateway.api.order import Order, PlainWriter
from playhead.gateway.api.request import SpeechRequest
from playhead.gateway.messages import Audio, Hello, Ready


class EventWriter:
    """``speech.audio.delta`` events, then ``speech.audio.done``. ``characters`` of the text."""

    def __init__(self, body: Body, characters: int) -> None:
        self._body = body
        self._head = body.begin()
        self._characters = characters
        self._samples = 0

    def begin(self) -> bytes:
        return b""

    def add(self, audio: Audio) -> bytes:
        self._samples += audio.samples
        data, self._head = self._head + self._body.add(audio), b""
        return audio_event(data)

    def end(self) -> bytes:
        return done_event(self._characters, self._samples)

    def fault(self, fault: ApiError) -> bytes | None:
        return event(fault.body() | {"type": "error"})


def order_of(asked: SpeechRequest) -> Order:
    """The order of a checked request."""
    form = FORMATS[asked.format]
    events = asked.stream_format == "sse"
    return Order(
        hello=Hello(
            voice=asked.voice,
            speed=asked.speed,
            codec=form.codec,
            sample_rate=RATE,
            reports=False,
            instruct=asked.instruct,
        ),
        text=asked.text,
        media_type=EVENTS if events else form.media_type,
        open=partial(_open, asked),
        heavy=form.heavy,
    )


def _open(asked: SpeechRequest, ready: Ready) -> EventWriter | PlainWriter:
    body = FORMATS[asked.format].open(ready)
    if asked.stream_format == "sse":
        return EventWriter(body, len(asked.text))
    return PlainWriter(body)
