"""The codec encoder's tensors: names as the checkpoint has them, shapes from the configuration."""

from collections.abc import Iterator
from dataclasses import dataclass

from playhead.engine.models.qwen3_tts.encoder_config import DOWNSAMPLING, CodecEncoderConfig
from playhead.engine.models.qwen3_tts.weights import TensorSpec, attention, bias, dense, scale

PREFIX = "encoder."
LAYERS = "encoder.layers"
TRANSFORMER = "encoder_transformer.layers"
DOWNSAMPLE = "downsample.conv.weight"
GROUPS = ("semantic", "acoustic")
GAIN = 1.0

Entry = tuple[str, TensorSpec]


@dataclass(frozen=True, slots=True)
class Convolution:
    """One convolution of the waveform stages; ``at``: its name."""

    at: str
    inputs: int
    out: int
    kernel: int
    stride: int = 1
    dilation: int = 1


@dataclass(frozen=True, slots=True)
class Residual:
    """A branch of two convolutions, the first dilated, added to its input."""

    wide: Convolution
    narrow: Convolution


Step = Convolution | Residual
"""All but the very first have an ELU before every convolution."""


def steps(config: CodecEncoderConfig) -> tuple[Step, ...]:
    """The waveform stages in order. The activations between them are numbered along, but hold
    nothing."""
    return tuple(_steps(config))


def _steps(config: CodecEncoderConfig) -> Iterator[Step]:
    width = config.filters
    yield Convolution(f"{LAYERS}.0.conv", 1, width, config.kernel)
    number = 1
    for ratio in config.ratios:
        for layer in range(config.residual_layers):
            yield _residual(config, f"{LAYERS}.{number}.block", width, layer)
            number += 1
        at = f"{LAYERS}.{number + 1}.conv"
        yield Convolution(at, width, 2 * width, 2 * ratio, stride=ratio)
        number += 2
        width *= 2
    yield Convolution(f"{LAYERS}.{number + 1}.conv", width, config.hidden, config.last_kernel)


def _residual(config: CodecEncoderConfig, at: str, width: int, layer: int) -> Residual:
    inner, dilation = width // config.compress, config.dilation_growth**layer
    return Residual(
        Convolution(f"{at}.1.conv", width, inner, config.residual_kernel, dilation=dilation),
        Convolution(f"{at}.3.conv", inner, width, 1),
    )


def books(config: CodecEncoderConfig) -> dict[str, int]:
    """Codebooks that are used, by group."""
    semantic = config.semantic_quantizers
    return dict(zip(GROUPS, (semantic, config.quantizers - semantic), strict=True))


def group_name(group: str) -> str:
    """Where a group of codebooks is in the checkpoint."""
    return f"quantizer.{group}_residual_vector_quantizer"


def encoder_tensors(config: CodecEncoderConfig) -> dict[str, TensorSpec]:
    """Every tensor that encoding needs, by its name without ``encoder.``"""
    return dict(_entries(config))


def unused(config: CodecEncoderConfig) -> tuple[str, ...]:
    """How the names begin of what a codec's file holds besides: the decoder, what only decoding
    would need of the encoder's quantizer, and codebooks beyond those used."""
    names = ["decoder."]
    stored = dict(
        zip(
            GROUPS,
            (config.semantic_quantizers, config.stored_quantizers - config.semantic_quantizers),
            strict=True,
        )
    )
    for group, used in books(config).items():
        at = PREFIX + group_name(group)
        names.append(f"{at}.output_proj.")
        names += [f"{at}.layers.{book}.codebook.initialized" for book in range(used)]
        names += [f"{at}.layers.{book}." for book in range(used, stored[group])]
    return tuple(names)


def _entries(config: CodecEncoderConfig) -> Iterator[Entry]:
    for step in steps(config):
        if isinstance(step, Residual):
            yield from _conv(step.wide)
            yield from _conv(step.narrow)
        else:
            yield from _conv(step)
    for layer in range(config.layers):
        yield from _layer(f"{TRANSFORMER}.{layer}", config)
    yield DOWNSAMPLE, dense(config.hidden, config.hidden, 2 * DOWNSAMPLING)
    for group, count in books(config).items():
        at = group_name(group)
        yield f"{at}.input_proj.weight", dense(config.entry, config.hidden, 1)
        for book in range(count):
            name = f"{at}.layers.{book}.codebook"
            yield f"{name}.embed_sum", TensorSpec((config.codebook_size, config.entry), 1.0)
            usage = TensorSpec((config.codebook_size,), 0.75, mean=1.25, positive=True)
            yield f"{name}.cluster_usage", usage


def _conv(conv: Convolution) -> Iterator[Entry]:
    yield f"{conv.at}.weight", dense(conv.out, conv.inputs, conv.kernel, gain=GAIN)
    yield f"{conv.at}.bias", bias(conv.out)


def _layer(name: str, config: CodecEncoderConfig) -> Iterator[Entry]:
    hidden, inner = config.hidden, config.intermediate
    queries, keys = config.heads * config.head_dim, config.kv_heads * config.head_dim
    yield from attention(name, hidden, queries, keys)
    for part, out, inputs in (
        ("mlp.fc1", inner, hidden),
        ("mlp.fc2", hidden, inner),
    ):
        yield f"{name}.{part}.weight", dense(out, inputs)
    for norm in ("input_layernorm", "post_attention_layernorm"):
        yield f"{name}.{norm}.weight", scale(hidden)
        yield f"{name}.{norm}.bias", bias(hidden)
    for branch in ("self_attn_layer_scale", "mlp_layer_scale"):
        yield f"{name}.{branch}.scale", TensorSpec((hidden,), 0.03, mean=0.3)
