"""What the talker reads before its first frame, row by row, and which text joins which frame.

Every row of a prompt is one vector: the embedding of a text token, of a codec token, or the sum of
both. Here a row is its pair of ids; :mod:`embed` turns rows into vectors. Two layouts exist. In the
*full* layout the prompt holds the whole text. In the *open* layout it holds the first token, and
each later one joins a frame as it is made, so that speech starts before the text is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from playhead.engine.models.qwen3_tts.config import ModelConfig, TalkerConfig

NONE = -1
"""No token on this side of a row."""
AUTO = "auto"
"""The language that the model finds out by itself."""
DIALECT_BASE = (AUTO, "chinese")
"""Languages in which a speaker with a dialect speaks that."""
DESIGNED = "designed"
"""Name of the one voice of a model that makes voices from descriptions."""


class PromptError(ValueError):
    """A request cannot be spoken by this model; says what was wrong and what is accepted."""


class Row(NamedTuple):
    """A row of a prompt: token ids of the text side and of the codec side, or ``NONE``."""

    text: int
    codec: int


@dataclass(frozen=True, slots=True, eq=False)
class Clone:
    """A voice taken from a recording.

    ``vector`` float32 [hidden] is the speaker encoder's. With ``codes`` int64 [T, groups] of the
    recording and the ids of what it says, the talker continues the recording (in-context
    learning); without, the vector alone describes the voice.
    """

    vector: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int64] | None = None
    text: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.codes is not None and not self.text:
            raise PromptError("reference codes need the text of the recording, which is empty")


@dataclass(frozen=True, slots=True)
class Style:
    """A checked choice of voice, language and manner. ``language`` and ``speaker`` are codec ids
    or ``NONE``; ``instruct`` are the token ids of the instruction, framed, or nothing."""

    language: int
    speaker: int = NONE
    clone: Clone | None = None
    instruct: tuple[int, ...] = ()

    @property
    def reference_frames(self) -> int:
        """Frames of the recording that the prompt repeats."""
        if self.clone is None or self.clone.codes is None:
            return 0
        return len(self.clone.codes)


@dataclass(frozen=True, slots=True)
class Prompt:
    """``rows`` to read, and ``trailing``: the text ids that join frames 0, 1, …; afterwards
    padding does. ``vector_at``: the row that is the clone's vector (its codec side is void).
    ``codes_at``: the first row to whose codec side the recording's frames are added, one each."""

    rows: tuple[Row, ...]
    trailing: tuple[int, ...]
    clone: Clone | None = None
    vector_at: int = NONE
    codes_at: int = NONE


@dataclass(frozen=True, slots=True)
class Voices:
    """The voices of a model: its own, or ``clones`` by name."""

    config: ModelConfig
    clones: Mapping[str, Clone] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """What a request may ask for."""
        if self.config.kind == "voice_design":
            return (DESIGNED,)
        if self.config.kind == "base":
            return tuple(sorted(self.clones))
        return tuple(sorted(self.config.talker.speakers))

    @property
    def languages(self) -> tuple[str, ...]:
        """What a request may ask for, ``AUTO`` first."""
        return (AUTO, *sorted(self.config.talker.languages))

    @property
    def takes_instructions(self) -> bool:
        """Whether a request may say how to speak."""
        kind, size = self.config.kind, self.config.size
        return kind == "voice_design" or (kind == "custom_voice" and size != "0b6")

    def style(self, voice: str, language: str = AUTO, instruct: Sequence[int] = ()) -> Style:
        """Check a choice. ``instruct``: ids of the framed instruction. Raises PromptError."""
        voice, language = voice.lower(), language.lower()
        if voice not in self.names:
            raise PromptError(f"unknown voice {voice!r}: available are {_listed(self.names)}")
        if language not in self.languages:
            raise PromptError(
                f"unknown language {language!r}: available are {_listed(self.languages)}"
            )
        if instruct and not self.takes_instructions:
            raise PromptError(
                f"this model ({self.config.kind}, {self.config.size}) takes no instructions: "
                f"leave them out, or use a voice_design or a larger custom_voice model"
            )
        talker = self.config.talker
        return Style(
            language=_language_id(talker, voice, language),
            speaker=talker.speakers.get(voice, NONE)
            if self.config.kind == "custom_voice"
            else NONE,
            clone=self.clones.get(voice),
            instruct=tuple(instruct),
        )


