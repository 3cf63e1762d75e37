# ruff: noqa: E402 - what follows needs torch
"""Opening a model folder, and what is wrong with bad ones."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")
pytest.importorskip("safetensors", reason="safetensors is not installed (extra: qwen)")

import runner_lab as lab
from playhead.engine.models.qwen3_tts import loading, presets
from playhead.engine.models.qwen3_tts import predictor as predictors
from playhead.engine.models.qwen3_tts import talker as talkers
from playhead.engine.models.qwen3_tts.codec_spec import decoder_tensors
from playhead.engine.models.qwen3_tts.config import read_model_config
from playhead.engine.models.qwen3_tts.loading import (
    Setup,
    generation_rules,
    open_runner,
    open_speaker_encoder,
)
from playhead.engine.models.qwen3_tts.prompt import Clone
from playhead.engine.models.qwen3_tts.sampling import Sampling
from playhead.engine.models.qwen3_tts.text import HashTokenizer
from playhead.engine.models.qwen3_tts.weights import random_tensors
from safetensors.torch import load_file, save_file
from talker_kit import RECORDING_RATE, model_dict, recording, speaker_checkpoint

SMALL = Setup(slots=2, positions=64)


def codec_dict() -> dict[str, Any]:
    """The tiny codec of runner_lab as a ``config.json``."""
    own = lab.CODEC
    return {
        "model_type": "qwen3_tts_tokenizer_12hz",
        "output_sample_rate": lab.RATE,
        "decode_upsample_rate": lab.FRAME,
        "decoder_config": {
            "num_quantizers": own.quantizers,
            "num_semantic_quantizers": 1,
            "codebook_size": own.codebook_size,
            "codebook_dim": own.codebook_width,
            "latent_dim": own.latent,
            "num_hidden_layers": own.layers,
            "hidden_size": own.hidden,
            "intermediate_size": own.intermediate,
            "num_attention_heads": own.heads,
            "num_key_value_heads": own.kv_heads,
            "head_dim": own.head_dim,
            "sliding_window": own.window,
            "rms_norm_eps": own.norm_eps,
            "rope_theta": own.rope_theta,
            "decoder_dim": own.channels,
            "upsample_rates": list(own.upsample_rates),
            "upsampling_ratios": list(own.upsampling_ratios),
            "hidden_act": "silu",
            "attention_bias": False,
        },
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny model as it is published, but for the vocabulary."""
    monkeypatch.setattr(loading, "FolderTokenizer", lambda _: HashTokenizer(499))
    (tmp_path / "config.json").write_text(json.dumps(model_dict("custom_voice", "1b7")))
    config = read_model_config(tmp_path / "config.json").talker
    tensors = random_tensors(talkers.tensors(config) | predictors.tensors(config), 3)
    save_file(tensors, tmp_path / "model.safetensors")
    codec = tmp_path / "speech_tokenizer"
    codec.mkdir()
    (codec / "config.json").write_text(json.dumps(codec_dict()))
    parts = random_tensors(decoder_tensors(lab.CODEC), 4)
    save_file({f"decoder.{name}": t for name, t in parts.items()}, codec / "model.safetensors")
    return tmp_path


