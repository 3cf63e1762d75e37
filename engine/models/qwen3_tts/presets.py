"""The published CustomVoice sizes, for running with random weights where no model folder is.

A real model is always described by its own config.json.
"""

from playhead.engine.models.qwen3_tts.config import (
    CodecConfig,
    CodecDecoderConfig,
    CodecIds,
    ModelConfig,
    PredictorConfig,
    TalkerConfig,
    TextIds,
)

LANGUAGES = {
    "english": 2050,
    "german": 2053,
    "spanish": 2054,
    "chinese": 2055,
    "japanese": 2058,
    "french": 2061,
    "sichuan_dialect": 2062,
    "korean": 2064,
    "russian": 2069,
    "italian": 2070,
    "portuguese": 2071,
    "beijing_dialect": 2074,
}
SPEAKERS = {
    "aiden": 2861,
    "sohee": 2864,
    "ono_anna": 2873,
    "eric": 2875,
    "dylan": 2878,
    "uncle_fu": 3010,
    "ryan": 3061,
    "vivian": 3065,
    "serena": 3066,
}
DIALECTS = {"eric": "sichuan_dialect", "dylan": "beijing_dialect"}
HIDDEN = {"1.7b": 2048, "0.6b": 1024}
SIZE_NAMES = {"1.7b": "1b7", "0.6b": "0b6"}


def model_config(size: str) -> ModelConfig:
    """CustomVoice of ``size`` "1.7b" or "0.6b". Raises ValueError for another."""
    if size not in HIDDEN:
        raise ValueError(
            f"there is no preset {size!r} and no folder of that name: available are "
            f"{', '.join(HIDDEN)}, or a model folder"
        )
    return ModelConfig(
        kind="custom_voice",
        size=SIZE_NAMES[size],
        ids=TextIds(
            im_start=151_644,
            im_end=151_645,
            assistant=77_091,
            tts_pad=151_671,
            tts_bos=151_672,
            tts_eos=151_673,
        ),
        talker=_talker(HIDDEN[size]),
        speaker_encoder=None,
    )


def codec_config() -> CodecConfig:
    """The 12 Hz codec: 24 kHz, 80 ms a frame."""
    decoder = CodecDecoderConfig(
        quantizers=16,
        semantic_quantizers=1,
        codebook_size=2048,
        codebook_width=512,
        latent=1024,
        layers=8,
        hidden=512,
        intermediate=1024,
        heads=16,
        kv_heads=16,
        head_dim=64,
        window=72,
        norm_eps=1e-5,
        rope_theta=10_000.0,
        channels=1536,
        upsample_rates=(8, 5, 4, 3),
        upsampling_ratios=(2, 2),
    )
    return CodecConfig(24_000, decoder.frame_samples, decoder)


def _talker(hidden: int) -> TalkerConfig:
    return TalkerConfig(
        layers=28,
        hidden=hidden,
        intermediate=3 * hidden,
        heads=16,
        kv_heads=8,
        head_dim=128,
        vocab=3072,
        text_vocab=151_936,
        text_hidden=2048,
        code_groups=16,
        max_positions=32_768,
        norm_eps=1e-6,
        rope_theta=1_000_000.0,
        ids=CodecIds(
            pad=2148,
            bos=2149,
            eos=2150,
            think=2154,
            nothink=2155,
            think_bos=2156,
            think_eos=2157,
        ),
        languages=LANGUAGES,
        speakers=SPEAKERS,
        dialects=DIALECTS,
        predictor=PredictorConfig(
            layers=5,
            hidden=1024,
            intermediate=3072,
            heads=16,
            kv_heads=8,
            head_dim=128,
            vocab=2048,
            code_groups=16,
            norm_eps=1e-6,
            rope_theta=1_000_000.0,
        ),
    )
