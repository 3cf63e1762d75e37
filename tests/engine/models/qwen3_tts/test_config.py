"""config.json: everything read, nothing guessed, faults named with what would be right."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playhead.engine.models.qwen3_tts.config import (
    ConfigError,
    SpeakerEncoderConfig,
    read_codec_config,
    read_model_config,
)

VECTORS = Path(__file__).resolve().parents[3] / "vectors" / "qwen3_tts"

PREDICTOR: dict[str, Any] = {
    "attention_bias": False,
    "head_dim": 16,
    "hidden_act": "silu",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_code_groups": 16,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000,
    "use_sliding_window": False,
    "vocab_size": 2048,
}
TALKER: dict[str, Any] = PREDICTOR | {
    "code_predictor_config": PREDICTOR,
    "codec_bos_id": 2149,
    "codec_eos_token_id": 2150,
    "codec_language_id": {"english": 2050, "Chinese": 2055, "sichuan_dialect": 2062},
    "codec_nothink_id": 2155,
    "codec_pad_id": 2148,
    "codec_think_bos_id": 2156,
    "codec_think_eos_id": 2157,
    "codec_think_id": 2154,
    "hidden_size": 64,
    "max_position_embeddings": 32768,
    "rope_scaling": {"rope_type": "default", "mrope_section": [4, 2, 2], "interleaved": True},
    "spk_id": {"Eric": 2875, "ryan": 3061},
    "spk_is_dialect": {"eric": "sichuan_dialect", "ryan": False},
    "text_hidden_size": 64,
    "text_vocab_size": 151936,
    "vocab_size": 3072,
}
MODEL: dict[str, Any] = {
    "model_type": "qwen3_tts",
    "tts_model_type": "custom_voice",
    "tts_model_size": "1b7",
    "im_start_token_id": 151644,
    "im_end_token_id": 151645,
    "assistant_token_id": 77091,
    "tts_pad_token_id": 151671,
    "tts_bos_token_id": 151672,
    "tts_eos_token_id": 151673,
    "talker_config": TALKER,
}


def saved(folder: Path, content: Any) -> Path:
    path = folder / "config.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def changed(*path: str, to: Any) -> dict[str, Any]:
    """The model's configuration with one value changed, or removed when ``to`` is ``...``."""
    content = copy.deepcopy(MODEL)
    table = content
    for key in path[:-1]:
        table = table[key]
    table[path[-1]] = to
    if to is ...:
        del table[path[-1]]
    return content


def test_model_is_read_as_written(tmp_path: Path) -> None:
    config = read_model_config(saved(tmp_path, MODEL))
    talker, predictor = config.talker, config.talker.predictor
    assert (config.kind, config.size, config.speaker_encoder) == ("custom_voice", "1b7", None)
    assert (config.ids.im_start, config.ids.assistant, config.ids.tts_eos) == (
        151644,
        77091,
        151673,
    )
    assert (talker.ids.pad, talker.ids.eos, talker.ids.think_eos) == (2148, 2150, 2157)
    assert (talker.layers, talker.hidden, talker.heads, talker.kv_heads) == (2, 64, 4, 2)
    assert (talker.head_dim, talker.vocab, talker.text_vocab) == (16, 3072, 151936)
    assert (predictor.hidden, predictor.vocab, predictor.code_groups) == (32, 2048, 16)
    assert talker.rope_theta == 1e6
    assert talker.languages == {"english": 2050, "chinese": 2055, "sichuan_dialect": 2062}
    assert talker.speakers == {"eric": 2875, "ryan": 3061}
    assert talker.dialects == {"eric": "sichuan_dialect"}


