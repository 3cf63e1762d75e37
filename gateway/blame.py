"""Why a listener ran dry: which of those between its text and its ear was late. Pure.

A stall can be seen at the listener alone, its cause at the server alone. This module keeps, for
one utterance, when audio left and how long what had left before would last, and holds that
against what the listener reports.

* ``text``: nothing was left to be spoken; the text for more came too late.
* ``engine``: audio left too late, and had been made too late.
* ``loop``: audio left too late though it had been made in time: the event loop or the wire
  encoders of this process kept it.
* ``client``: audio was there, and the listener's program stood still or did not play it.
* ``network``: audio left in time, and had not arrived when it was needed.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from playhead.engine.types import ListenerState, Report

LATE: Final = 0.010
"""Seconds by which audio may leave after its time before anybody is blamed for it."""
CLAUSE: Final = 120
"""Characters that may wait for the end of their clause: with more than that at hand, a late engine
cannot say that it had no text."""
FROZEN: Final = 1.0
"""Seconds of its own clock between two reports of a listener, which promises four a second, that
show its program to have stood still."""
HELD: Final = 0.05
"""Seconds of audio that a dry listener may hold: below its threshold, but no reserve."""
MEMORY: Final = 1.0
"""Seconds for which lateness is remembered: the report of what it did is still on its way."""
MAX_STALLS: Final = 20
"""A report that claims more at once is no measurement."""


class Cause(StrEnum):
    """Who was late."""

    TEXT = "text"
    ENGINE = "engine"
    LOOP = "loop"
    NETWORK = "network"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Stall:
    """One time that a listener ran dry: why, and for how many seconds as far as it said."""

    cause: Cause
    seconds: float


class Blame:
    """One utterance. Times are monotonic seconds, positions samples; ``drain`` is how many of them
    the listener plays in a second."""

    def __init__(self, drain: float) -> None:
        self._drain = drain
        self._sent = 0
        self._played = 0
        self._end: float | None = None  # when what was sent will have been played; None: no telling
        self._frozen = False
        self._given = 0  # characters of text
        self._spoken = 0  # characters in what was sent
        self._complete = False
        self._text_at = -math.inf
        self._late: dict[Cause, float] = {}
        self._late_at = -math.inf
        self._blocked = False
        self._underruns, self._starved, self._clock = 0, 0.0, -math.inf  # as last reported
        self._open = 0  # stalls that go on
        self._open_since = 0.0  # what the listener's ``starved`` was before them
        self._suspect = Cause.NETWORK

    def text(self, characters: int, end: bool, now: float) -> None:
        """Text was given to the engine; ``end``: no more will come."""
        self._given += characters
        self._complete = self._complete or end
        self._text_at = now

    def blocked(self) -> None:
        """The socket took nothing for a while."""
        self._blocked = True

    def sent(self, samples: int, spoken_to: int, kept: float, one_way: float, now: float) -> None:
        """Audio entered the send queue ``kept`` seconds after it was made. ``spoken_to``: the
        last character that it speaks, 0 when no word begins in it."""
        arrival = now + one_way
        if self._end is not None and arrival - self._end >= LATE:
            late, cause = arrival - self._end, self._who(arrival - self._end, kept)
            self._late[cause] = self._late.get(cause, 0.0) + late
            self._late_at = now
        if not self._frozen:
            start = arrival if self._end is None else max(self._end, arrival)
            self._end = start + samples / self._drain
        self._sent += samples
        self._spoken = max(self._spoken, spoken_to)

    def report(self, report: Report, one_way: float, now: float) -> list[Stall]:
        """A checked report that arrived ``now``; the stalls that are over with it."""
        fresh = min(max(0, report.underruns - self._underruns), MAX_STALLS)
        if fresh:
            self._open_since = self._open_since if self._open else self._starved
            self._open += fresh
            self._suspect = self._suspicion(report)
        self._underruns = max(self._underruns, report.underruns)
        self._starved = max(self._starved, report.starved)
        self._clock = report.client_time
        self._anchor(report, one_way, now)
        if report.state is ListenerState.STALLED:
            return []
        over = self.over()
        if over or now - self._late_at > MEMORY:
            self._late.clear()
        self._blocked = False
        return over

    def over(self) -> list[Stall]:
        """The stalls that go on, as if they ended here: the utterance does."""
        count, self._open = self._open, 0
        if not count:
            return []
        return [Stall(self._cause(), max(0.0, self._starved - self._open_since) / count)] * count

    @property
    def _lacks_text(self) -> bool:
        return self._given - self._spoken <= CLAUSE

    def _who(self, late: float, kept: float) -> Cause:
        """Why audio leaves ``late`` seconds after its time."""
        assert self._end is not None
        if self._blocked:
            return Cause.NETWORK  # nothing was made because the socket took nothing
        if self._lacks_text and not self._complete and self._text_at >= self._end - LATE:
            return Cause.TEXT
        return Cause.LOOP if kept >= late / 2 else Cause.ENGINE

    def _suspicion(self, report: Report) -> Cause:
        """Who it was if the server was not late."""
        frozen = FROZEN <= report.client_time - self._clock < math.inf
        holds = report.state is ListenerState.STALLED and report.buffered > HELD * self._drain
        return Cause.CLIENT if frozen or holds else Cause.NETWORK

    def _cause(self) -> Cause:
        if self._late:
            return max(self._late, key=self._late.__getitem__)
        if self._played < self._sent or self._blocked:
            return self._suspect
        # All that was sent has been played, and nothing more ever came.
        return Cause.TEXT if self._lacks_text else Cause.ENGINE

    def _anchor(self, report: Report, one_way: float, now: float) -> None:
        """What was sent lasts until then, as the listener counts."""
        self._played = report.consumed + report.discarded
        self._frozen = report.state in (ListenerState.PAUSED, ListenerState.SUSPENDED)
        if self._frozen or not self._sent:
            self._end = None
            return
        left = max(0, self._sent - self._played) / self._drain
        dry_for = self._starved - self._open_since if self._open and not left else 0.0
        self._end = now - one_way + left - max(0.0, dry_for)
