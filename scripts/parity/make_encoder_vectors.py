#!/usr/bin/env python3
"""Make the codec encoder's parity vectors from the reference implementation.

Runs in the environment that make_codec_vectors.py describes, never in the product's. Written to
``encoder_tiny``, in the layout of a published codec folder: ``config.json``, ``model.safetensors``
(seeded random weights, rounded to bfloat16 before they are used; also what encoding does not
need), and ``reference.safetensors``: ``pcm`` float32 [samples], ``latent`` float32
[hidden, frames] before quantization, ``codes`` int16 [frames, quantizers].
"""

import json
from typing import Any

import numpy as np
import torch
from make_codec_vectors import SEED, VECTORS, draw, stub_modules
from safetensors.torch import save_file

NAME = "encoder_tiny"
SAMPLES = 24_017  # a little more than a second: the last frame is not full
LATENT_FRAMES = 120
ENTRY_GAIN = 0.3  # codebooks as wide as what they quantize: otherwise one entry is always next
LATENT_GAIN = 8.0
ENCODER = {
    "_frame_rate": 500.0,
    "attention_bias": False,
    "audio_channels": 1,
    "codebook_dim": 16,
    "codebook_size": 64,
    "compress": 2,
    "dilation_growth_rate": 3,
    "head_dim": 8,
    "hidden_act": "gelu",
    "hidden_size": 32,
    "intermediate_size": 48,
    "kernel_size": 7,
    "last_kernel_size": 3,
    "layer_scale_initial_scale": 0.01,
    "max_position_embeddings": 8000,
    "norm_eps": 1e-05,
    "num_attention_heads": 4,
    "num_filters": 8,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "num_quantizers": 8,
    "num_residual_layers": 2,
    "num_semantic_quantizers": 1,
    "pad_mode": "constant",
    "residual_kernel_size": 3,
    "rope_theta": 10000.0,
    "sampling_rate": 24000,
    "sliding_window": 6,  # the reference attends to everything before, whatever this says
    "trim_right_ratio": 1.0,
    "upsample_groups": 32,
    "upsampling_ratios": [4, 3, 2],
    "use_causal_conv": True,
    "use_conv_shortcut": False,
    "vector_quantization_hidden_dimension": 16,
}
CONFIG = {
    "model_type": "qwen3_tts_tokenizer_12hz",
    "input_sample_rate": 24000,
    "output_sample_rate": 24000,
    "decode_upsample_rate": 48,
    "encode_downsample_rate": 48,
    "encoder_valid_num_quantizers": 4,
    "encoder_config": ENCODER,
}


def build() -> Any:
    """The reference's encoder with random weights, float32."""
    from qwen_tts.core.tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2 import (
        Qwen3TTSTokenizerV2Encoder,
    )
    from transformers import MimiConfig

    config = MimiConfig(**ENCODER)
    config._attn_implementation = "eager"
    encoder = Qwen3TTSTokenizerV2Encoder._from_config(config).float().eval()
    generator = torch.Generator().manual_seed(SEED + 1)
    for name, tensor in encoder.state_dict().items():
        if name.endswith("initialized"):
            continue
        value = draw(name.replace("embed_sum", "embedding_sum"), tensor, generator)
        if name.endswith("embed_sum"):
            value *= ENTRY_GAIN
        if name == "downsample.conv.weight":
            value *= LATENT_GAIN
        tensor.copy_(value.bfloat16().float())
    return encoder


def recording() -> "np.ndarray[Any, np.dtype[np.float32]]":
    """A chirp under noise, float32 [SAMPLES] within -1..1."""
    rng = np.random.default_rng(SEED)
    time = np.arange(SAMPLES) / 24_000
    chirp = 0.5 * np.sin(2 * np.pi * (200 + 900 * time) * time)
    return (chirp + 0.3 * rng.standard_normal(SAMPLES)).clip(-1, 1).astype(np.float32)


def main() -> None:
    stub_modules()
    torch.set_num_threads(1)
    encoder = build()
    pcm = recording()
    with torch.no_grad():
        x = torch.from_numpy(pcm)[None, None]
        columns = encoder.encoder(x).transpose(1, 2)
        columns = encoder.encoder_transformer(columns).last_hidden_state.transpose(1, 2)
        latent = encoder.downsample(columns)[0]
        codes = encoder.encode(x, return_dict=True).audio_codes[0]
    used, step = CONFIG["encoder_valid_num_quantizers"], CONFIG["encode_downsample_rate"]
    codes = codes[:used, : -(-SAMPLES // step)].t()
    folder = VECTORS / NAME
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1) + "\n")
    weights = {
        f"encoder.{name}": tensor.clone() if name.endswith("initialized") else tensor.bfloat16()
        for name, tensor in encoder.state_dict().items()
    }
    save_file(weights, folder / "model.safetensors")
    reference = {
        "pcm": torch.from_numpy(pcm),
        "latent": latent[:, :LATENT_FRAMES].contiguous(),
        "codes": codes.to(torch.int16).contiguous(),
    }
    save_file(reference, folder / "reference.safetensors")
    distinct = [len(book.unique()) for book in codes.t()]
    print(f"{NAME}: codes {list(codes.shape)}, distinct {distinct}, latent {latent.std():.3f}")


if __name__ == "__main__":
    main()