def test_base_model_has_a_speaker_encoder_whose_inner_sizes_may_be_unstated(tmp_path: Path) -> None:
    content = MODEL | {
        "tts_model_type": "base",
        "speaker_encoder_config": {"enc_dim": 64, "sample_rate": 24000},
    }
    assert read_model_config(saved(tmp_path, content)).speaker_encoder == SpeakerEncoderConfig(
        64, 24000, 128, (512, 512, 512, 512, 1536), (5, 3, 3, 3, 1), (1, 2, 3, 4, 1), 128, 8, 128
    )
    content["speaker_encoder_config"]["enc_channels"] = [16, 16, 48]
    encoder = read_model_config(saved(tmp_path, content)).speaker_encoder
    assert encoder is not None
    assert encoder.channels == (16, 16, 48)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (changed("model_type", to="llama"), "model_type is 'llama'; it must be 'qwen3_tts'"),
        (changed("tts_model_type", to="x"), "must be one of custom_voice, voice_design, base"),
        (changed("tts_model_size", to=1.7), "tts_model_size is 1.7; it must be a string"),
        (changed("im_end_token_id", to=...), "no 'im_end_token_id'; it must be an integer"),
        (changed("im_end_token_id", to=-1), "im_end_token_id is -1"),
        (changed("talker_config", to=...), "no 'talker_config'; it must be a JSON object"),
        (changed("talker_config", to=None), "talker_config must be a JSON object, not null"),
        (changed("talker_config", "num_hidden_layers", to=...), "no 'num_hidden_layers'"),
        (changed("talker_config", "hidden_size", to=0), "hidden_size is 0; it must be an integer"),
        (changed("talker_config", "hidden_size", to=True), "hidden_size is True"),
        (changed("talker_config", "hidden_size", to="64"), "hidden_size is '64'"),
        (changed("talker_config", "rms_norm_eps", to=0), "rms_norm_eps is 0; it must be"),
        (changed("talker_config", "rope_theta", to="x"), "rope_theta is 'x'"),
        (changed("talker_config", "rope_theta", to=True), "rope_theta is True"),
        (changed("talker_config", "head_dim", to=15), "head_dim is 15; it must be an even integer"),
        (changed("talker_config", "num_key_value_heads", to=3), "must divide num_attention_heads"),
        (changed("talker_config", "attention_bias", to=True), "it must be False: nothing else"),
        (changed("talker_config", "attention_bias", to=0), "attention_bias is 0"),
        (changed("talker_config", "hidden_act", to="gelu"), "must be 'silu': nothing else"),
        (changed("talker_config", "use_sliding_window", to=True), "use_sliding_window is True"),
        (changed("talker_config", "num_code_groups", to=8), "it must equal num_code_groups, 8"),
        (changed("talker_config", "codec_language_id", to={"x": "y"}), "language_id.x is 'y'"),
        (changed("talker_config", "spk_is_dialect", to={"eric": "latin"}), "eric has 'latin'"),
        (changed("talker_config", "spk_is_dialect", to={"bob": "english"}), "bob has 'english'"),
        (changed("talker_config", "spk_is_dialect", to={"eric": True}), "eric has True"),
        (
            changed("talker_config", "rope_scaling", "mrope_section", to=[4, 4, 4]),
            "adds up to 12; it must be half of head_dim, 8",
        ),
        (changed("talker_config", "rope_scaling", "mrope_section", to=[]), "mrope_section is"),
        (changed("talker_config", "rope_scaling", "mrope_section", to=[8, 0]), "section is 0"),
        (changed("tts_model_type", to="base"), "no 'speaker_encoder_config'"),
        (
            MODEL | {"tts_model_type": "base"}
            | {"speaker_encoder_config": {"enc_dim": 32, "sample_rate": 24000}},
            "enc_dim is 32; it must equal talker_config.hidden_size, 64",
        ),
        ("{", "is not JSON"),
        ("[1]", "must be a JSON object, not list"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(ConfigError) as fault:
        read_model_config(saved(tmp_path, content))
    assert message in str(fault.value)
    assert str(tmp_path) in str(fault.value)


@pytest.mark.parametrize(
    ("read", "folder"), [(read_model_config, "model"), (read_codec_config, "codec")]
)
def test_missing_file_is_named(tmp_path: Path, read: Callable[[Path], object], folder: str) -> None:
    with pytest.raises(ConfigError, match=f"does not exist; a {folder} folder holds"):
        read(tmp_path / "config.json")


def test_codec_is_read_as_written() -> None:
    config = read_codec_config(VECTORS / "codec_grouped" / "config.json")
    decoder = config.decoder
    assert (config.sample_rate, config.frame_samples) == (24000, 30)
    assert (decoder.quantizers, decoder.codebook_size, decoder.codebook_width) == (6, 48, 20)
    assert (decoder.heads, decoder.kv_heads, decoder.head_dim, decoder.window) == (6, 2, 4, 5)
    assert (decoder.upsample_rates, decoder.upsampling_ratios) == ((5, 2), (3,))
    assert (decoder.latent, decoder.channels, decoder.norm_eps) == (24, 48, 1e-5)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("sliding_window", None, "sliding_window is None"),
        ("codebook_dim", 21, "codebook_dim is 21; it must be an even integer"),
        ("upsample_rates", 5, "upsample_rates is 5; it must be a list of integers"),
        ("num_semantic_quantizers", 2, "must be 1: nothing else is supported"),
        ("upsampling_ratios", [4], "is 30, but the upsampling stages"),
    ],
)
def test_what_is_wrong_with_a_codec_is_named(
    tmp_path: Path, key: str, value: Any, message: str
) -> None:
    content = json.loads((VECTORS / "codec_grouped" / "config.json").read_text())
    content["decoder_config"][key] = value
    with pytest.raises(ConfigError) as fault:
        read_codec_config(saved(tmp_path, content))
    assert message in str(fault.value)
