"""State of one utterance on the host: its text, its prompt, its slot, and how it ended.

How far it has come is in the arrays of ``Counts``, in the row of its slot.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from playhead.engine.models.qwen3_tts.counts import NEVER, Counts
from playhead.engine.models.qwen3_tts.prompt import Prompt, PromptBuilder, Style
from playhead.engine.models.qwen3_tts.text import TokenStream
from playhead.engine.types import Finish, Request, StepResult, TextWarning

SILENCE = 10 ** (-60 / 20)
"""Peak below which audio counts as silent: -60 dBFS."""


class End(NamedTuple):
    """How a stream ended; with ``error`` it failed."""

    finish: Finish = Finish.COMPLETE
    error: str | None = None


@dataclass(slots=True, eq=False)
class Stream:
    """``push`` runs beside a step: both meet in ``known`` and ``text_ended`` under ``lock``, and in
    the slot's row of ``counts``. The rest belongs to the LM lane."""

    request: Request
    style: Style
    tokens: TokenStream
    counts: Counts
    fixed_frames: int | None = None  # random weights: the length is given
    lock: threading.Lock = field(default_factory=threading.Lock)
    known: list[int] = field(default_factory=list)  # text ids, a recording's and the end's too
    text_ended: bool = False
    slot: int | None = None
    prompt_rows: int = 0
    text_ids: int = 0  # of the text alone
    in_prompt: int = 0  # known ids that are in the prompt
    joined: int = 0  # known ids that are there or in the slot's row of texts
    open_layout: bool = False
    reading: Iterator[tuple[int, int]] | None = None  # its prompt in pieces: rows read, rows left
    end: End | None = None
    poisoned: bool = False
    _warned: int = 0

    @property
    def made(self) -> int:
        """Frames."""
        return 0 if self.slot is None else int(self.counts.made[self.slot])

    @property
    def decoded(self) -> int:
        """Frames."""
        return 0 if self.slot is None else int(self.counts.decoded[self.slot])

    def push(self, delta: str, *, flush: bool, end: bool, eos: int) -> None:
        """Add text. ``eos``: the id that says that no more comes."""
        with self.lock:
            if self.text_ended:
                raise ValueError("text was pushed after the end of the utterance's text")
            new = self.tokens.push(delta)
            if flush or end:
                new += self.tokens.flush()
            self.known += new
            self.text_ids += len(new)
            if end:
                self.text_ended = True
                if self.open_layout:
                    self.known.append(eos)
            if self.slot is not None:
                self._note_text(self.slot)

    def steppable(self, builder: PromptBuilder) -> bool:
        """Whether a step would give a frame or the end."""
        slot, counts = self.slot, self.counts
        if slot is not None and (counts.ahead[slot] or counts.owed[slot]):
            return True
        with self.lock:
            if self.text_ended:
                return True
            if slot is None:
                return builder.can_open(self.style, len(self.known), ended=False)
            return not self.open_layout or self.made <= len(self.known) - self.in_prompt

    def lay_out(self, builder: PromptBuilder, *, whole: bool) -> Prompt | None:
        """The prompt for what is known of the text, or None when there is nothing to speak.
        ``whole``: prefer the layout with the whole text where it is complete."""
        with self.lock:
            text, ended = list(self.known), self.text_ended
            if ended and not text:
                return None
            if ended and whole:
                prompt = builder.full(self.style, text)
            else:
                prompt = builder.open(self.style, text, ended=ended)
                self.open_layout = True
                self.known = [*builder.reference_text(self.style), *text]
                self.known += [builder.config.ids.tts_eos] if ended else []
            self.in_prompt = len(self.known) - len(prompt.trailing)
            self.joined = self.in_prompt
            self.prompt_rows = len(prompt.rows)
            return prompt

    def sit(self, slot: int) -> None:
        """Its row of ``counts`` is that of ``slot`` from now on."""
        with self.lock:
            self.counts.begin(slot, self.prompt_rows)
            self.slot = slot
            self._note_text(slot)

    def answer(self, frames: int, *, hungry: bool, waiting: bool = False) -> StepResult:
        """What there is to tell beside ``frames``: its end, a lack of text, that its prompt is
        being read, warnings."""
        if self.end is None:
            return self.result(frames, hungry=hungry, waiting=waiting)
        finish, error = self.end
        return self.result(frames, ended=error is None, finish=finish, error=error)

    def result(
        self,
        frames: int,
        *,
        hungry: bool = False,
        ended: bool = False,
        finish: Finish = Finish.COMPLETE,
        error: str | None = None,
        waiting: bool = False,
    ) -> StepResult:
        """What a step gave this utterance."""
        return StepResult(
            self.request.utterance,
            frames,
            boundary=False,
            hungry=hungry,
            ended=ended,
            warnings=self._warnings(),
            finish=finish,
            error=error,
            waiting=waiting,
        )

    def _note_text(self, slot: int) -> None:
        """Let steps know what is known of the text, its ids first. Under the lock."""
        counts, allowed = self.counts, NEVER
        if self.open_layout:
            row = counts.texts[slot, self.joined - self.in_prompt :]
            new = self.known[self.joined :][: len(row)]  # beyond the context nothing is spoken
            row[: len(new)] = new
            self.joined = len(self.known)
            if not self.text_ended:
                allowed = len(self.known) - self.in_prompt + 1
        fixed = NEVER if self.fixed_frames is None else self.fixed_frames
        stop = min(fixed, counts.full(slot))
        if self.text_ended and self.fixed_frames is None:
            stop = min(stop, counts.limits.frames(self.text_ids))
            counts.watched[slot] = True
        counts.stop[slot] = stop
        counts.allowed[slot] = min(fixed, allowed)
        if self._warned != len(self.tokens.removed):
            counts.notes[slot] = True

    def _warnings(self) -> tuple[TextWarning, ...]:
        """Text that was left out, once each."""
        if self._warned == len(self.tokens.removed):
            return ()
        new = self.tokens.removed[self._warned :]
        self._warned += len(new)
        message = "a control word of the model's vocabulary was left out"
        utterance = self.request.utterance
        return tuple(TextWarning(utterance, "unspeakable_text", message, word) for word in new)
