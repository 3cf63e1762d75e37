"""When one utterance passed each point between its text and its listener. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from playhead.engine.types import AudioChunk, Report


@dataclass(frozen=True, slots=True)
class Stage:
    """A stretch of an utterance's way. Monotonic seconds."""

    name: str
    start: float
    end: float


@dataclass(slots=True)
class Trace:
    """Stamps of one utterance, each of its first sound; None: not passed."""

    session: str
    utterance: int
    opened: float
    text: float | None = None  # the first piece
    text_needed: float | None = None  # the last piece before there was sound
    wanted: float | None = None  # a lane could have had the first chunk
    made: float | None = None  # the engine had it
    encoded: float | None = None  # its message entered the send queue
    arrived: float | None = None  # the listener had it, as it reported
    playing: float | None = None  # the listener heard it, as it reported
    stalls: list[tuple[str, float]] = field(default_factory=list)
    samples: int = 0

    def on_text(self, now: float) -> None:
        """A piece of text was given to the engine."""
        self.text = now if self.text is None else self.text
        if self.encoded is None:
            self.text_needed = now

    def on_audio(self, chunk: AudioChunk | None, leaves: bool, now: float) -> None:
        """A chunk was encoded; ``leaves``: a message goes out with it."""
        if chunk is not None:
            self.samples += len(chunk.pcm)
            if self.made is None and chunk.made_at:
                self.wanted, self.made = chunk.queued_at, chunk.made_at
        if leaves and self.encoded is None:
            self.encoded = now

    def on_report(self, report: Report, one_way: float, now: float) -> None:
        """The listener reported; it did so one delay ago."""
        if self.arrived is None and report.received:
            self.arrived = now - one_way
        if self.playing is None and report.heard:
            self.playing = now - one_way

    def stages(self, end: float) -> Iterator[Stage]:
        """What it passed, in order: text, plan, lane, encode, socket, wait, heard."""
        points = (
            ("text", self.text, self.text_needed),
            ("plan", self.text_needed, self.wanted),
            ("lane", self.wanted, self.made),
            ("encode", self.made, self.encoded),
            ("socket", self.encoded, self.arrived),
            ("wait", self.arrived, self.playing),
            ("heard", self.playing, end),
        )
        for name, start, stop in points:
            if start is not None and stop is not None:
                yield Stage(name, start, max(start, stop))
