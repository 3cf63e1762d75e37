# ruff: noqa: E402 - what follows needs torch
"""The speaker encoder against the reference implementation, and what it refuses to hear."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

from playhead.engine.models.qwen3_tts import speaker
from playhead.engine.models.qwen3_tts.prompt import PromptError
from playhead.engine.models.qwen3_tts.speaker import SpeakerEncoder
from playhead.engine.models.qwen3_tts.speaker_mel import check_audio, log_mel, mel_filters
from talker_kit import RECORDING_RATE, VECTORS, model_config, recording, speaker_checkpoint

RATE = RECORDING_RATE
TOLERANCE = 1e-5  # the issue asks for 1e-4


@pytest.fixture
def encoder(tmp_path: Path) -> SpeakerEncoder:
    config = model_config("base", "1b7", tmp_path).speaker_encoder
    assert config is not None
    return SpeakerEncoder.load(speaker_checkpoint(tmp_path), config)


@pytest.fixture(scope="module")
def truth() -> dict[str, npt.NDArray[np.float32]]:
    with np.load(VECTORS / "talker_speaker.npz") as archive:
        return dict(archive)


def test_log_mel_is_the_references(truth: dict[str, npt.NDArray[np.float32]]) -> None:
    mel = log_mel(torch.from_numpy(recording()), RATE, 128).numpy()
    assert mel.shape == truth["mel"].shape
    assert np.abs(mel - truth["mel"]).max() <= TOLERANCE
    assert truth["mel"].std() > 1.0


def test_the_vector_is_the_references(
    encoder: SpeakerEncoder, truth: dict[str, npt.NDArray[np.float32]]
) -> None:
    vector = encoder.describe(recording(), RATE)
    assert vector.dtype == np.float32
    assert np.abs(vector - truth["vector"]).max() <= TOLERANCE
    assert truth["vector"].std() > 100 * TOLERANCE


def test_another_recording_has_another_vector(encoder: SpeakerEncoder) -> None:
    one, two = (encoder.describe(pcm, RATE) for pcm in (recording(), recording()[::-1].copy()))
    assert np.abs(one - two).max() > 100 * TOLERANCE


def test_filters_have_unit_area_and_end_at_the_highest_tone() -> None:
    filters = mel_filters(RATE, 128)
    assert filters.shape == (128, 513)
    width = RATE / 1024
    assert filters.sum(1) * width == pytest.approx(np.ones(128), abs=0.35)
    assert filters[60:].sum(1) * width == pytest.approx(np.ones(68), abs=0.05)


def test_as_many_elements_as_the_published_encoder() -> None:
    config = speaker.SpeakerEncoderConfig(
        width=2048,
        sample_rate=RATE,
        mels=128,
        channels=(512, 512, 512, 512, 1536),
        kernel_sizes=(5, 3, 3, 3, 1),
        dilations=(1, 2, 3, 4, 1),
        attention_channels=128,
        res2net_scale=8,
        se_channels=128,
    )
    counts = [
        sum(spec.size for spec in speaker.tensors(replace(config, width=width)).values())
        for width in (2048, 1024)
    ]
    assert counts == [1_928_677_440 - 1_916_676_352, 914_643_008 - 905_788_672]


@pytest.mark.parametrize(
    ("pcm", "rate", "said"),
    [
        (np.full((RATE, 2), 0.1, np.float32), RATE, "mix it to mono"),
        (np.full(8_000, 0.1, np.float32), 8_000, "8000 Hz: 24000 Hz is needed"),
        (np.full(RATE, 100, np.int16), RATE, "int16: floats"),
        (np.full(RATE // 2, 0.1, np.float32), RATE, "0.50 s is too short: 1 to 60 s"),
        (np.full(61 * RATE, 0.1, np.float32), RATE, "61.00 s is too long"),
        (np.zeros(RATE, np.float32), RATE, "silent"),
        (np.full(RATE, 1.5, np.float32), RATE, "within -1..1"),
        (np.full(RATE, np.nan, np.float32), RATE, "within -1..1"),
    ],
    ids=["stereo", "rate", "integers", "short", "long", "silent", "loud", "nan"],
)
def test_unusable_recordings_are_refused(
    pcm: npt.NDArray[np.generic], rate: int, said: str
) -> None:
    with pytest.raises(PromptError, match=said):
        check_audio(pcm, rate, RATE)


def test_usable_recordings_become_float32() -> None:
    assert check_audio(recording().astype(np.float64), RATE, RATE).dtype == np.float32
