# ruff: noqa: E402 - what follows needs torch and triton
"""The codec decoder's fused convolutions against plain torch: every way in which they are called.

Needs a CUDA device, or ``TRITON_INTERPRET=1`` to run the kernels' logic on the CPU (float32 only:
the interpreter multiplies bfloat16 matrices wrongly).
"""

import os
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")
pytest.importorskip("triton", reason="triton is not installed")

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
if not (INTERPRETED or torch.cuda.is_available()):
    pytest.skip("needs a CUDA device or TRITON_INTERPRET=1", allow_module_level=True)

from playhead.engine.models.qwen3_tts import codec_conv_triton as fused
from playhead.engine.models.qwen3_tts.codec import Codec, CodecDecoder
from playhead.engine.models.qwen3_tts.codec_conv_triton import Tile
from playhead.engine.models.qwen3_tts.codec_fused import EVERY, FusedOps
from playhead.engine.models.qwen3_tts.codec_ops import TorchOps, Unit, Wave, full_float32
from playhead.engine.models.qwen3_tts.codec_spec import decoder_tensors
from playhead.engine.models.qwen3_tts.presets import codec_config
from playhead.engine.models.qwen3_tts.weights import random_tensors

DEVICE = "cpu" if INTERPRETED else "cuda"
# The device's sine is an approximation.
EXACT = 2e-6 if INTERPRETED else 1e-5
DTYPES = [torch.float32] if INTERPRETED else [torch.float32, torch.bfloat16, torch.float16]
LIMITS = {torch.float32: EXACT, torch.bfloat16: 1e-2, torch.float16: 2e-3}

pytestmark = pytest.mark.gpu


@pytest.fixture(params=DTYPES, ids=str)
def dtype(request: pytest.FixtureRequest) -> "torch.dtype":
    return request.param


def noise(*shape: int, seed: int = 0) -> "torch.Tensor":
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator).to(DEVICE)


def wave_of(channels: int, batch: int, before: int, dtype: "torch.dtype") -> Wave:
    """Past columns lie in rows of a wider tensor, as in the arena."""
    rows = noise(batch, before * channels + 64, seed=5).to(dtype)
    past = rows[:, 64:].view(batch, before, channels) if before else None
    frequency, height = (noise(channels, seed=s).mul(0.3).exp() for s in (1, 2))
    return Wave(frequency, height, noise(channels, seed=3), past)


def kernel(out: int, inputs: int, taps: int, dtype: "torch.dtype") -> "torch.Tensor":
    weight = noise(out, inputs, 1, taps) / (inputs * taps) ** 0.5
    return weight.to(dtype).contiguous(memory_format=torch.channels_last)


def close(found: "torch.Tensor | None", wanted: "torch.Tensor | None") -> None:
    assert found is not None
    assert wanted is not None
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    error = (found.double() - wanted.double()).norm() / wanted.double().norm()
    assert error <= LIMITS[wanted.dtype]


@pytest.mark.parametrize(
    ("channels", "ratio", "taps", "dilation", "length", "before"),
    [
        (16, 1, 7, 3, 10, 6),  # tiles that span streams
        (16, 5, 2, 1, 1, 54),  # one column in, and most of the past stays the past
        (48, 3, 7, 9, 5, 0),  # channels that no tile divides, nothing remembered
    ],
)
@pytest.mark.parametrize("raw", [True, False])
def test_convolution_and_activation(
    channels: int, ratio: int, taps: int, dilation: int, length: int, before: int, raw: bool,
    dtype: "torch.dtype",
) -> None:  # fmt: skip
    weight = kernel(channels * ratio, 32, taps, dtype)
    extended = noise(3, (taps - 1) * dilation + length, 32).to(dtype)
    wave = wave_of(channels, 3, before, dtype)
    with full_float32():
        wanted = TorchOps(dtype).convolve(extended, weight, dilation, wave, raw=raw)
    found = fused.convolve(extended, weight, dilation, wave, Tile(16, 32, 16, 4, 2), raw=raw)
    close(found[1], wanted[1])
    if raw:
        close(found[0], wanted[0])
    else:
        assert found[0] is None
        assert wanted[0] is None


@pytest.mark.parametrize(("taps", "dilation", "length"), [(7, 3, 10), (2, 1, 1), (3, 1, 5)])
def test_the_plain_way_is_the_same_convolution(
    taps: int, dilation: int, length: int, dtype: "torch.dtype"
) -> None:
    weight = kernel(48, 32, taps, dtype)
    extended = noise(3, (taps - 1) * dilation + length, 32).to(dtype)
    with full_float32():
        wanted = TorchOps(dtype).conv(extended, weight, dilation)
    close(FusedOps(dtype).conv(extended, weight, dilation), wanted)


