"""What ``playhead say`` shows while it works."""

from typing import TextIO

from playhead.client.moving import Moved
from playhead.client.utterance import AudioMessage
from playhead.client.voice import Event
from playhead.engine.clock import monotonic
from playhead.gateway.messages import Draining, ErrorEvent, Warn

_INTERVAL = 0.1  # seconds between two pictures


class Progress:
    """One line on a terminal, rewritten; on anything else only warnings and errors."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._first_text: float | None = None
        self._first_audio: float | None = None
        self._seconds = 0.0
        self._parts = 0
        self._depth = 0.0
        self._shown_at = 0.0
        self._line = ""

    def text_sent(self) -> None:
        """A piece of text is on its way."""
        if self._first_text is None:
            self._first_text = monotonic()

    def audio(self, part: AudioMessage, sample_rate: int) -> None:
        """Sound came."""
        now = monotonic()
        if self._first_audio is None and len(part.pcm):
            self._first_audio = now
        self._seconds += len(part.pcm) / sample_rate
        self._parts += 1
        self._depth = part.depth
        if now - self._shown_at >= _INTERVAL:
            self._show(now)

    def event(self, event: Event) -> None:
        """Something to tell, on a line of its own."""
        match event:
            case Moved():
                text = "the server went away: another goes on from the last word that arrived"
            case Draining():
                text = f"the server shuts down in {event.deadline / 1000:g} s"
            case Warn():
                text = f"{event.message}" + (f": {event.text!r}" if event.text else "")
            case ErrorEvent():
                text = f"{event.message} (expected: {event.expected})"
        self._clear()
        print(f"playhead say: {text}", file=self._stream)

    def finish(self) -> None:
        """Leave the last picture on the terminal."""
        if self._terminal and self._parts:
            self._show(monotonic())
            print(file=self._stream)

    def _show(self, now: float) -> None:
        if not self._terminal:
            return
        self._shown_at = now
        self._clear()
        self._line = f"{self._seconds:6.2f} s received in {self._parts} parts"
        if self._first_audio is not None and self._first_text is not None:
            wait = 1000 * (self._first_audio - self._first_text)
            self._line += f", first after {wait:.0f} ms"
        self._line += f", {self._depth:.2f} s ahead"
        self._stream.write(self._line)
        self._stream.flush()

    def _clear(self) -> None:
        if self._line:
            self._stream.write("\r" + " " * len(self._line) + "\r")
            self._line = ""
