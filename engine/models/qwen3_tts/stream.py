"""State of one utterance on the host: its text, its slot, how far it has come, when it must end."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from playhead.engine.models.qwen3_tts.prompt import Prompt, PromptBuilder, Style
from playhead.engine.models.qwen3_tts.text import TokenStream
from playhead.engine.types import Finish, Pcm, Request, StepResult, TextWarning

SILENCE = 10 ** (-60 / 20)
"""Peak below which audio counts as silent: -60 dBFS."""


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


@dataclass(slots=True, eq=False)
class Stream:
    """``push`` runs beside a step: both meet in ``known`` and ``text_ended`` under ``lock``.
    ``decoded`` and ``quiet`` belong to the codec lanes, the rest to the LM lane."""

    request: Request
    style: Style
    tokens: TokenStream
    fixed_frames: int | None = None  # random weights: the length is given
    lock: threading.Lock = field(default_factory=threading.Lock)
    known: list[int] = field(default_factory=list)  # text ids, a recording's and the end's too
    text_ended: bool = False
    slot: int | None = None
    prompt_rows: int = 0
    text_ids: int = 0  # of the text alone
    joined: int = 0  # known ids that are in the prompt or were written to the slot
    in_prompt: int = 0  # those of them in the prompt
    open_layout: bool = False
    reading: Iterator[tuple[int, int]] | None = None  # its prompt in pieces: rows read, rows left
    made: int = 0  # frames
    ahead: int = 0  # frames that the device was asked for beyond those
    landed: list[tuple[int, int]] = field(default_factory=list)  # status and repeats of such ones
    ended: bool = False  # what the device still makes of it is nobody's
    poisoned: bool = False
    decoded: int = 0  # frames
    quiet: float = 0.0  # seconds of silence at the end of what was decoded
    _warned: int = 0
    _frames: dict[int, StepResult] = field(default_factory=dict)

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

    def steppable(self, builder: PromptBuilder) -> bool:
        """Whether a step would give a frame or the end."""
        if self.ahead:
            return True
        with self.lock:
            if self.text_ended:
                return True
            if self.slot is None:
                return builder.can_open(self.style, len(self.known), ended=False)
            return not self.open_layout or self.made <= len(self.known) - self.in_prompt

    def can_go_on(self, builder: PromptBuilder) -> bool:
        """Whether the device can make one more frame than it was asked for. Of an opened stream."""
        if self.reading is not None or self.ended or self.made + self.ahead == self.fixed_frames:
            return False
        if not self.open_layout:
            return True
        with self.lock:
            return self.text_ended or self.made + self.ahead <= len(self.known) - self.in_prompt

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

    def take_text(self) -> tuple[int, list[int]]:
        """Ids that are not in the slot yet, and the frame that the first of them joins."""
        if not self.open_layout or self.joined == len(self.known):
            return 0, []
        with self.lock:
            at, ids = self.joined - self.in_prompt, self.known[self.joined :]
            self.joined = len(self.known)
            return at, ids

    def context(self) -> int:
        """Positions that hold context before the next step."""
        return self.prompt_rows + max(0, self.made - 1)

    def over_limit(self, limits: Limits, positions: int, repeats: int) -> bool:
        """Whether the utterance must end here, though the model goes on."""
        if self.context() >= positions:
            return True
        if self.fixed_frames is not None or not self.text_ended:
            return False
        return (
            self.made >= limits.frames(self.text_ids)
            or repeats >= limits.repeats
            or self.quiet >= limits.silence
        )

    def listen(self, pcm: Pcm, sample_rate: int) -> None:
        """Keep count of silence in decoded audio."""
        loud = np.flatnonzero(np.abs(pcm) >= SILENCE)
        since = len(pcm) if not len(loud) else len(pcm) - 1 - int(loud[-1])
        self.quiet = since / sample_rate + (self.quiet if not len(loud) else 0.0)

    def warnings(self) -> tuple[TextWarning, ...]:
        """Text that was left out, once each."""
        if self._warned == len(self.tokens.removed):
            return ()
        new = self.tokens.removed[self._warned :]
        self._warned += len(new)
        message = "a control word of the model's vocabulary was left out"
        utterance = self.request.utterance
        return tuple(TextWarning(utterance, "unspeakable_text", message, word) for word in new)

    def one_frame(self) -> StepResult:
        """The usual result of a step."""
        return self.frames(1)

    def frames(self, count: int) -> StepResult:
        """``count`` frames and nothing else to say: the same every time, so made once."""
        if self._warned != len(self.tokens.removed):
            return self.result(count)
        if count not in self._frames:
            self._frames[count] = self.result(count)
        return self._frames[count]

    def result(
        self,
        frames: int,
        *,
        hungry: bool = False,
        ended: bool = False,
        finish: Finish = Finish.COMPLETE,
        error: str | None = None,
    ) -> StepResult:
        """What a step gave this utterance."""
        return StepResult(
            self.request.utterance,
            frames,
            boundary=False,
            hungry=hungry,
            ended=ended,
            warnings=self.warnings(),
            finish=finish,
            error=error,
        )
