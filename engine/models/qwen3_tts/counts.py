"""How far each stream has come, in arrays by slot: the bookkeeping of a step costs nearly the same
for one stream as for five hundred, and only streams with something to tell are looked at singly.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NEVER: Final = 1 << 40
"""More frames than any stream makes."""
RUNNING: Final = 0
READING: Final = 1
"""Of a phase: its prompt is read in pieces; no frame yet."""
OVER: Final = 2
"""Of a phase: what the device still makes of it is nobody's."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When an utterance is ended though the model does not end it (which happens to some).

    ``frames_base`` + ``frames_per_token`` x text tokens is the most an utterance may have once its
    text is complete; ``repeats``: identical codes 0 in a row; ``silence``: seconds without sound.
    """

    frames_base: int = 50
    frames_per_token: int = 16
    repeats: int = 75
    silence: float = 6.0

    def frames(self, tokens: int) -> int:
        """Budget of a text."""
        return self.frames_base + self.frames_per_token * tokens


class Counts:
    """A row per slot, and a last one that belongs to nobody and stays as it is.

    ``allowed``, ``stop``, ``watched`` and ``texts`` are written by whoever brings text, also while
    a step reads them: an id is there before ``allowed`` admits its frame. ``decoded`` and ``quiet``
    belong to the codec lanes, the rest to the LM lane. Slots are int64 [n], each at most once.
    """

    def __init__(self, slots: int, positions: int, text_pad: int, limits: Limits) -> None:
        rows = slots + 1
        self.limits, self.positions, self._pad = limits, positions, text_pad
        self.life = np.zeros(rows, np.int64)
        """Streams that have sat there: what was asked for one is not the next one's."""
        self.phase = np.full(rows, OVER)
        self.made = np.zeros(rows, np.int64)
        """Frames."""
        self.ahead = np.zeros(rows, np.int64)
        """Frames that the device was asked for beyond those."""
        self.owed = np.zeros(rows, np.int64)
        """Of the frames made, those of which nobody was told."""
        self.notes = np.zeros(rows, np.bool_)
        """Whether there is more to tell than a number of frames."""
        self.allowed = np.full(rows, NEVER)
        """Frames that may be asked for: by a given length, and by the text known so far."""
        self.stop = np.full(rows, NEVER)
        """Frames with which the stream must end."""
        self.watched = np.zeros(rows, np.bool_)
        """Whether silence and repeated codes end it."""
        self.rows = np.zeros(rows, np.int64)
        """Of the prompt."""
        self.texts = np.full((rows, positions), text_pad, np.int32)
        """Text id that joins frame f at index f; padding from the text's end on."""
        self.decoded = np.zeros(rows, np.int64)
        """Frames."""
        self.quiet = np.zeros(rows)
        """Seconds of silence at the end of what was decoded."""

    def begin(self, slot: int, rows: int) -> None:
        """A stream sits down, with a prompt of ``rows``: nothing made, no text."""
        self.life[slot] += 1
        self.rows[slot] = rows
        for column in (self.made, self.ahead, self.owed, self.decoded, self.quiet):
            column[slot] = 0
        self.notes[slot] = self.watched[slot] = False
        self.allowed[slot] = self.stop[slot] = NEVER
        self.texts[slot] = self._pad
        self.phase[slot] = RUNNING

    def full(self, slot: int) -> int:
        """Frames with which its context is full."""
        return self.positions - int(self.rows[slot]) + 1

    # -- the LM lane ------------------------------------------------------------------------

    def able(self, slots: Ints) -> Ints:
        """Those of which the device can make one more frame than it was asked for."""
        asked = self.made[slots] + self.ahead[slots]
        free: Flags = (self.phase[slots] == RUNNING) & (asked < self.allowed[slots])
        return slots if free.all() else slots[free]

    def ask(self, slots: Ints) -> npt.NDArray[np.int32]:
        """One more frame of each is asked for. Returns the text ids that join the latest frames;
        of streams that have none yet, anything."""
        latest = self.made[slots] + self.ahead[slots] - 1
        self.ahead[slots] += 1
        joining: npt.NDArray[np.int32] = self.texts[slots, latest.clip(0, self.positions - 1)]
        return joining

    def land(self, slots: Ints, life: Ints, status: Ints, repeats: Ints) -> list[int]:
        """A frame asked for each of ``slots``, when ``life`` was theirs, is there: ``status`` and
        ``repeats`` as of ``Frames``. Returns the places in the batch that must be judged singly,
        as their streams may end; frames of all others are noted."""
        mine = (self.life[slots] == life) & (self.phase[slots] != OVER)
        at = None if mine.all() else np.flatnonzero(mine)
        if at is not None:
            slots, status, repeats = slots[at], status[at], repeats[at]
        sound = status == 0
        made = self.made[slots] + sound
        self.made[slots] = made
        self.owed[slots] += sound
        self.ahead[slots] -= 1
        odd = ~sound | (made >= self.stop[slots])
        watched = self.watched[slots]
        if watched.any():
            limits = self.limits
            dull = (repeats >= limits.repeats) | (self.quiet[slots] >= limits.silence)
            odd |= watched & dull
        found = np.flatnonzero(odd)
        places: list[int] = (found if at is None else at[found]).tolist()
        return places

    def over(self, slot: int) -> None:
        """The stream has ended; there is more to tell of it."""
        self.phase[slot] = OVER
        self.notes[slot] = True

    def tell(self, slots: Ints) -> tuple[Ints, Flags, Flags]:
        """Frames of which nobody was told so far, and will be now; which streams need more said
        (warnings, an end), and which have nothing to go on with."""
        frames, notes = self.owed[slots], self.notes[slots]
        self.owed[slots] = 0
        if notes.any():
            self.notes[slots[notes]] = False  # not of others: they may just be set
        waiting = self.made[slots] >= self.allowed[slots]
        hungry = waiting & (self.ahead[slots] == 0) & (self.phase[slots] == RUNNING)
        return frames, notes, hungry

    # -- the codec lanes --------------------------------------------------------------------

    def ready(self, slots: Ints, first: Ints, frames: Ints) -> Flags:
        """Whether frames [first, first + frames) are the next ones of each, and made."""
        ready: Flags = (first == self.decoded[slots]) & (first + frames <= self.made[slots])
        return ready

    def hear(self, slots: Ints, tails: npt.NDArray[np.float64], heard: Flags) -> None:
        """What was decoded ends with ``tails`` seconds of silence; ``heard``: not all of it is."""
        self.quiet[slots] = tails + np.where(heard, 0.0, self.quiet[slots])
