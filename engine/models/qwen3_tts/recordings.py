"""Recordings of voices to be cloned, read from a folder and checked.

A voice is a file ``NAME.wav`` (or flac, ogg, mp3) and, where it is known, what is said in it:
``NAME.txt``. With the text the model continues the recording, which is closer; without, it gets a
description of the voice alone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from playhead.engine.models.qwen3_tts.prompt import PromptError
from playhead.engine.models.qwen3_tts.speaker_mel import LONGEST, SHORTEST, check_audio
from playhead.engine.types import Pcm

SUFFIXES = (".wav", ".flac", ".ogg", ".mp3")
LOWEST_RATE = 16_000
"""Hz: below, what tells voices apart is missing."""
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
MOST_TEXT = 2_000
"""Characters; a minute of speech has half of that."""
MOST_VOICES = 256


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A checked recording: mono ``pcm`` float32 [samples] at ``rate`` Hz within -1..1, and the
    ``text`` that is said in it, or nothing."""

    name: str
    pcm: Pcm
    rate: int
    text: str


def read_recordings(folder: Path, rate: int) -> tuple[Recording, ...]:
    """All voices of ``folder``, by name, at ``rate`` Hz.

    Raises PromptError, naming the file, for one that cannot be used: unreadable, not mono, below
    16 kHz, too short or long, silent, or with a text that is empty, too long or no UTF-8; and for
    a link that leads out of the folder, which is not followed.
    """
    if not folder.is_dir():
        raise PromptError(f"{folder}: no such folder of recordings")
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    if not files:
        raise PromptError(f"{folder} holds no recordings: {', '.join(SUFFIXES)} are accepted")
    if len(files) > MOST_VOICES:
        raise PromptError(f"{folder} holds {len(files)} recordings: at most {MOST_VOICES}")
    _check_names(folder, files)
    return tuple(_read(files, rate))


def _check_names(folder: Path, files: list[Path]) -> None:
    names = [path.stem for path in files]
    for path in files:
        if not NAME.fullmatch(path.stem):
            raise PromptError(
                f"{path}: a voice's name has small letters, digits, - and _, at most 64 of them"
            )
        if names.count(path.stem) > 1:
            raise PromptError(f"{folder} holds two recordings of {path.stem}: keep one")
    texts = sorted(folder.glob("*.txt"))
    for text in texts:
        if text.stem not in names:
            raise PromptError(f"{text} belongs to no recording: there is no {text.stem}.wav")
    _check_links(folder, [*files, *texts])


def _check_links(folder: Path, files: list[Path]) -> None:
    """A link within the folder is how some systems mount files; one that leads elsewhere would make
    a voice, or a text that is spoken, of whatever the server may read."""
    home = folder.resolve()
    for path in files:
        if not path.resolve().is_relative_to(home):
            raise PromptError(f"{path} is a link out of the folder: put the file itself there")
        if not path.is_file():
            raise PromptError(f"{path} is no file")


def _read(files: list[Path], rate: int) -> Iterator[Recording]:
    for path in files:
        try:
            pcm, found = _load(path)
            audio = _resampled(check_audio(pcm, found, found), found, rate)
            yield Recording(path.stem, audio, rate, _text(path.with_suffix(".txt")))
        except PromptError as fault:
            raise PromptError(f"{path}: {fault}") from None


def _load(path: Path) -> tuple[Pcm, int]:
    # Not every installation clones voices.
    import soundfile

    try:
        about = soundfile.info(path)
        if about.samplerate < LOWEST_RATE:
            raise PromptError(
                f"reference audio is at {about.samplerate} Hz: at least {LOWEST_RATE} Hz is needed"
            )
        seconds = about.frames / about.samplerate
        if seconds > LONGEST:  # before minutes of it are in memory
            raise PromptError(
                f"reference audio of {seconds:.2f} s is too long: {SHORTEST:g} to {LONGEST:g} s "
                f"are accepted"
            )
        pcm, rate = soundfile.read(path, dtype="float32")
    except (soundfile.LibsndfileError, OSError) as fault:
        raise PromptError(f"cannot be read as audio: {fault}") from None
    return pcm, int(rate)


def _resampled(pcm: Pcm, rate: int, wanted: int) -> Pcm:
    if rate == wanted:
        return pcm
    import soxr

    resampled: Pcm = soxr.resample(pcm, rate, wanted, quality="VHQ")
    return np.clip(resampled, -1.0, 1.0)  # filters overshoot at full scale


def _text(path: Path) -> str:
    if not path.exists():
        return ""
    if path.stat().st_size > 4 * MOST_TEXT:  # before it is in memory
        raise PromptError(f"{path.name} is too long: at most {MOST_TEXT} characters")
    try:
        text = path.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        raise PromptError(f"{path.name} is not UTF-8") from None
    if not text:
        raise PromptError(f"{path.name} is empty: write what is said, or remove it")
    if len(text) > MOST_TEXT:
        raise PromptError(f"{path.name} has {len(text)} characters: at most {MOST_TEXT}")
    return text
