"""WAV files: written as audio comes, valid at any time."""

import io
import struct
import wave
from pathlib import Path

import numpy as np
import pytest
from playhead.codecs.wav import MOST_FRAMES, WavWriter, endless_header, read_wav


class Pipe(io.BytesIO):
    """An output that cannot go back, like a shell pipe."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise OSError("a pipe cannot seek")

    def tell(self) -> int:
        raise OSError("a pipe cannot tell")


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "hello.wav"
    with WavWriter(path, 24000) as writer:
        writer.write(np.array([0.5, -0.5, np.nan], np.float32))
        writer.write(np.zeros(0, np.float32))
        writer.write(np.array([2.0, -2.0], np.float32))
        assert writer.samples == 5
    pcm, rate = read_wav(path)
    assert rate == 24000
    assert pcm.tolist() == [0.5, -0.5, 0.0, 32767 / 32768, -1.0]


def test_the_header_is_the_standard_44_bytes(tmp_path: Path) -> None:
    path = tmp_path / "two.wav"
    with WavWriter(str(path), 16000) as writer:
        writer.write(np.array([0.5, -0.5], np.float32))
    assert path.read_bytes() == bytes.fromhex(
        "52494646 28000000 57415645 666d7420 10000000 0100 0100 803e0000 007d0000 0200 1000"
        "64617461 04000000 0040 00c0"
    )


def test_a_file_cut_short_already_plays(tmp_path: Path) -> None:
    path = tmp_path / "cut.wav"
    writer = WavWriter(path, 8000)
    assert len(read_wav(path)[0]) == 0
    writer.write(np.full(100, 0.25, np.float32))
    pcm, rate = read_wav(path)
    assert (len(pcm), rate) == (100, 8000)
    writer.close()
    writer.close()
    assert len(read_wav(path)[0]) == 100


def test_a_pipe_gets_an_endless_header_and_stays_open() -> None:
    pipe = Pipe()
    with WavWriter(pipe, 24000) as writer:
        writer.write(np.array([0.5, -0.5], np.float32))
    written = pipe.getvalue()
    assert len(written) == 44 + 4
    assert int.from_bytes(written[40:44], "little") == MOST_FRAMES * 2
    pcm, rate = read_wav(io.BytesIO(written))
    assert (pcm.tolist(), rate) == ([0.5, -0.5], 24000)
    assert not pipe.closed


def test_an_output_passed_in_open_is_left_open() -> None:
    buffer = io.BytesIO()
    with WavWriter(buffer, 24000) as writer:
        writer.write(np.zeros(10, np.float32))
    assert not buffer.closed
    buffer.seek(0)
    assert len(read_wav(buffer)[0]) == 10


def test_a_stream_cut_inside_a_sample_gives_the_whole_ones() -> None:
    pipe = Pipe()
    WavWriter(pipe, 24000).write(np.array([0.5, -0.5], np.float32))
    assert read_wav(io.BytesIO(pipe.getvalue()[:-1]))[0].tolist() == [0.5]


def test_other_layouts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "stereo.wav"
    with wave.open(str(path), "wb") as wav:
        wav.setnchannels(2)
        wav.setsampwidth(1)
        wav.setframerate(8000)
        wav.writeframes(b"\0\0")
    with pytest.raises(ValueError, match="found 8-bit with 2 channels"):
        read_wav(path)


def test_what_is_no_wav_file_is_refused() -> None:
    with pytest.raises(wave.Error):
        read_wav(io.BytesIO(b"MThd this is something else"))


@pytest.mark.parametrize(
    ("codec", "tag", "width"),
    [("pcm_s16le", 1, 2), ("pcm_f32le", 3, 4), ("alaw", 6, 1), ("mulaw", 7, 1)],
)
def test_headers_of_other_samples(codec: str, tag: int, width: int) -> None:
    """Format tags of RFC 2361, and a length that is whole samples."""
    header = endless_header(8_000, codec)
    assert (header[:4], header[8:16], header[36:40]) == (b"RIFF", b"WAVEfmt ", b"data")
    fields = struct.unpack("<IHHIIHH", header[16:36])
    assert fields == (16, tag, 1, 8_000, 8_000 * width, width, 8 * width)
    riff, data = struct.unpack_from("<I", header, 4)[0], struct.unpack_from("<I", header, 40)[0]
    assert riff == 36 + data
    assert data % width == 0
