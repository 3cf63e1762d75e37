"""Opus: exact sample counts, delay, and the guards around opuslib."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playhead.codecs import opus
from playhead.codecs.base import NOTHING, BadAudio, Encoded

RATES = (8000, 16000, 24000, 48000)


def speech_like(rate: int, samples: int) -> np.ndarray:
    """Voiced harmonics with a moving pitch and syllable-like loudness: no two stretches alike."""
    seconds = np.arange(samples) / rate
    phase = 2 * np.pi * (120 * seconds + 8 * np.sin(2 * np.pi * 1.3 * seconds))
    harmonics = sum(np.sin(n * phase) / n for n in range(1, 20))
    loudness = 0.15 * (1 + np.sin(2 * np.pi * 3.1 * seconds))
    return (harmonics * loudness / 1.5).astype(np.float32)


def encode(pcm: np.ndarray, rate: int, chunk: int) -> list[Encoded]:
    packer = opus.OpusPacker(rate)
    pieces = [packer.pack(pcm[at : at + chunk]) for at in range(0, len(pcm), chunk)]
    return [*pieces, packer.finish()]


def decode(pieces: list[Encoded], rate: int) -> np.ndarray:
    decoder = opus.OpusDecoder(rate, opus.pre_skip(rate))
    parts = [decoder.decode(piece.data, piece.packets, piece.samples) for piece in pieces]
    return np.concatenate(parts)


@pytest.mark.parametrize(
    ("rate", "lookahead"), [(8000, 52), (16000, 104), (24000, 156), (48000, 312)]
)
def test_pre_skip_is_six_and_a_half_milliseconds(rate: int, lookahead: int) -> None:
    assert opus.pre_skip(rate) == lookahead
    assert opus.packet_samples(rate) == rate // 50


@pytest.mark.parametrize(("rate", "early"), [(8000, 0), (16000, 0), (24000, 2), (48000, 3)])
def test_decoded_audio_is_aligned_with_the_input(rate: int, early: int) -> None:
    """The best match is at lag 0; at most 60 microseconds early where Opus codes low and high
    bands apart (its low band then leads by a sample or two)."""
    pcm = speech_like(rate, 2 * rate)
    decoded = decode(encode(pcm, rate, rate * 2 // 25), rate)
    assert len(decoded) == len(pcm)
    reach = rate // 50
    inner = pcm[reach:-reach]
    match = [
        float(np.dot(inner, decoded[reach + lag : len(decoded) - reach + lag]))
        for lag in range(-reach, reach)
    ]
    assert -early <= int(np.argmax(match)) - reach <= 0
    assert match[reach] / np.dot(inner, inner) == pytest.approx(1.0, abs=0.1)


def test_the_last_samples_are_pushed_through_the_lookahead() -> None:
    pcm = speech_like(24000, 24000)
    decoded = decode(encode(pcm, 24000, 24000), 24000)
    last = slice(-240, None)
    assert np.corrcoef(pcm[last], decoded[last])[0, 1] > 0.9


def test_each_packet_adds_its_playable_samples() -> None:
    packer = opus.OpusPacker(24000)
    pcm = speech_like(24000, 1000)
    assert packer.pack(pcm[:479]) == NOTHING
    first = packer.pack(pcm[479:480])
    assert (first.samples, len(first.packets)) == (480 - 156, 1)
    second = packer.pack(pcm[480:])
    assert (second.samples, len(second.packets)) == (480, 1)
    last = packer.finish()
    assert (last.samples, len(last.packets)) == (1000 - 804, 1)
    assert all(sum(piece.packets) == len(piece.data) for piece in (first, second, last))


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("length", [0, 1, 51, 159, 160, 161, 323, 324, 325, 480, 24001])
def test_totals_are_exact(rate: int, length: int) -> None:
    pieces = encode(speech_like(rate, length), rate, 700)
    assert sum(piece.samples for piece in pieces) == length
    assert len(decode(pieces, rate)) == length


def test_an_utterance_without_audio_has_no_packets() -> None:
    assert opus.OpusPacker(24000).finish() == NOTHING


def test_the_bit_rate_is_near_what_was_asked_for() -> None:
    pieces = encode(speech_like(24000, 24000 * 4), 24000, 1920)
    bits_per_second = 8 * sum(len(piece.data) for piece in pieces) / 4
    assert 16000 < bits_per_second < 40000


@pytest.mark.parametrize(
    "frame",
    [np.zeros(479, np.float32), np.zeros(481, np.float32), np.zeros(480), np.zeros((1, 480))],
)
def test_a_buffer_of_the_wrong_size_never_reaches_libopus(frame: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"takes float32 \[480\], not"):
        opus.PacketEncoder(24000).encode(frame)


def test_a_failed_encode_is_printable() -> None:
    encoder = opus.PacketEncoder(24000)
    encoder.packet_samples = 481  # no Opus frame size
    with pytest.raises(opus.OpusFault, match=r"encoding failed: invalid argument .*error -1"):
        encoder.encode(np.zeros(481, np.float32))


def test_a_rate_that_opus_lacks_is_printable() -> None:
    with pytest.raises(opus.OpusFault, match="cannot open an Opus encoder: invalid argument"):
        opus.PacketEncoder(11025)
    with pytest.raises(opus.OpusFault, match="cannot open an Opus decoder: invalid argument"):
        opus.OpusDecoder(11025, 0)


@pytest.mark.parametrize(
    ("data", "packets", "samples", "message"),
    [
        (b"abc", (2,), 0, "do not add up to 3 bytes"),
        (b"abc", (3, 0), 0, "do not add up"),
        (b"abc", (4, -1), 0, "do not add up"),
        (b"", (), 1, "0 Opus packets hold 0 playable samples, not the announced 1"),
        (b"", (), -1, "not the announced -1"),
    ],
)
def test_a_message_that_contradicts_itself_is_refused(
    data: bytes, packets: tuple[int, ...], samples: int, message: str
) -> None:
    with pytest.raises(BadAudio, match=message):
        opus.OpusDecoder(24000, 156).decode(data, packets, samples)


def test_more_samples_than_the_packets_hold_are_refused() -> None:
    first = encode(speech_like(24000, 1920), 24000, 1920)[0]
    decoder = opus.OpusDecoder(24000, 156)
    with pytest.raises(BadAudio, match="4 Opus packets hold 1764 playable samples"):
        decoder.decode(first.data, first.packets, first.samples + 1)


def test_garbage_is_no_packet() -> None:
    garbage = b"\xff" * 40
    with pytest.raises(BadAudio, match="not an Opus packet of 20 ms: corrupted stream"):
        opus.OpusDecoder(24000, 156).decode(garbage, (40,), 0)


def test_packets_of_another_length_are_refused() -> None:
    import opuslib

    short = opuslib.Encoder(24000, 1, "audio").encode_float(bytes(240 * 4), 240)
    with pytest.raises(BadAudio, match=r"holds 240 samples, not 480"):
        opus.OpusDecoder(24000, 156).decode(short, (len(short),), 0)
    long = opuslib.Encoder(24000, 1, "audio").encode_float(bytes(960 * 4), 960)
    with pytest.raises(BadAudio, match="not an Opus packet of 20 ms: buffer too small"):
        opus.OpusDecoder(24000, 156).decode(long, (len(long),), 0)


def test_streams_do_not_share_an_encoder() -> None:
    alone = encode(speech_like(24000, 4800), 24000, 960)
    one, other = opus.OpusPacker(24000), opus.OpusPacker(24000)
    pcm, noise = speech_like(24000, 4800), np.random.default_rng(1).uniform(-1, 1, 4800)
    together = []
    for at in range(0, 4800, 960):
        together.append(one.pack(pcm[at : at + 960]))
        other.pack(noise[at : at + 960].astype(np.float32))
    assert together == alone[:-1]


@pytest.fixture
def fresh_load() -> Iterator[None]:
    """The decision whether libopus is there is made anew, and again after the test."""
    opus._find.cache_clear()
    yield
    opus._find.cache_clear()


def forget_opuslib(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "opuslib"]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.usefixtures("fresh_load")
def test_without_libopus_one_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.util.find_library", lambda name: None)
    with pytest.raises(opus.OpusUnavailable, match=r"was not found.*apt-get install libopus0"):
        opus.PacketEncoder(24000)
    with pytest.raises(opus.OpusUnavailable, match="All other codecs work"):
        opus.OpusDecoder(24000, 156)
    assert "libopus0" in (opus.unavailable() or "")


@pytest.mark.usefixtures("fresh_load")
def test_a_libopus_that_does_not_load_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_opuslib(monkeypatch)
    monkeypatch.setattr("ctypes.util.find_library", lambda name: "/nowhere/libopus.so.0")
    with pytest.raises(opus.OpusUnavailable, match=r"could not be loaded \(/nowhere/libopus"):
        opus.PacketEncoder(24000)


@pytest.mark.usefixtures("fresh_load")
def test_a_missing_opuslib_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_opuslib(monkeypatch)
    monkeypatch.setitem(sys.modules, "opuslib", None)
    with pytest.raises(opus.OpusUnavailable, match="opuslib"):
        opus.PacketEncoder(24000)


@pytest.mark.usefixtures("fresh_load")
def test_the_search_for_libopus_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[str] = []
    monkeypatch.setattr("ctypes.util.find_library", lambda name: searches.append(name))
    assert opus.unavailable() == opus.unavailable()
    assert searches == ["opus"]


@pytest.mark.usefixtures("fresh_load")
@pytest.mark.parametrize("where", ["os.open", "ctypes.util.find_library"])
def test_a_search_without_descriptors_is_not_remembered(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Neither where there are none before the search nor where they go during it."""

    def fail(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(where, fail)
        with pytest.raises(opus.OpusUnavailable, match="Too many open files"):
            opus.PacketEncoder(24000)
    assert opus.unavailable() is None


@pytest.mark.parametrize("spare", [0, 1, 3, 5, 7])
def test_a_want_of_descriptors_is_told_as_such_and_passes(spare: int) -> None:
    """In a fresh interpreter, whose first use of Opus falls into it."""
    program = (
        "import os, resource\n"
        "from playhead.codecs import opus\n"
        "free = os.open(os.devnull, os.O_RDONLY)\n"
        "os.close(free)\n"
        "soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (free + {spare}, hard))\n"
        "try:\n"
        "    opus.PacketEncoder(24000)\n"
        "except opus.OpusUnavailable as fault:\n"
        "    assert 'Too many open files' in str(fault), fault\n"
        "    print('told')\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))\n"
        "assert opus.unavailable() is None, opus.unavailable()\n"
        "opus.PacketEncoder(24000)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    assert spare or finished.stdout == "told\n"


def test_opuslib_is_imported_late_and_without_warnings(tmp_path: Path) -> None:
    """In a fresh interpreter that compiles everything anew and makes warnings errors."""
    program = (
        "import sys; from playhead.codecs import registry, opus\n"
        "assert 'opuslib' not in sys.modules\n"
        "opus.PacketEncoder(24000)\n"
        "assert 'opuslib' in sys.modules\n"
    )
    finished = subprocess.run(
        [sys.executable, "-W", "error::SyntaxWarning", "-c", program],
        env={**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
