"""16-bit mono WAV files: written while audio arrives, and read back."""

import struct
import wave
from os import PathLike
from types import TracebackType
from typing import BinaryIO, Self

from .base import Pcm, clean
from .pcm import pack_s16le, unpack_s16le

SAMPLE_BYTES = 2
# Most that a RIFF header can announce: what a pipe's header says, as its end is unknown.
MOST_BYTES = 0xFFFF_FFFF - 36
MOST_FRAMES = MOST_BYTES // SAMPLE_BYTES
TAGS = {"pcm_s16le": (1, 2), "pcm_f32le": (3, 4), "alaw": (6, 1), "mulaw": (7, 1)}
"""Format tags (RFC 2361) and bytes a sample."""


class WavWriter:
    """Writes PCM to a WAV file as it comes.

    On a seekable output the header is right after every ``write``, so a file that was cut short
    still plays. A pipe gets a header that announces the longest possible length, as players
    expect of live streams. An output that was passed in open is left open.
    """

    def __init__(self, output: str | PathLike[str] | BinaryIO, sample_rate: int) -> None:
        self._owned = isinstance(output, str | PathLike)
        self._file = _open_output(output)
        self._wave: wave.Wave_write | None = None
        if self._file.seekable():
            self._wave = _open_wave(self._file, sample_rate)
        else:
            self._file.write(endless_header(sample_rate))
        self._file.flush()
        self.samples = 0

    def write(self, pcm: Pcm) -> None:
        """Append float32 [n]; clipped to -1..1, NaN and infinity become 0."""
        data = pack_s16le(clean(pcm)[0])
        if self._wave is not None:
            self._wave.writeframes(data)
        else:
            self._file.write(data)
        self._file.flush()
        self.samples += len(data) // SAMPLE_BYTES

    def close(self) -> None:
        """Finish the file. May be called again."""
        try:
            if self._wave is not None:
                self._wave.close()
        finally:
            if self._owned:
                self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_wav(source: str | PathLike[str] | BinaryIO) -> tuple[Pcm, int]:
    """Audio float32 [n] and sample rate of a 16-bit mono WAV file.

    Raises ``ValueError`` for other layouts and ``wave.Error`` for what is no WAV file.
    """
    file = str(source) if isinstance(source, PathLike) else source
    with wave.open(file, "rb") as wav:
        if (wav.getnchannels(), wav.getsampwidth()) != (1, SAMPLE_BYTES):
            raise ValueError(
                f"expected 16-bit mono, found {8 * wav.getsampwidth()}-bit with "
                f"{wav.getnchannels()} channels"
            )
        data = wav.readframes(wav.getnframes())
        return unpack_s16le(data[: len(data) // SAMPLE_BYTES * SAMPLE_BYTES]), wav.getframerate()


def _open_output(output: str | PathLike[str] | BinaryIO) -> BinaryIO:
    return open(output, "wb") if isinstance(output, str | PathLike) else output


def _open_wave(file: BinaryIO, sample_rate: int) -> wave.Wave_write:
    wav = wave.open(file, "wb")  # noqa: SIM115
    wav.setnchannels(1)
    wav.setsampwidth(SAMPLE_BYTES)
    wav.setframerate(sample_rate)
    wav.writeframes(b"")
    return wav


def endless_header(sample_rate: int, codec: str = "pcm_s16le") -> bytes:
    """The 44 bytes before mono samples whose end is not known yet. ``codec``: one of ``TAGS``."""
    tag, width = TAGS[codec]
    most = MOST_BYTES // width * width
    head = struct.pack("<4sI4s4sI", b"RIFF", 36 + most, b"WAVE", b"fmt ", 16)
    form = struct.pack("<HHIIHH", tag, 1, sample_rate, sample_rate * width, width, 8 * width)
    return head + form + struct.pack("<4sI", b"data", most)
