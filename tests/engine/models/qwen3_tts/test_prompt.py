"""Which rows a prompt has, in which order."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playhead.engine.models.qwen3_tts.config import ModelConfig
from playhead.engine.models.qwen3_tts.prompt import (
    DESIGNED,
    NONE,
    Clone,
    Prompt,
    PromptBuilder,
    PromptError,
    Style,
    Voices,
)
from talker_kit import HIDDEN, ROLE, model_config

PAD, BOS = 2148, 2149
THINK, NO_THINK, THINK_BOS, THINK_EOS = 2154, 2155, 2156, 2157
TEXT_PAD, TEXT_BOS, TEXT_EOS = 502, 503, 504
RYAN, ERIC = 3061, 2875
ENGLISH, CHINESE, SICHUAN = 2050, 2055, 2062
VECTOR = np.ones(HIDDEN, np.float32)


def config(folder: Path, kind: str = "custom_voice") -> ModelConfig:
    return model_config(kind, "1b7", folder)


def pairs(prompt: Prompt) -> list[tuple[int, int]]:
    return [(row.text, row.codec) for row in prompt.rows]


def role() -> list[tuple[int, int]]:
    return [(token, NONE) for token in ROLE]


def thought(language: int) -> list[tuple[int, int]]:
    ids = (THINK, THINK_BOS, language, THINK_EOS)
    return [(TEXT_PAD, token) for token in ids]


NO_THOUGHT = [(TEXT_PAD, token) for token in (NO_THINK, THINK_BOS, THINK_EOS)]


def recording(frames: int, tokens: int) -> Clone:
    codes = np.arange(frames * 16).reshape(frames, 16)
    return Clone(VECTOR, codes, tuple(range(100, 100 + tokens)))


def test_full_layout_of_a_speaker_in_a_language(tmp_path: Path) -> None:
    own = config(tmp_path)
    prompt = PromptBuilder(own, ROLE).full(Voices(own).style("Ryan", "English"), [7, 8])
    assert pairs(prompt) == [
        *role(),
        *thought(ENGLISH),
        (TEXT_PAD, RYAN),
        (TEXT_BOS, PAD),
        (7, PAD),
        (8, PAD),
        (TEXT_EOS, PAD),
        (TEXT_PAD, BOS),
    ]
    assert prompt.trailing == ()
    assert (prompt.vector_at, prompt.codes_at) == (NONE, NONE)


def test_open_layout_of_a_speaker_with_an_instruction(tmp_path: Path) -> None:
    own = config(tmp_path)
    style = Voices(own).style("ryan", "auto", [90, 91])
    prompt = PromptBuilder(own, ROLE).open(style, [7, 8, 9], ended=True)
    assert pairs(prompt) == [
        (90, NONE),
        (91, NONE),
        *role(),
        *NO_THOUGHT,
        (TEXT_PAD, RYAN),
        (TEXT_BOS, PAD),
        (7, BOS),
    ]
    assert prompt.trailing == (8, 9, TEXT_EOS)


def test_open_layout_of_a_text_that_grows(tmp_path: Path) -> None:
    own = config(tmp_path)
    prompt = PromptBuilder(own, ROLE).open(Voices(own).style("ryan"), [7, 8], ended=False)
    assert prompt.trailing == (8,)


def test_a_designed_voice_has_no_speaker_row(tmp_path: Path) -> None:
    own = config(tmp_path, "voice_design")
    style = Voices(own).style(DESIGNED, instruct=[90])
    prompt = PromptBuilder(own, ROLE).full(style, [7])
    assert pairs(prompt)[1:8] == [*role(), *NO_THOUGHT, (TEXT_BOS, PAD)]


def test_a_vector_is_the_speaker_row(tmp_path: Path) -> None:
    own = config(tmp_path, "base")
    style = Voices(own, {"me": Clone(VECTOR)}).style("me", "chinese")
    prompt = PromptBuilder(own, ROLE).full(style, [7])
    at = len(ROLE) + 4
    assert prompt.vector_at == at
    assert pairs(prompt)[at] == (TEXT_PAD, NONE)
    assert prompt.codes_at == NONE


def test_full_layout_of_a_recording(tmp_path: Path) -> None:
    own = config(tmp_path, "base")
    style = Voices(own, {"me": recording(3, 2)}).style("me")
    prompt = PromptBuilder(own, ROLE).full(style, [7])
    assert pairs(prompt)[len(ROLE) + 5 :] == [
        (100, PAD),
        (101, PAD),
        (7, PAD),
        (TEXT_EOS, PAD),
        (TEXT_PAD, BOS),
        *[(TEXT_PAD, NONE)] * 3,
    ]
    assert prompt.codes_at == len(prompt.rows) - 3


@pytest.mark.parametrize(
    ("tokens", "ended", "rows", "trailing"),
    [
        ([7, 8, 9], True, [(100, BOS), (101, NONE), (7, NONE)], (8, 9, TEXT_EOS)),
        ([7, 8, 9], False, [(100, BOS), (101, NONE), (7, NONE)], (8, 9)),
        ([], True, [], ()),
    ],
)
def test_open_layout_of_a_short_recording(
    tmp_path: Path,
    tokens: list[int],
    ended: bool,
    rows: list[tuple[int, int]],
    trailing: tuple[int, ...],
) -> None:
    own = config(tmp_path, "base")
    style = Voices(own, {"me": recording(2, 2)}).style("me")
    builder = PromptBuilder(own, ROLE)
    if not tokens:
        with pytest.raises(PromptError, match="no text"):
            builder.open(style, tokens, ended=ended)
        return
    prompt = builder.open(style, tokens, ended=ended)
    assert pairs(prompt)[len(ROLE) + 5 :] == rows
    assert prompt.codes_at == len(prompt.rows) - 2
    assert prompt.trailing == trailing


def test_open_layout_of_a_long_recording_is_padded_or_waits(tmp_path: Path) -> None:
    own = config(tmp_path, "base")
    style = Voices(own, {"me": recording(5, 1)}).style("me")
    builder = PromptBuilder(own, ROLE)
    prompt = builder.open(style, [7, 8], ended=True)
    texts = [text for text, _ in pairs(prompt)[len(ROLE) + 5 :]]
    assert texts == [100, 7, 8, TEXT_EOS, TEXT_PAD, TEXT_PAD]
    assert prompt.trailing == ()
    assert [builder.can_open(style, n, ended=False) for n in (0, 4, 5)] == [False, False, True]
    assert [builder.can_open(style, n, ended=True) for n in (0, 1)] == [False, True]
    with pytest.raises(PromptError, match="6 tokens are needed to start, 5 are known"):
        builder.open(style, [7, 8, 9, 10], ended=False)
    assert builder.open(style, [7, 8, 9, 10, 11], ended=False).trailing == ()


@pytest.mark.parametrize(
    ("voice", "language", "expected"),
    [
        ("eric", "auto", SICHUAN),
        ("eric", "chinese", SICHUAN),
        ("eric", "english", ENGLISH),
        ("ryan", "chinese", CHINESE),
        ("ryan", "auto", NONE),
    ],
)
def test_a_speaker_with_a_dialect_speaks_it_in_chinese(
    tmp_path: Path, voice: str, language: str, expected: int
) -> None:
    assert Voices(config(tmp_path)).style(voice, language).language == expected


def test_names_of_voices_and_languages(tmp_path: Path) -> None:
    voices = Voices(config(tmp_path))
    assert voices.names == ("eric", "ryan", "serena")
    assert voices.languages == ("auto", "chinese", "english", "sichuan_dialect")
    assert voices.style("eric") == Style(SICHUAN, ERIC)
    clones: Mapping[str, Clone] = {"b": Clone(VECTOR), "a": Clone(VECTOR)}
    assert Voices(config(tmp_path, "base"), clones).names == ("a", "b")
    assert Voices(config(tmp_path, "voice_design")).names == (DESIGNED,)


@pytest.mark.parametrize(
    ("kind", "size", "takes"),
    [
        ("custom_voice", "1b7", True),
        ("custom_voice", "0b6", False),
        ("voice_design", "1b7", True),
        ("base", "1b7", False),
    ],
)
def test_who_takes_instructions(tmp_path: Path, kind: str, size: str, takes: bool) -> None:
    own = replace(config(tmp_path, kind), size=size)
    voices = Voices(own, {"me": Clone(VECTOR)})
    assert voices.takes_instructions is takes
    if not takes:
        with pytest.raises(PromptError, match="takes no instructions"):
            voices.style("me" if kind == "base" else "ryan", instruct=[1])


def test_unknown_names_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    voices = Voices(config(tmp_path))
    with pytest.raises(PromptError, match="unknown voice 'bob': available are eric, ryan, serena"):
        voices.style("Bob")
    with pytest.raises(PromptError, match="unknown language 'x': available are auto, chinese"):
        voices.style("ryan", "X")
    with pytest.raises(PromptError, match=r"none .no voice was loaded"):
        Voices(config(tmp_path, "base")).style("me")


def test_codes_without_their_text_are_refused() -> None:
    with pytest.raises(PromptError, match="text of the recording"):
        Clone(VECTOR, np.zeros((2, 16), np.int64))


def test_an_empty_text_is_refused(tmp_path: Path) -> None:
    own = config(tmp_path)
    with pytest.raises(PromptError, match="no text"):
        PromptBuilder(own, ROLE).full(Voices(own).style("ryan"), [])
