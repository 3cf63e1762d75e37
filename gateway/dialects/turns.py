"""The utterances that a dialect has opened in one context, in order, until it has told their end.

A session answers ``Start`` with ``Started`` and a new epoch, or with an ``ErrorEvent``; both come
before the client's next frame is read, so the turn that has no epoch yet is the one meant.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from playhead.engine.types import ListenerState, Source
from playhead.gateway.heard import Script
from playhead.gateway.messages import PlaybackReport


@dataclass(slots=True)
class Turn:
    """``closed``: no text will follow. ``over``: no audio will follow."""

    name: str = ""  # the dialect's own
    epoch: int = 0  # 0 until the session has opened it
    closed: bool = False
    over: bool = False
    done: bool = False  # the listener has played it, the session says
    samples: int = 0  # sent so far, at the wire rate
    script: Script = field(default_factory=Script)  # its text, and the words placed so far
    begin: int = 0  # the dialect's own: where in its stream the turn begins

    def heard_text(self, heard: int) -> tuple[str, str]:
        """What was heard of the text by sample ``heard``, and the rest."""
        whole = self.closed and self.over and heard >= self.samples
        return self.script.split(heard, whole=whole)

    def report(
        self, heard: int, source: Source, now: float, *, dropped: bool = False
    ) -> PlaybackReport:
        """The listener has heard ``heard`` samples and holds all else that was sent, or has
        ``dropped`` it."""
        heard = min(heard, self.samples)
        rest = self.samples - heard
        played = self.over and (dropped or not rest)
        return PlaybackReport(
            epoch=self.epoch,
            received=self.samples,
            consumed=heard,
            heard=heard,
            buffered=0 if dropped else rest,
            discarded=rest if dropped else 0,
            state=ListenerState.DRAINED if played else ListenerState.PLAYING,
            time=now * 1_000,
            source=source,
        )


class Turns:
    """Oldest first."""

    def __init__(self) -> None:
        self._turns: deque[Turn] = deque()

    def __len__(self) -> int:
        return len(self._turns)

    def __iter__(self) -> Iterator[Turn]:
        return iter(tuple(self._turns))

    def open(self, name: str = "") -> Turn:
        """A new turn takes text."""
        turn = Turn(name)
        self._turns.append(turn)
        return turn

    def started(self, epoch: int) -> Turn | None:
        """The session has opened the turn that was opened last."""
        newest = self.newest
        if newest is not None and not newest.epoch:
            newest.epoch = epoch
        return newest

    @property
    def newest(self) -> Turn | None:
        """The one that was opened last."""
        return self._turns[-1] if self._turns else None

    @property
    def oldest(self) -> Turn | None:
        """The one that is spoken, or was spoken last and waits for its end to be told."""
        return self._turns[0] if self._turns else None

    @property
    def composing(self) -> Turn | None:
        """The one that takes text."""
        newest = self.newest
        return None if newest is None or newest.closed else newest

    @property
    def opening(self) -> Turn | None:
        """The one whose ``Start`` the session has not answered."""
        newest = self.newest
        return None if newest is None or newest.epoch or newest.over else newest

    def find(self, epoch: int) -> Turn | None:
        """The turn of that epoch, unless its end has been told."""
        return next((turn for turn in self._turns if turn.epoch == epoch), None)

    def pop_ended(self) -> Iterator[Turn]:
        """Turns whose end may be told now, in order: text and audio are complete. Each is gone
        when it is given."""
        while self._turns and self._turns[0].closed and self._turns[0].over:
            yield self._turns.popleft()

    def drop(self, turn: Turn) -> None:
        """Forget one of them."""
        self._turns.remove(turn)

    def clear(self) -> None:
        """Forget all of them."""
        self._turns.clear()
