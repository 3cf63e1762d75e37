"""How a run is going, for whoever watches it. Pure; judgement is made from the records later."""

from dataclasses import dataclass, field

from playhead.loadgen.record import Record


@dataclass(slots=True)
class Tally:
    """Utterances by what became of them so far; ``first_audio`` in seconds as TTFA counts."""

    planned: int = 0
    started: int = 0
    ended: int = 0
    faulty: int = 0
    stalled: int = 0
    first_audio: list[float] = field(default_factory=list)

    @property
    def in_flight(self) -> int:
        """Started and not ended."""
        return self.started - self.ended

    def start(self) -> None:
        """An utterance's text is about to be sent."""
        self.started += 1

    def add(self, record: Record) -> None:
        """One has ended; it may never have started."""
        if record.dispatched is None:
            self.started += 1
        self.ended += 1
        self.faulty += bool(record.fault)
        self.stalled += bool(record.stalls)
        if record.first_playable is not None:
            self.first_audio.append(record.first_playable - record.asked)
