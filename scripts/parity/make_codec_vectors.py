#!/usr/bin/env python3
"""Make the codec's parity vectors from the reference implementation.

Runs in an environment of its own, never in the product's:

    python3.11 -m venv reference
    reference/bin/pip install torch==2.13.0 transformers==4.57.3 accelerate einops librosa soundfile
    reference/bin/pip install --no-deps qwen-tts==0.1.1
    reference/bin/python scripts/parity/make_codec_vectors.py

For each tiny configuration below: the reference's decoder gets seeded random weights and decodes
seeded random codes in one piece, in float32. Written per configuration, in the layout of a
published codec folder: ``config.json``, ``model.safetensors`` (the weights, rounded to bfloat16
before they are used, so that half the bytes hold them exactly) and ``reference.safetensors``
(``codes`` int16 [batch, quantizers, frames], ``pcm`` float32 [batch, samples]).
"""

import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from safetensors.torch import save_file

VECTORS = Path(__file__).resolve().parents[2] / "tests" / "vectors" / "qwen3_tts"
SEED = 20261129
FINAL_GAIN = 0.4  # keeps PCM away from the clamp, which would hide errors
STUBS = ("sox", "onnxruntime", "torchaudio", "torchaudio.compliance", "torchaudio.compliance.kaldi")

COMMON = {
    "attention_bias": False,
    "hidden_act": "silu",
    "layer_scale_initial_scale": 0.01,
    "max_position_embeddings": 8000,
    "num_semantic_quantizers": 1,
    "rope_theta": 10000,
    "rms_norm_eps": 1e-05,
}
CONFIGS: dict[str, dict[str, Any]] = {
    # The published shape in small: four waveform stages, two latent stages, one key per query head.
    "codec_tiny": {
        "decoder": {
            "latent_dim": 32,
            "codebook_dim": 16,
            "codebook_size": 64,
            "decoder_dim": 64,
            "hidden_size": 16,
            "intermediate_size": 32,
            "head_dim": 8,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "num_hidden_layers": 3,
            "sliding_window": 8,
            "num_quantizers": 4,
            "semantic_codebook_size": 128,
            "upsample_rates": [4, 3, 2, 2],
            "upsampling_ratios": [2, 2],
        },
        "batch": 2,
        "frames": 60,
    },
    # Everything different: shared keys, other strides and stage counts, an odd window.
    "codec_grouped": {
        "decoder": {
            "latent_dim": 24,
            "codebook_dim": 20,
            "codebook_size": 48,
            "decoder_dim": 48,
            "hidden_size": 24,
            "intermediate_size": 40,
            "head_dim": 4,
            "num_attention_heads": 6,
            "num_key_value_heads": 2,
            "num_hidden_layers": 2,
            "sliding_window": 5,
            "num_quantizers": 6,
            "semantic_codebook_size": 96,
            "upsample_rates": [5, 2],
            "upsampling_ratios": [3],
        },
        "batch": 3,
        "frames": 41,
    },
}


def stub_modules() -> None:
    """The package imports these for its other codec; nothing here calls them.

    transformers looks for them as well, and must not find the stubs.
    """
    import transformers.utils  # noqa: F401

    for name in STUBS:
        module = ModuleType(name)
        module.__path__ = []
        module.__spec__ = ModuleSpec(name, None)
        sys.modules[name] = module


def whole_config(decoder: dict[str, Any]) -> dict[str, Any]:
    """A codec's config.json around a decoder configuration."""
    samples = 1
    for rate in (*decoder["upsample_rates"], *decoder["upsampling_ratios"]):
        samples *= rate
    return {
        "model_type": "qwen3_tts_tokenizer_12hz",
        "input_sample_rate": 24000,
        "output_sample_rate": 24000,
        "decode_upsample_rate": samples,
        "encode_downsample_rate": samples,
        "encoder_valid_num_quantizers": decoder["num_quantizers"],
        "decoder_config": COMMON | decoder,
    }


def draw(name: str, like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Random values at which every part of the decoder matters.

    As constructed, codebooks are zero and the learned scales tiny: the output would hardly depend
    on the codes.
    """
    noise = torch.randn(like.shape, generator=generator)
    if name.endswith("cluster_usage"):
        return torch.rand(like.shape, generator=generator) * 1.5 + 0.5
    if name.endswith("embedding_sum"):
        return noise
    if name.endswith((".scale", ".gamma")):
        return 0.3 + 0.03 * noise
    if name.endswith((".alpha", ".beta")):
        return 0.3 * noise
    if name.endswith(".bias"):
        return 0.05 * noise
    if "norm" in name:
        return 1.0 + 0.1 * noise
    return 0.7 * noise / like[0].numel() ** 0.5


def build(config: dict[str, Any], generator: torch.Generator) -> Any:
    """The reference's decoder with random weights, float32."""
    from qwen_tts.core.tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2 import (
        Qwen3TTSTokenizerV2Config,
    )
    from qwen_tts.core.tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2 import (
        Qwen3TTSTokenizerV2Decoder,
    )

    whole = Qwen3TTSTokenizerV2Config(decoder_config=config["decoder_config"], encoder_config={})
    nested = whole.decoder_config
    nested._attn_implementation = "eager"
    decoder = Qwen3TTSTokenizerV2Decoder._from_config(nested).float().eval()
    state = decoder.state_dict()
    last = max(int(name.split(".")[1]) for name in state if name.startswith("decoder."))
    for name, tensor in state.items():
        value = draw(name, tensor, generator)
        if name == f"decoder.{last}.conv.weight":
            value *= FINAL_GAIN
        tensor.copy_(value.bfloat16().float())
    return decoder


def make(name: str, recipe: dict[str, Any]) -> None:
    """Write the files of one configuration."""
    generator = torch.Generator().manual_seed(SEED)
    config = whole_config(recipe["decoder"])
    decoder = build(config, generator)
    quantizers, size = recipe["decoder"]["num_quantizers"], recipe["decoder"]["codebook_size"]
    shape = (recipe["batch"], quantizers, recipe["frames"])
    codes = torch.randint(0, size, shape, generator=generator)
    with torch.no_grad():
        pcm = decoder(codes).squeeze(1)
    peak = pcm.abs().max().item()
    if peak >= 1.0:
        raise SystemExit(f"{name}: PCM reaches the clamp; lower FINAL_GAIN")
    folder = VECTORS / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    weights = {f"decoder.{key}": value.bfloat16() for key, value in decoder.state_dict().items()}
    save_file(weights, folder / "model.safetensors")
    reference = {"codes": codes.to(torch.int16), "pcm": pcm.contiguous()}
    save_file(reference, folder / "reference.safetensors")
    print(f"{name}: pcm {list(pcm.shape)}, rms {pcm.square().mean().sqrt():.3f}, peak {peak:.3f}")


def main() -> None:
    stub_modules()
    torch.set_num_threads(1)
    for name, recipe in CONFIGS.items():
        make(name, recipe)


if __name__ == "__main__":
    main()
