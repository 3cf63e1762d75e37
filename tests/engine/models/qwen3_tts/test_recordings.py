# ruff: noqa: E402 - what follows needs torch
"""Recordings of voices: what is taken, and what is refused with which words."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")
soundfile = pytest.importorskip("soundfile", reason="soundfile is not installed (extra: qwen)")

from playhead.engine.models.qwen3_tts import recordings as module
from playhead.engine.models.qwen3_tts.prompt import PromptError
from playhead.engine.models.qwen3_tts.recordings import read_recordings

RATE = 24_000


def tone(seconds: float = 2.0, rate: int = RATE, level: float = 0.5) -> npt.NDArray[np.float32]:
    at = np.arange(round(seconds * rate)) / rate
    return (level * np.sin(2 * np.pi * 440 * at)).astype(np.float32)


def write(path: Path, pcm: npt.NDArray[Any], rate: int = RATE, **more: Any) -> Path:
    soundfile.write(path, pcm, rate, **more)
    return path


def test_a_folder_of_voices(tmp_path: Path) -> None:
    write(tmp_path / "ada.wav", tone())
    write(tmp_path / "bob-2.FLAC", tone(1.5))
    (tmp_path / "bob-2.txt").write_text("  Über allem.\n")
    (tmp_path / "notes.md").write_text("not looked at")
    ada, bob = read_recordings(tmp_path, RATE)
    assert (ada.name, ada.rate, ada.text, len(ada.pcm)) == ("ada", RATE, "", 48_000)
    assert (bob.name, bob.text, len(bob.pcm)) == ("bob-2", "Über allem.", 36_000)
    assert ada.pcm.dtype == np.float32
    assert np.abs(ada.pcm - tone()).max() < 1e-4


@pytest.mark.parametrize("rate", [16_000, 44_100, 48_000])
def test_other_rates_are_converted(tmp_path: Path, rate: int) -> None:
    write(tmp_path / "ada.wav", tone(rate=rate, level=1.0), rate, subtype="FLOAT")
    (ada,) = read_recordings(tmp_path, RATE)
    assert len(ada.pcm) == 48_000
    inner = slice(2_000, -2_000)
    assert np.abs(ada.pcm[inner] - tone(level=1.0)[inner]).max() < 2e-3
    assert np.abs(ada.pcm).max() <= 1.0


STEREO = np.stack([tone(), tone()], 1)


@pytest.mark.parametrize(
    ("pcm", "rate", "said"),
    [
        (tone(0.5), RATE, r"of 0\.50 s is too short: 1 to 60 s are accepted"),
        (tone(61), RATE, r"of 61\.00 s is too long: 1 to 60 s are accepted"),
        (STEREO, RATE, "one channel is needed, mix it to mono"),
        (tone(rate=8_000), 8_000, "is at 8000 Hz: at least 16000 Hz is needed"),
        (0 * tone(), RATE, "is silent: its peak is below -50 dBFS"),
    ],
    ids=["short", "long", "stereo", "8kHz", "silent"],
)
def test_unusable_recordings(tmp_path: Path, pcm: npt.NDArray[Any], rate: int, said: str) -> None:
    path = write(tmp_path / "ada.wav", pcm, rate)
    with pytest.raises(PromptError, match=said) as caught:
        read_recordings(tmp_path, RATE)
    assert str(caught.value).startswith(str(path))


def test_not_a_number(tmp_path: Path) -> None:
    broken = tone()
    broken[7] = np.nan
    write(tmp_path / "ada.wav", broken, subtype="FLOAT")
    with pytest.raises(PromptError, match=r"within -1\.\.1"):
        read_recordings(tmp_path, RATE)


@pytest.mark.parametrize("content", [b"", b"RIFF but nothing else", b"<html>"])
def test_no_audio(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ada.wav").write_bytes(content)
    with pytest.raises(PromptError, match="cannot be read as audio"):
        read_recordings(tmp_path, RATE)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="no such folder"):
        read_recordings(tmp_path / "nowhere", RATE)
    with pytest.raises(PromptError, match=r"no recordings: \.wav, \.flac, \.ogg, \.mp3"):
        read_recordings(tmp_path, RATE)


@pytest.mark.parametrize("name", ["Ada.wav", "a b.wav", "-a.wav", f"{'a' * 65}.wav"])
def test_names_that_no_voice_has(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, tone())
    with pytest.raises(PromptError, match="small letters, digits"):
        read_recordings(tmp_path, RATE)


def test_a_voice_has_one_recording(tmp_path: Path) -> None:
    write(tmp_path / "ada.wav", tone())
    write(tmp_path / "ada.flac", tone())
    with pytest.raises(PromptError, match="two recordings of ada"):
        read_recordings(tmp_path, RATE)


def test_voices_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_VOICES", 1)
    for name in "ab":
        write(tmp_path / f"{name}.wav", tone())
    with pytest.raises(PromptError, match="holds 2 recordings: at most 1"):
        read_recordings(tmp_path, RATE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b" \n", r"ada\.txt is empty"),
        (b"\xff", r"ada\.txt is not UTF-8"),
        (b"a" * 2_001, "has 2001 characters: at most 2000"),
        (b"a" * 8_001, r"ada\.txt is too long: at most 2000 characters"),
    ],
)
def test_unusable_texts(tmp_path: Path, text: bytes, said: str) -> None:
    write(tmp_path / "ada.wav", tone())
    (tmp_path / "ada.txt").write_bytes(text)
    with pytest.raises(PromptError, match=said):
        read_recordings(tmp_path, RATE)


def test_a_text_without_its_recording(tmp_path: Path) -> None:
    write(tmp_path / "ada.wav", tone())
    (tmp_path / "bob.txt").write_text("hello")
    with pytest.raises(PromptError, match=r"there is no bob\.wav"):
        read_recordings(tmp_path, RATE)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    outside = write(tmp_path / "secret.wav", tone())
    (tmp_path / "secret.txt").write_text("the password")
    folder = tmp_path / "voices"
    folder.mkdir()
    (folder / "ada.wav").symlink_to(outside)
    with pytest.raises(PromptError, match=r"ada\.wav is a link out of the folder"):
        read_recordings(folder, RATE)
    (folder / "ada.wav").unlink()
    write(folder / "ada.wav", tone())
    (folder / "ada.txt").symlink_to("../secret.txt")
    with pytest.raises(PromptError, match=r"ada\.txt is a link out of the folder"):
        read_recordings(folder, RATE)


def test_a_link_within_the_folder_is_how_some_systems_mount_files(tmp_path: Path) -> None:
    data = tmp_path / "..2026"
    data.mkdir()
    write(data / "ada.wav", tone())
    (tmp_path / "ada.wav").symlink_to("..2026/ada.wav")
    assert [one.name for one in read_recordings(tmp_path, RATE)] == ["ada"]


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ada.wav")  # whoever opened it would wait for ever
    with pytest.raises(PromptError, match=r"ada\.wav is no file"):
        read_recordings(tmp_path, RATE)
