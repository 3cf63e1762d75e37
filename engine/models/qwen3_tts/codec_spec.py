"""The codec decoder's tensors: names as the checkpoint has them, shapes from the configuration."""

from collections.abc import Iterator

from playhead.engine.models.qwen3_tts.config import CodecDecoderConfig
from playhead.engine.models.qwen3_tts.weights import TensorSpec, attention, bias, dense, scale

PREFIX = "decoder."
IGNORED = ("encoder.",)
UNUSED = "input_proj"  # of the quantizers: only encoding needs them

LATENT_KERNEL = 3
WAVE_KERNEL = 7
DEPTHWISE_KERNEL = 7
EXPANSION = 4  # of the latent stages' inner layer
DILATIONS = (1, 3, 9)
OVERLAP = 2  # a waveform stage's transposed kernel spans this many strides

GAIN = 0.7  # random weights: keeps the waveform stages, which add up residuals, in range
FINAL_GAIN = 0.05  # random weights: PCM well inside -1..1, so that clamping hides no error

Entry = tuple[str, TensorSpec]


def decoder_tensors(config: CodecDecoderConfig) -> dict[str, TensorSpec]:
    """Every tensor of the decoder, by its name without ``decoder.``"""
    return dict(_entries(config))


def stage_channels(config: CodecDecoderConfig) -> tuple[int, ...]:
    """Channels before the first waveform stage and after each: halved every time."""
    return tuple(config.channels >> stage for stage in range(len(config.upsample_rates) + 1))


def _entries(config: CodecDecoderConfig) -> Iterator[Entry]:
    yield from _quantizer(config)
    yield from _conv("pre_conv.conv", config.codebook_width, config.latent, LATENT_KERNEL)
    yield from _transformer(config)
    for index, ratio in enumerate(config.upsampling_ratios):
        yield from _latent_stage(f"upsample.{index}", config.latent, ratio)
    channels = stage_channels(config)
    yield from _conv("decoder.0.conv", config.latent, channels[0], WAVE_KERNEL)
    for index, rate in enumerate(config.upsample_rates):
        before, after = channels[index : index + 2]
        yield from _waveform_stage(f"decoder.{index + 1}.block", before, after, rate)
    last = len(config.upsample_rates) + 1
    yield from _snake(f"decoder.{last}", channels[-1])
    yield from _conv(f"decoder.{last + 1}.conv", channels[-1], 1, WAVE_KERNEL, FINAL_GAIN)


def _quantizer(config: CodecDecoderConfig) -> Iterator[Entry]:
    entry = config.codebook_width // 2
    books = {
        "rvq_first": config.semantic_quantizers,
        "rvq_rest": config.quantizers - config.semantic_quantizers,
    }
    for group, count in books.items():
        name = f"quantizer.{group}"
        yield f"{name}.input_proj.weight", dense(entry, config.codebook_width, 1)
        yield f"{name}.output_proj.weight", dense(config.codebook_width, entry, 1, gain=GAIN)
        for book in range(count):
            at = f"{name}.vq.layers.{book}._codebook"
            yield f"{at}.embedding_sum", TensorSpec((config.codebook_size, entry), 1.0)
            usage = TensorSpec((config.codebook_size,), 0.75, mean=1.25, positive=True)
            yield f"{at}.cluster_usage", usage


def _transformer(config: CodecDecoderConfig) -> Iterator[Entry]:
    name = "pre_transformer"
    yield from _linear(f"{name}.input_proj", config.latent, config.hidden)
    yield from _linear(f"{name}.output_proj", config.hidden, config.latent)
    yield f"{name}.norm.weight", scale(config.hidden)
    for layer in range(config.layers):
        yield from _layer(f"{name}.layers.{layer}", config)


def _layer(name: str, config: CodecDecoderConfig) -> Iterator[Entry]:
    hidden, inner = config.hidden, config.intermediate
    queries, keys = config.heads * config.head_dim, config.kv_heads * config.head_dim
    yield from attention(name, hidden, queries, keys)
    for part, out, inputs in (
        ("mlp.gate_proj", inner, hidden),
        ("mlp.up_proj", inner, hidden),
        ("mlp.down_proj", hidden, inner),
    ):
        yield f"{name}.{part}.weight", dense(out, inputs)
    for norm in ("input_layernorm", "post_attention_layernorm"):
        yield f"{name}.{norm}.weight", scale(hidden)
    for branch in ("self_attn_layer_scale", "mlp_layer_scale"):
        yield f"{name}.{branch}.scale", TensorSpec((hidden,), 0.03, mean=0.3)


def _latent_stage(name: str, width: int, ratio: int) -> Iterator[Entry]:
    inner = EXPANSION * width
    yield from _transposed(f"{name}.0.conv", width, width, ratio, 1)
    yield f"{name}.1.dwconv.conv.weight", dense(width, 1, DEPTHWISE_KERNEL)
    yield f"{name}.1.dwconv.conv.bias", bias(width)
    yield f"{name}.1.norm.weight", scale(width)
    yield f"{name}.1.norm.bias", bias(width)
    yield from _linear(f"{name}.1.pwconv1", width, inner)
    yield from _linear(f"{name}.1.pwconv2", inner, width)
    yield f"{name}.1.gamma", TensorSpec((width,), 0.03, mean=0.3)


def _waveform_stage(name: str, before: int, after: int, rate: int) -> Iterator[Entry]:
    yield from _snake(f"{name}.0", before)
    yield from _transposed(f"{name}.1.conv", before, after, rate, OVERLAP)
    for unit in range(len(DILATIONS)):
        at = f"{name}.{unit + 2}"
        yield from _snake(f"{at}.act1", after)
        yield from _conv(f"{at}.conv1.conv", after, after, WAVE_KERNEL)
        yield from _snake(f"{at}.act2", after)
        yield from _conv(f"{at}.conv2.conv", after, after, 1)


def _conv(name: str, inputs: int, out: int, kernel: int, gain: float = GAIN) -> Iterator[Entry]:
    yield f"{name}.weight", dense(out, inputs, kernel, gain=gain)
    yield f"{name}.bias", bias(out)


def _transposed(name: str, inputs: int, out: int, stride: int, overlap: int) -> Iterator[Entry]:
    shape = (inputs, out, stride * overlap)
    yield f"{name}.weight", dense(*shape, fan_in=inputs * overlap, gain=GAIN)
    yield f"{name}.bias", bias(out)


def _linear(name: str, inputs: int, out: int) -> Iterator[Entry]:
    yield f"{name}.weight", dense(out, inputs)
    yield f"{name}.bias", bias(out)


def _snake(name: str, channels: int) -> Iterator[Entry]:
    yield f"{name}.alpha", TensorSpec((channels,), 0.3)
    yield f"{name}.beta", TensorSpec((channels,), 0.3)