@dataclass(frozen=True, slots=True)
class PromptBuilder:
    """Lays out prompts. ``role``: ids of the opening of the assistant's turn."""

    config: ModelConfig
    role: tuple[int, ...]

    def full(self, style: Style, text: Sequence[int]) -> Prompt:
        """The layout that holds the whole text, which must not be empty."""
        _check_text(text)
        ids, pad = self.config.ids, self.config.talker.ids.pad
        rows, vector_at = self._opening(style)
        spoken = [*self.reference_text(style), *text, ids.tts_eos]
        rows += [Row(token, pad) for token in spoken]
        codes_at = len(rows) + 1 if style.reference_frames else NONE
        rows += [Row(ids.tts_pad, codec) for codec in self._codec_rows(style)]
        return Prompt(tuple(rows), (), style.clone, vector_at, codes_at)

    def can_open(self, style: Style, tokens: int, *, ended: bool) -> bool:
        """Whether :meth:`open` has enough of the text with ``tokens`` of it known."""
        if ended:
            return tokens > 0
        return tokens > 0 and len(self.reference_text(style)) + tokens > style.reference_frames

    def open(self, style: Style, text: Sequence[int], *, ended: bool) -> Prompt:
        """The layout that starts with what is known of the text (see :meth:`can_open`). Unless
        ``ended``, the ids that follow must be added to ``trailing`` as they come, and then
        ``tts_eos``."""
        _check_text(text)
        ids = self.config.ids
        rows, vector_at = self._opening(style)
        spoken = [*self.reference_text(style), *text, *([ids.tts_eos] if ended else [])]
        codec = self._codec_rows(style)
        if not ended and len(spoken) < len(codec):
            raise PromptError(
                f"{len(codec)} tokens are needed to start, {len(spoken)} are known so far"
            )
        codes_at = len(rows) + 1 if style.reference_frames else NONE
        padding = [ids.tts_pad] * (len(codec) - len(spoken))
        rows += map(Row, [*spoken, *padding], codec)
        return Prompt(tuple(rows), tuple(spoken[len(codec) :]), style.clone, vector_at, codes_at)

    def _opening(self, style: Style) -> tuple[list[Row], int]:
        """Everything before the text, and which of these rows is a clone's vector."""
        text, codec = self.config.ids, self.config.talker.ids
        rows = [Row(token, NONE) for token in (*style.instruct, *self.role)]
        if style.language == NONE:
            thought = [codec.nothink, codec.think_bos, codec.think_eos]
        else:
            thought = [codec.think, codec.think_bos, style.language, codec.think_eos]
        rows += [Row(text.tts_pad, token) for token in thought]
        vector_at = len(rows) if style.clone else NONE
        if style.clone or style.speaker != NONE:
            rows.append(Row(text.tts_pad, style.speaker))
        rows.append(Row(text.tts_bos, codec.pad))
        return rows, vector_at

    def _codec_rows(self, style: Style) -> list[int]:
        """The codec side of where frames begin: the opening token, then the recording's frames."""
        return [self.config.talker.ids.bos] + [NONE] * style.reference_frames

    def reference_text(self, style: Style) -> tuple[int, ...]:
        """What stands before the text because the prompt repeats a recording."""
        return style.clone.text if style.clone and style.reference_frames else ()


def _language_id(talker: TalkerConfig, voice: str, language: str) -> int:
    if language in DIALECT_BASE and voice in talker.dialects:
        language = talker.dialects[voice]
    return NONE if language == AUTO else talker.languages[language]


def _check_text(text: Sequence[int]) -> None:
    if not text:
        raise PromptError("there is no text to speak")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none (no voice was loaded)"
