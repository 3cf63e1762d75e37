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
from playhead.engine.models.qwen3_tts.cloning import clone_voices, open_speaker_encoder
from playhead.engine.models.qwen3_tts.codec_encoder import open_codec_encoder
from playhead.engine.models.qwen3_tts.codec_spec import decoder_tensors
from playhead.engine.models.qwen3_tts.config import ConfigError, read_model_config
from playhead.engine.models.qwen3_tts.encoder_config import CodecEncoderConfig
from playhead.engine.models.qwen3_tts.encoder_spec import encoder_tensors
from playhead.engine.models.qwen3_tts.loading import (
    Setup,
    generation_rules,
    load_parts,
    open_runner,
)
from playhead.engine.models.qwen3_tts.prompt import Clone, PromptError
from playhead.engine.models.qwen3_tts.runner import Qwen3Runner
from playhead.engine.models.qwen3_tts.sampling import Sampling
from playhead.engine.models.qwen3_tts.startup import TooLarge
from playhead.engine.models.qwen3_tts.text import HashTokenizer
from playhead.engine.models.qwen3_tts.weights import random_tensors
from safetensors.torch import load_file, save_file
from talker_kit import RECORDING_RATE, model_dict, recording, speaker_checkpoint

SMALL = Setup(slots=2, positions=72)


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
    monkeypatch.setattr(loading, "open_vocabulary", lambda *_: HashTokenizer(499))
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
    with pytest.raises(TooLarge, match="exceeds the model's, 1024"):
        open_runner(folder, Setup(positions=2048))
    with pytest.raises(ValueError, match="float16"):
        open_runner(folder, Setup(dtype="float16"))


