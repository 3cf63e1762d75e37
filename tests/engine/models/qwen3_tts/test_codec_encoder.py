# ruff: noqa: E402 - what follows needs torch
"""The codec encoder against the reference implementation's vectors
(scripts/parity/make_encoder_vectors.py)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")
pytest.importorskip("safetensors", reason="safetensors is not installed (extra: qwen)")

from playhead.engine.models.qwen3_tts.codec_encoder import CodecEncoder, open_codec_encoder
from playhead.engine.models.qwen3_tts.config import ConfigError
from playhead.engine.models.qwen3_tts.encoder_config import (
    CodecEncoderConfig,
    read_encoder_config,
)
from playhead.engine.models.qwen3_tts.encoder_spec import encoder_tensors
from playhead.engine.models.qwen3_tts.prompt import PromptError
from playhead.engine.models.qwen3_tts.weights import WeightsError
from safetensors.torch import load_file, save_file

FOLDER = Path(__file__).resolve().parents[3] / "vectors" / "qwen3_tts" / "encoder_tiny"
RATE = 24_000
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def encoder() -> CodecEncoder:
    return open_codec_encoder(FOLDER)


@pytest.fixture(scope="module")
def vectors() -> dict[str, Any]:
    return load_file(FOLDER / "reference.safetensors")


def test_codes_are_those_of_the_reference(encoder: CodecEncoder, vectors: dict[str, Any]) -> None:
    codes = encoder.encode(vectors["pcm"].numpy(), RATE)
    expected = vectors["codes"].long().numpy()
    assert codes.dtype == np.int64
    np.testing.assert_array_equal(codes, expected)
    # Vectors whose codes hardly change would show nothing.
    assert all(len(np.unique(book)) > 5 for book in expected.T)
    assert len(np.unique(expected, axis=0)) > 100


def test_latents_are_those_of_the_reference(
    encoder: CodecEncoder, vectors: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def quantize(self: CodecEncoder, x: Any, group: str, count: int) -> Any:
        seen.append(x)
        return torch.zeros((1, count, x.shape[2]), dtype=torch.int64)

    monkeypatch.setattr(CodecEncoder, "_quantize", quantize)
    encoder.encode(vectors["pcm"].numpy(), RATE)
    expected = vectors["latent"]
    found = seen[0][0, :, : expected.shape[1]]
    assert (found - expected).abs().max() <= TOLERANCE * expected.abs().max()


def test_encoding_is_causal(encoder: CodecEncoder, vectors: dict[str, Any]) -> None:
    """What is said later changes no earlier code."""
    pcm = vectors["pcm"].numpy()
    changed = pcm.copy()
    half = 250 * encoder.config.frame_samples
    changed[half:] = changed[half:][::-1]
    before, after = encoder.encode(pcm, RATE), encoder.encode(changed, RATE)
    np.testing.assert_array_equal(before[:250], after[:250])
    assert (before[250:] != after[250:]).any()


def test_a_recording_is_checked_first(encoder: CodecEncoder) -> None:
    with pytest.raises(PromptError, match="too short"):
        encoder.encode(np.zeros(RATE // 2, np.float32), RATE)


def changed_config(folder: Path, top: dict[str, Any], nested: dict[str, Any]) -> Path:
    content = json.loads((FOLDER / "config.json").read_text())
    content |= top
    content["encoder_config"] |= nested
    content["encoder_config"] = {k: v for k, v in content["encoder_config"].items() if v != "-"}
    path = folder / "config.json"
    path.write_text(json.dumps(content))
    return path


def test_the_configuration_is_read(tmp_path: Path) -> None:
    config = read_encoder_config(FOLDER / "config.json")
    assert config.ratios == (2, 3, 4)
    assert (config.quantizers, config.stored_quantizers) == (4, 8)
    # What a file leaves out is as usual.
    assert read_encoder_config(changed_config(tmp_path, {}, {"pad_mode": "-"})) == config


@pytest.mark.parametrize(
    ("top", "nested", "message"),
    [
        ({}, {"use_causal_conv": False}, "use_causal_conv is False; it must be True"),
        ({}, {"pad_mode": "reflect"}, "pad_mode is 'reflect'"),
        ({}, {"rope_theta": "-"}, "has no 'rope_theta'"),
        ({}, {"upsampling_ratios": [4, 3]}, "multiply to 24"),
        ({"encoder_valid_num_quantizers": 9}, {}, "it must be from 2 to"),
        ({"encoder_valid_num_quantizers": 1}, {}, "it must be from 2 to"),
        ({}, {"num_key_value_heads": 3}, "it must divide"),
    ],
)
def test_a_configuration_of_another_form(
    tmp_path: Path, top: dict[str, Any], nested: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        read_encoder_config(changed_config(tmp_path, top, nested))


def test_a_folder_without_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        read_encoder_config(tmp_path / "config.json")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ConfigError, match="is not JSON"):
        read_encoder_config(tmp_path / "config.json")


def test_a_file_without_an_encoder(tmp_path: Path) -> None:
    """The codec of a model that clones nothing may come without."""
    changed_config(tmp_path, {}, {})
    tensors = load_file(FOLDER / "model.safetensors")
    kept = {name: value for name, value in tensors.items() if "encoder.encoder." not in name}
    save_file(kept, tmp_path / "model.safetensors")
    with pytest.raises(WeightsError, match="lacks 34 of the 81"):
        open_codec_encoder(tmp_path)


def test_the_published_sizes() -> None:
    """39.4 million parameters beside the codebooks, as counted in the published file; of these
    the two output projections are not needed here."""
    published = CodecEncoderConfig(
        sample_rate=RATE,
        frame_samples=1920,
        quantizers=16,
        stored_quantizers=32,
        semantic_quantizers=1,
        codebook_size=2048,
        entry=256,
        filters=64,
        ratios=(4, 5, 6, 8),
        residual_layers=1,
        kernel=7,
        residual_kernel=3,
        last_kernel=3,
        dilation_growth=2,
        compress=2,
        layers=8,
        hidden=512,
        intermediate=2048,
        heads=8,
        kv_heads=8,
        head_dim=64,
        norm_eps=1e-5,
        rope_theta=1e4,
    )
    tensors = encoder_tensors(published)
    dense = sum(spec.size for name, spec in tensors.items() if ".codebook." not in name)
    assert dense == 153_714_657 - 114_323_137 - 2 * 512 * 256