def edit(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_a_folder_speaks(folder: Path) -> None:
    model = open_runner(folder, SMALL)
    assert model.info.name == "qwen3-tts-1b7-custom-voice"
    heard = lab.say(model, 1, "One two three")
    assert heard.frames > 0
    assert len(heard.sound) == heard.frames * lab.FRAME


def test_random_weights_say_so_and_have_the_folders_sizes(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "model.safetensors").unlink()
    setup = Setup(slots=2, positions=64, random_seed=9, frames=lambda _: 4)
    one, two = (lab.say(open_runner(folder, setup), 1, "One two") for _ in range(2))
    assert "RANDOM" in caplog.text
    assert one.frames == 4
    assert np.array_equal(one.sound, two.sound)
    assert open_runner(folder, setup).info.name.endswith("-random")


@pytest.mark.parametrize("setup", [Setup(random_seed=1), Setup(frames=lambda _: 4)])
def test_random_weights_need_a_number_of_frames(folder: Path, setup: Setup) -> None:
    with pytest.raises(ValueError, match="go together"):
        open_runner(folder, setup)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such folder"):
        open_runner(tmp_path / "nothing", SMALL)


def test_a_partial_folder_is_named(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"model\.safetensors is missing"):
        open_runner(folder, SMALL)


def test_another_architecture_is_refused(folder: Path) -> None:
    edit(folder / "config.json", model_type="llama")
    with pytest.raises(ValueError, match="'qwen3_tts'"):
        open_runner(folder, SMALL)


def test_talker_and_codec_must_fit_together(folder: Path) -> None:
    path = folder / "speech_tokenizer" / "config.json"
    decoder = codec_dict()["decoder_config"]
    edit(path, decoder_config=decoder | {"num_quantizers": 8})
    with pytest.raises(ValueError, match="16 codes per frame, the codec takes 8"):
        open_runner(folder, SMALL)
    edit(path, decoder_config=decoder | {"codebook_size": 64})
    with pytest.raises(ValueError, match="2048 codes, a codebook of the codec only 64"):
        open_runner(folder, SMALL)


def test_context_and_precision_must_be_the_models(folder: Path) -> None:
    with pytest.raises(ValueError, match="exceeds the model's, 1024"):
        open_runner(folder, Setup(positions=2048))
    with pytest.raises(ValueError, match="float16"):
        open_runner(folder, Setup(dtype="float16"))


def test_sampling_is_what_the_folder_says(tmp_path: Path) -> None:
    published = (Sampling(repetition_penalty=1.05), Sampling())
    assert generation_rules(None) == published
    assert generation_rules(tmp_path) == published
    (tmp_path / "generation_config.json").write_text(
        '{"temperature": 0.7, "top_k": 20, "repetition_penalty": 1.1, "subtalker_top_p": 0.8,'
        ' "subtalker_dosample": false}'
    )
    assert generation_rules(tmp_path) == (
        Sampling(temperature=0.7, top_k=20, repetition_penalty=1.1),
        Sampling(top_p=0.8, greedy=True),
    )


@pytest.mark.parametrize(("size", "elements"), [("1.7b", 1_916_676_352), ("0.6b", 905_788_672)])
def test_presets_have_as_many_elements_as_the_published_files(size: str, elements: int) -> None:
    config = presets.model_config(size).talker
    specs = talkers.tensors(config) | predictors.tensors(config)
    assert sum(spec.size for spec in specs.values()) == elements
    assert presets.codec_config().frame_samples == 1920


def test_unknown_presets_are_refused() -> None:
    with pytest.raises(ValueError, match=r"available are 1\.7b, 0\.6b"):
        presets.model_config("7b")


@pytest.fixture
def base(folder: Path) -> Path:
    """The tiny model as one that clones voices."""
    edit(folder / "config.json", **model_dict("base", "1b7"))
    tensors = load_file(folder / "model.safetensors") | speaker_checkpoint(folder)
    save_file(tensors, folder / "model.safetensors")
    return folder


def test_a_recording_becomes_a_voice(base: Path) -> None:
    vector = open_speaker_encoder(base).describe(recording(), RECORDING_RATE)
    setup = replace(SMALL, clones={"me": Clone(vector)})
    model = open_runner(base, setup)
    assert model.info.voices == ("me",)
    assert lab.say(model, 1, "One two three", "me").frames > 0


def test_only_base_models_make_voices_from_recordings(folder: Path) -> None:
    with pytest.raises(ValueError, match="only base models do"):
        open_speaker_encoder(folder)
    with pytest.raises(ValueError, match="a custom_voice model clones no voices"):
        open_runner(folder, replace(SMALL, clones={"me": Clone(np.zeros(64, np.float32))}))


@pytest.mark.parametrize(
    ("clone", "said"),
    [
        (Clone(np.zeros(32, np.float32)), r"shape \[32\], not \[64\]"),
        (Clone(np.zeros(64, np.float32), np.zeros((4, 15), np.int64), (1,)), r"\[frames, 16\]"),
        (Clone(np.zeros(64, np.float32), np.full((4, 16), 2048), (1,)), "from 0 to 2047"),
        (Clone(np.zeros(64, np.float32), np.full((4, 16), -1), (1,)), "from 0 to 2047"),
    ],
    ids=["vector", "groups", "above", "below"],
)
def test_a_voice_of_another_model_is_refused(base: Path, clone: Clone, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        open_runner(base, replace(SMALL, clones={"me": clone}))