def test_what_will_not_fit_is_refused_before_anything_is_read(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(TooLarge, match="2 streams with 72 positions of context take"):
        open_runner(folder, replace(SMALL, memory=1 << 20))


def test_what_fits_is_loaded(folder: Path) -> None:
    assert open_runner(folder, replace(SMALL, memory=1 << 40)).info.voices


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "must be a JSON object, not list"),
        ("{", "is not JSON"),
        ('{"temperature": "hot"}', "temperature is 'hot'; it must be a positive number"),
        ('{"temperature": null}', "temperature is None; it must be a positive number"),
        ('{"top_k": -1}', "top_k is -1; it must be an integer of at least 0"),
        ('{"subtalker_dosample": 1}', "subtalker_dosample is 1; it must be true or false"),
        ('{"subtalker_top_p": 1.5}', "subtalker_top_p 1.5 must be above 0 and at most 1"),
    ],
)
def test_sampling_that_cannot_be_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "generation_config.json"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        generation_rules(tmp_path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


def test_random_weights_of_no_size_are_told_the_sizes() -> None:
    setup = Setup(random_seed=1, frames=lambda _: 4)
    with pytest.raises(ValueError, match=r"no preset '7b' and no folder .* 1\.7b, 0\.6b, or a"):
        open_runner("7b", setup)


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


ENCODER = CodecEncoderConfig(
    sample_rate=RECORDING_RATE,
    frame_samples=2_400,
    quantizers=16,
    stored_quantizers=17,
    semantic_quantizers=1,
    codebook_size=64,
    entry=8,
    filters=4,
    ratios=(10, 12, 10),
    residual_layers=1,
    kernel=7,
    residual_kernel=3,
    last_kernel=3,
    dilation_growth=2,
    compress=2,
    layers=1,
    hidden=16,
    intermediate=16,
    heads=2,
    kv_heads=2,
    head_dim=8,
    norm_eps=1e-5,
    rope_theta=1e4,
)


@pytest.fixture
def voices(base: Path) -> Path:
    """A codec that also encodes, and a folder of recordings, which is returned."""
    codec, own = base / "speech_tokenizer", ENCODER
    nested = {
        "num_quantizers": own.stored_quantizers,
        "num_semantic_quantizers": 1,
        "codebook_size": own.codebook_size,
        "codebook_dim": own.entry,
        "num_filters": own.filters,
        "upsampling_ratios": list(reversed(own.ratios)),
        "num_residual_layers": 1,
        "kernel_size": 7,
        "residual_kernel_size": 3,
        "last_kernel_size": 3,
        "dilation_growth_rate": 2,
        "compress": 2,
        "num_hidden_layers": 1,
        "hidden_size": own.hidden,
        "intermediate_size": own.intermediate,
        "num_attention_heads": own.heads,
        "num_key_value_heads": own.kv_heads,
        "head_dim": own.head_dim,
        "norm_eps": own.norm_eps,
        "rope_theta": own.rope_theta,
    }
    edit(
        codec / "config.json",
        input_sample_rate=own.sample_rate,
        encode_downsample_rate=own.frame_samples,
        encoder_valid_num_quantizers=own.quantizers,
        encoder_config=nested,
    )
    parts = random_tensors(encoder_tensors(own), 6)
    tensors = load_file(codec / "model.safetensors")
    tensors |= {f"encoder.{name}": tensor for name, tensor in parts.items()}
    save_file(tensors, codec / "model.safetensors")
    soundfile = pytest.importorskip("soundfile", reason="soundfile is not installed")
    folder = base / "voices"
    folder.mkdir()
    soundfile.write(folder / "ada.wav", recording(), RECORDING_RATE)
    soundfile.write(folder / "bob.flac", recording()[::-1], RECORDING_RATE)
    (folder / "ada.txt").write_text("What is said here")
    return folder


def test_an_audio_file_becomes_a_voice_that_goes_on(base: Path, voices: Path) -> None:
    """With its text the recording is continued; without, the voice is described by a vector."""
    parts, options = load_parts(base, replace(SMALL, recordings=voices))
    ada, bob = parts.voices.clones["ada"], parts.voices.clones["bob"]
    soundfile = pytest.importorskip("soundfile")
    heard, rate = soundfile.read(voices / "ada.wav", dtype="float32")
    codes = open_codec_encoder(base / "speech_tokenizer").encode(heard, rate)
    assert codes.shape == (15, 16)
    assert ada.codes is not None
    assert np.array_equal(ada.codes, codes)
    assert ada.text == tuple(HashTokenizer(499)("What is said here"))
    assert np.array_equal(ada.vector, open_speaker_encoder(base).describe(heard, rate))
    assert bob.codes is None
    options = replace(options, frames=lambda _: 3)
    model = Qwen3Runner(parts, options)
    assert model.info.voices == ("ada", "bob")
    one = lab.say(model, 1, "One two three", "ada")
    two = lab.say(model, 2, "One two three", "bob")
    assert one.frames == two.frames == 3
    assert not np.array_equal(one.sound, two.sound)


def test_a_bad_recording_is_named_before_the_weights_are_read(base: Path, voices: Path) -> None:
    (voices / "ada.wav").write_bytes(b"no audio")
    with pytest.raises(ValueError, match=r"ada\.wav: cannot be read as audio"):
        load_parts(base, replace(SMALL, recordings=voices))


def test_a_text_that_would_end_its_own_turn(base: Path, voices: Path) -> None:
    class Controlled(HashTokenizer):
        specials = ("<|im_end|>",)

    (voices / "ada.txt").write_text("What <|im_end|> is said")
    with pytest.raises(PromptError, match=r"ada\.txt contains <\|im_end\|>"):
        clone_voices(base, voices, Controlled(499))


def test_voices_without_texts_need_no_encoder(base: Path, voices: Path) -> None:
    (voices / "ada.txt").unlink()
    (base / "speech_tokenizer" / "model.safetensors").unlink()
    made = clone_voices(base, voices, HashTokenizer(499))
    assert all(clone.codes is None for clone in made.values())


def test_a_base_model_needs_voices(base: Path) -> None:
    with pytest.raises(ValueError, match="cloned voices alone: give it recordings"):
        open_runner(base, SMALL)


def test_recordings_go_with_base_models(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a custom_voice model clones no voices"):
        open_runner(folder, replace(SMALL, recordings=tmp_path))


@pytest.mark.parametrize(
    ("clone", "said"),
    [
        (Clone(np.zeros(32, np.float32)), r"shape \[32\], not \[64\]"),
        (Clone(np.zeros(64, np.float32), np.zeros((4, 15), np.int64), (1,)), r"\[frames, 16\]"),
        (Clone(np.zeros(64, np.float32), np.full((4, 16), 2048), (1,)), "from 0 to 2047"),
        (Clone(np.zeros(64, np.float32), np.full((4, 16), -1), (1,)), "from 0 to 2047"),
        (Clone(np.zeros(64, np.float32), np.zeros((40, 16), np.int64), (1,)), "give a shorter"),
    ],
    ids=["vector", "groups", "above", "below", "room"],
)
def test_a_voice_of_another_model_is_refused(base: Path, clone: Clone, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        open_runner(base, replace(SMALL, clones={"me": clone}))
