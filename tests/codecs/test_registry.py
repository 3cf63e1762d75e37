"""Every codec at every rate, through the same door as the gateway uses."""

import os
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playhead.codecs import opus, registry
from playhead.codecs.base import Encoded, StreamEnded

MODEL_RATE = 24000
FRAME = 1920
EVERY_FORMAT = [
    *((codec, rate) for codec in ("pcm_s16le", "pcm_f32le") for rate in registry.RATES),
    *(("opus", rate) for rate in opus.SAMPLE_RATES),
    ("mulaw", 8000),
    ("alaw", 8000),
]
every_format = pytest.mark.parametrize(("codec", "rate"), EVERY_FORMAT)
SAMPLE_BYTES = {"pcm_s16le": 2, "pcm_f32le": 4, "mulaw": 1, "alaw": 1}


def encode(fmt: registry.Format, pcm: np.ndarray, cuts: list[int]) -> list[Encoded]:
    encoder = registry.encoder(fmt, MODEL_RATE)
    return [*map(encoder.encode, np.split(pcm, cuts)), encoder.flush()]


def decode(fmt: registry.Format, pieces: list[Encoded]) -> np.ndarray:
    decoder = registry.decoder(fmt)
    return np.concatenate([decoder.decode(p.data, p.packets, p.samples) for p in pieces])


def tone(samples: int, hertz: float = 440.0) -> np.ndarray:
    seconds = np.arange(samples) / MODEL_RATE
    return (0.5 * np.sin(2 * np.pi * hertz * seconds)).astype(np.float32)


def test_the_formats_of_this_machine() -> None:
    everywhere = [8000, 16000, 22050, 24000, 44100, 48000]
    assert sorted(registry.formats(), key=lambda entry: entry["codec"]) == [
        {"codec": "alaw", "sample_rates": [8000]},
        {"codec": "mulaw", "sample_rates": [8000]},
        {"codec": "opus", "sample_rates": [8000, 16000, 24000, 48000]},
        {"codec": "pcm_f32le", "sample_rates": everywhere},
        {"codec": "pcm_s16le", "sample_rates": everywhere},
    ]


def test_a_format_says_how_opus_packs() -> None:
    assert registry.open_format("opus", 24000) == registry.Format("opus", 24000, 156, 480)
    assert registry.open_format("pcm_s16le", 16000) == registry.Format("pcm_s16le", 16000, 0, 0)


def test_an_unknown_codec_is_refused_with_the_known_ones() -> None:
    with pytest.raises(registry.UnsupportedCodec, match="'mp3' is not known; use one of pcm_s16le"):
        registry.open_format("mp3", 24000)


@pytest.mark.parametrize(
    ("codec", "rate", "right"),
    [("mulaw", 24000, "8000$"), ("opus", 44100, "8000, 16000, 24000, 48000$")],
)
def test_an_unsupported_rate_is_refused_with_the_right_ones(
    codec: str, rate: int, right: str
) -> None:
    with pytest.raises(
        registry.UnsupportedRate, match=f"{codec} does not run at {rate} Hz; use one of {right}"
    ):
        registry.open_format(codec, rate)


def test_a_model_without_a_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="must be positive, not 0"):
        registry.encoder(registry.open_format("pcm_s16le", 24000), 0)


def test_only_plain_pcm_is_cheap() -> None:
    cheap = {
        (codec, rate)
        for codec, rate in EVERY_FORMAT
        if registry.is_cheap(registry.open_format(codec, rate), MODEL_RATE)
    }
    assert cheap == {("pcm_s16le", 24000), ("pcm_f32le", 24000)}
    assert not registry.is_cheap(registry.open_format("mulaw", 8000), 8000)


@every_format
@pytest.mark.parametrize("length", [0, 1, 2, 119, 479, 480, 481, 1920, 24001])
def test_totals_are_exact_and_samples_whole(codec: str, rate: int, length: int) -> None:
    fmt = registry.open_format(codec, rate)
    pieces = encode(fmt, tone(length), list(range(700, length, 700)))
    total = round(length * rate / MODEL_RATE)
    assert sum(piece.samples for piece in pieces) == total
    assert len(decode(fmt, pieces)) == total
    for piece in pieces:
        if codec == "opus":
            assert sum(piece.packets) == len(piece.data)
        else:
            assert len(piece.data) == piece.samples * SAMPLE_BYTES[codec]


@every_format
def test_nothing_in_gives_nothing_out_and_an_ended_stream_says_so(codec: str, rate: int) -> None:
    encoder = registry.encoder(registry.open_format(codec, rate), MODEL_RATE)
    nothing = Encoded(b"", 0)
    assert encoder.encode(np.zeros(0, np.float32)) == nothing
    assert encoder.flush() == nothing
    with pytest.raises(StreamEnded):
        encoder.encode(np.zeros(0, np.float32))


