"""What the codec's ``config.json`` says of its encoder, checked. As in :mod:`config`, no size is
ever guessed."""

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from playhead.engine.models.qwen3_tts.config_table import (
    ConfigError,
    Table,
    read_table,
    transformer_sizes,
)

DOWNSAMPLING = 2
"""Stride of the last convolution, whose kernel is twice as long; no file states it."""


@dataclass(frozen=True, slots=True)
class CodecEncoderConfig:
    """The half of the neural codec that turns PCM into codes: a Mimi encoder."""

    sample_rate: int  # Hz
    frame_samples: int
    quantizers: int  # codebooks that are used, of those stored
    stored_quantizers: int
    semantic_quantizers: int
    codebook_size: int
    entry: int  # width of a codebook entry
    filters: int  # of the first convolution; double at every stage
    ratios: tuple[int, ...]  # of the stages, first to last
    residual_layers: int  # in every stage
    kernel: int  # of the first convolution
    residual_kernel: int
    last_kernel: int
    dilation_growth: int
    compress: int  # how much narrower a residual branch is
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    norm_eps: float
    rope_theta: float


def read_encoder_config(path: Path) -> CodecEncoderConfig:
    """Read ``encoder_config`` of a codec's ``config.json``.

    Raises :class:`ConfigError` naming the key that is missing or wrong and what would be right.
    """
    top = read_table(path, "a codec folder")
    table = top.table("encoder_config")
    _check_form(table)
    config = _sizes(top, table)
    _check_sizes(path, config)
    return config


def _sizes(top: Table, table: Table) -> CodecEncoderConfig:
    return CodecEncoderConfig(
        sample_rate=top.integer("input_sample_rate"),
        frame_samples=top.integer("encode_downsample_rate"),
        quantizers=top.integer("encoder_valid_num_quantizers"),
        stored_quantizers=table.integer("num_quantizers"),
        semantic_quantizers=table.expect("num_semantic_quantizers", 1),
        codebook_size=table.integer("codebook_size"),
        entry=table.integer("codebook_dim"),
        filters=table.integer("num_filters"),
        # The file lists them as a decoder would meet them.
        ratios=table.integers("upsampling_ratios")[::-1],
        residual_layers=table.integer("num_residual_layers"),
        kernel=table.integer("kernel_size"),
        residual_kernel=table.integer("residual_kernel_size"),
        last_kernel=table.integer("last_kernel_size"),
        dilation_growth=table.integer("dilation_growth_rate"),
        compress=table.integer("compress"),
        norm_eps=table.number("norm_eps"),
        **transformer_sizes(table),
    )


def _check_form(table: Table) -> None:
    """What is always so in a published file, and nothing else is supported. Files leave out what
    is as usual."""
    usual: tuple[tuple[str, Any], ...] = (
        ("hidden_act", "gelu"),
        ("pad_mode", "constant"),
        ("use_causal_conv", True),
        ("use_conv_shortcut", False),
        ("attention_bias", False),
        ("audio_channels", 1),
    )
    for key, value in usual:
        if key in table.content:
            table.expect(key, value)


def _check_sizes(path: Path, config: CodecEncoderConfig) -> None:
    samples = prod(config.ratios) * DOWNSAMPLING
    if samples != config.frame_samples:
        raise ConfigError(
            f"{path}: encode_downsample_rate is {config.frame_samples}, but the stages of "
            f"encoder_config multiply to {samples}"
        )
    if not config.semantic_quantizers < config.quantizers <= config.stored_quantizers:
        raise ConfigError(
            f"{path}: encoder_valid_num_quantizers is {config.quantizers}; it must be from "
            f"{config.semantic_quantizers + 1} to encoder_config.num_quantizers, "
            f"{config.stored_quantizers}"
        )