def test_mix_adds_to_the_residual_stream(dtype: "torch.dtype") -> None:
    weight, wave = kernel(48, 48, 1, dtype)[:, :, 0, 0], wave_of(48, 3, 18, dtype)
    inner, x = noise(3, 7, 48, seed=1).to(dtype), noise(3, 7, 48, seed=2).to(dtype)
    theirs, ours = x.clone(), x.clone()
    ops = TorchOps(dtype)
    with full_float32():
        wanted = ops.activate(ops.accumulate(theirs, inner, weight), wave)
    close(fused.mix(ours, inner, weight, wave, Tile(16, 32, 16, 4, 2)), wanted)
    close(ours, theirs)


@pytest.mark.parametrize("whole", [0, 1], ids=["two products", "one padded"])
@pytest.mark.parametrize(
    ("channels", "dilation", "length", "before", "raw"),
    [(48, 3, 9, 54, True), (48, 9, 9, 1, False), (32, 1, 20, 6, True)],
)
def test_residual_unit(
    channels: int, dilation: int, length: int, before: int, raw: bool, whole: int,
    dtype: "torch.dtype",
) -> None:  # fmt: skip
    extended = noise(3, 6 * dilation + length, channels).to(dtype)
    x, wave = noise(3, length, channels, seed=2).to(dtype), wave_of(channels, 3, before, dtype)
    inner = wave_of(channels, 3, 0, dtype)
    mix = kernel(channels, channels, 1, dtype)[:, :, 0, 0]
    parts = Unit(kernel(channels, channels, 7, dtype), dilation, inner, mix)
    theirs, ours = x.clone(), x.clone()
    with full_float32():
        wanted = TorchOps(dtype).unit(theirs, extended, parts, wave, raw=raw)
    found = fused.unit(ours, extended, parts, wave, Tile(16, whole, 16, 4, 2), raw=raw)
    close(found, wanted)
    close(ours, theirs if raw else x)


@pytest.mark.skipif(INTERPRETED, reason="the interpreter takes only float32 for sure")
def test_float16_stays_finite_and_a_nan_visible() -> None:
    extended = torch.full((2, 4, 16), 6e4, device=DEVICE, dtype=torch.float16)
    extended[1, 2] = float("nan")
    weight = torch.ones(16, 16, 1, 1, device=DEVICE, dtype=torch.float16)
    weight = weight.contiguous(memory_format=torch.channels_last)
    wave = wave_of(16, 2, 0, torch.float16)
    _, found = fused.convolve(extended, weight, 1, wave, Tile(16, 16, 16, 4, 2), raw=False)
    assert found[0].isfinite().all()
    assert found[1, 2].isnan().all()
    assert found[1, :2].isfinite().all()


SMALL = Tile(32, 32, 16, 4, 2)
TABLES: dict[str, Any] = {
    "convolutions": {
        (32, 64, 7): ((EVERY, SMALL),),
        (64, 96, 2): ((EVERY, SMALL),),
        (32, 32, 7): ((EVERY, SMALL),),
        (32, 32, 2): ((24, SMALL),),  # longer chunks the plain way
    },
    "mixes": {32: ((EVERY, SMALL),)},
    "units": {16: ((EVERY, Tile(32, 0, 16, 4, 2)),)},
}


def test_a_decoder_of_every_kernel_is_the_plain_one() -> None:
    """Whole streams in uneven chunks: what each chunk leaves to the next, too."""
    config = replace(
        codec_config().decoder, channels=64, upsample_rates=(3, 2), latent=32, hidden=32,
        head_dim=16, heads=2, kv_heads=1, intermediate=32, layers=1, window=5, codebook_width=16,
        codebook_size=32,
    )  # fmt: skip
    weights = random_tensors(decoder_tensors(config), 3, device="cpu")
    codes = torch.randint(0, 32, (2, 16, 3), generator=torch.Generator().manual_seed(1))
    found = []
    for ops in (TorchOps(), FusedOps(torch.float32, **TABLES)):
        decoder = CodecDecoder(config, {n: t.to(DEVICE) for n, t in weights.items()}, ops)
        codec = Codec(decoder, decoder.arena(4, 2), 2)
        slots = torch.tensor([3, 1], device=DEVICE)
        parts, first = [], 0
        for size in (1, 2):
            chunk = codes[:, :, first : first + size].to(DEVICE)
            parts.append(codec.decode(chunk, slots, clamp=False))
            first += size
        found.append(torch.cat(parts, 1))
    error = (found[1] - found[0]).norm() / found[0].norm()
    assert error <= 10 * EXACT