@every_format
@settings(max_examples=10, deadline=None)
@given(cuts=st.lists(st.integers(0, 5000), max_size=10).map(sorted))
def test_bytes_do_not_depend_on_chunking(codec: str, rate: int, cuts: list[int]) -> None:
    fmt = registry.open_format(codec, rate)
    pcm = np.random.default_rng(3).uniform(-0.6, 0.6, 5000).astype(np.float32)
    whole, chunked = encode(fmt, pcm, []), encode(fmt, pcm, cuts)
    assert b"".join(p.data for p in chunked) == b"".join(p.data for p in whole)
    assert sum(p.samples for p in chunked) == sum(p.samples for p in whole)
    assert sum((p.packets for p in chunked), ()) == sum((p.packets for p in whole), ())


def bend(pcm: np.ndarray) -> float:
    """Largest second difference, without the first and last twentieth of the audio."""
    edge = len(pcm) // 20
    return float(np.abs(np.diff(pcm[edge:-edge], 2)).max())


# Second differences that the code itself may add to a tone of half scale: four half steps of
# the coarsest quantiser in use; for Opus, its coding error.
CODING = {"pcm_s16le": 2 / 32768, "pcm_f32le": 1e-5, "mulaw": 4 / 64, "alaw": 4 / 64, "opus": 0.03}


@every_format
def test_no_click_at_a_chunk_join(codec: str, rate: int) -> None:
    fmt = registry.open_format(codec, rate)
    pieces = encode(fmt, tone(FRAME * 12), list(range(FRAME, FRAME * 12, FRAME)))
    heard = decode(fmt, pieces)
    smooth = 0.5 * (2 * np.pi * 440 / rate) ** 2
    assert bend(heard) <= smooth * 1.02 + CODING[codec]


def test_a_click_would_be_noticed() -> None:
    """Each chunk through an encoder of its own: what the test above must not let pass."""
    for codec, rate in [("opus", 24000), ("pcm_s16le", 16000), ("pcm_s16le", 48000)]:
        fmt = registry.open_format(codec, rate)
        chunks = np.split(tone(FRAME * 12), range(FRAME, FRAME * 12, FRAME))
        heard = np.concatenate([decode(fmt, encode(fmt, chunk, [])) for chunk in chunks])
        smooth = 0.5 * (2 * np.pi * 440 / rate) ** 2
        assert bend(heard) > smooth * 1.02 + CODING[codec]


@every_format
def test_a_tone_keeps_its_place_and_its_loudness(codec: str, rate: int) -> None:
    """Within half a sample at the lower rate (resampler), or 60 microseconds (Opus)."""
    fmt = registry.open_format(codec, rate)
    heard = decode(fmt, encode(fmt, tone(FRAME * 12), [FRAME, 5 * FRAME + 7]))
    middle = np.arange(len(heard))[len(heard) // 10 : -len(heard) // 10]
    angle = 2 * np.pi * 440 * middle / rate
    basis = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    fit, *_ = np.linalg.lstsq(basis, heard[middle], rcond=None)
    late = -np.arctan2(fit[1], fit[0]) / (2 * np.pi * 440)
    resampled = 0.5 / min(rate, MODEL_RATE) if rate != MODEL_RATE else 1e-6
    assert abs(late) < resampled + (60e-6 if codec == "opus" else 0.0)
    assert np.hypot(*fit) == pytest.approx(0.5, abs=0.03 if codec == "opus" else 0.003)
    noise = np.sqrt(np.mean((heard[middle] - basis @ fit) ** 2))
    assert noise < {"pcm_s16le": 2e-5, "pcm_f32le": 1e-5, "opus": 0.04}.get(codec, 0.01)


@every_format
def test_broken_input_never_reaches_a_speaker(codec: str, rate: int) -> None:
    fmt = registry.open_format(codec, rate)
    encoder = registry.encoder(fmt, MODEL_RATE)
    pcm = tone(FRAME)
    pcm[[0, 700, 1919]] = np.nan, np.inf, -np.inf
    pcm[100:200] = 40.0
    heard = decode(fmt, [encoder.encode(pcm), encoder.flush()])
    assert np.isfinite(heard).all()
    assert np.abs(heard).max() <= 1.0
    assert encoder.repaired == 3


@pytest.fixture
def no_libopus(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    opus._find.cache_clear()
    monkeypatch.setattr("ctypes.util.find_library", lambda name: None)
    yield
    opus._find.cache_clear()


@pytest.mark.usefixtures("no_libopus")
def test_without_libopus_all_other_codecs_work() -> None:
    offered = [entry["codec"] for entry in registry.formats()]
    assert offered == ["pcm_s16le", "pcm_f32le", "mulaw", "alaw"]
    for entry in registry.formats():
        fmt = registry.open_format(entry["codec"], entry["sample_rates"][0])
        assert len(decode(fmt, encode(fmt, tone(2400), []))) == 800
    with pytest.raises(registry.UnsupportedCodec, match=r"libopus0.*use one of pcm_s16le") as told:
        registry.open_format("opus", 24000)
    assert "alaw" in str(told.value)
    assert "opuslib" not in str(told.value) or sys.platform == "win32"


@pytest.mark.usefixtures("no_libopus")
def test_without_libopus_a_session_costs_no_look_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.formats()
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("a descriptor was asked for"))
    assert registry.open_format("pcm_s16le", 24000).codec == "pcm_s16le"
