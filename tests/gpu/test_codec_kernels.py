# ruff: noqa: E402 - what follows needs torch and triton
"""The codec decoder's Triton kernels against plain torch, one by one.

Needs a CUDA device, or ``TRITON_INTERPRET=1`` to run the kernels' logic on the CPU (float32 only:
the interpreter multiplies bfloat16 matrices wrongly).
"""

import os

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")
pytest.importorskip("triton", reason="triton is not installed")

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
if not (INTERPRETED or torch.cuda.is_available()):
    pytest.skip("needs a CUDA device or TRITON_INTERPRET=1", allow_module_level=True)

from playhead.engine.models.qwen3_tts.codec_ops import Heads, TorchOps, full_float32
from playhead.engine.models.qwen3_tts.codec_triton import TritonOps

DEVICE = "cpu" if INTERPRETED else "cuda"
# The interpreter takes a millisecond for what a device does in nanoseconds: fewer heads for it.
TRUE = Heads(2, 2, 64, 72) if INTERPRETED else Heads(16, 16, 64, 72)
DTYPES = [torch.float32] if INTERPRETED else [torch.float32, torch.bfloat16]

pytestmark = pytest.mark.gpu


@pytest.fixture(params=DTYPES, ids=str)
def dtype(request: pytest.FixtureRequest) -> "torch.dtype":
    return request.param


def noise(*shape: int, seed: int = 0, dtype: "torch.dtype | None" = None) -> "torch.Tensor":
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator).to(DEVICE, dtype or torch.float32)


def close(found: "torch.Tensor", wanted: "torch.Tensor", exact: float = 2e-6) -> None:
    """``exact``: the largest relative error of float32."""
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    limit = exact if wanted.dtype == torch.float32 else 8e-3
    error = (found.float() - wanted.float()).norm() / wanted.float().norm()
    assert error <= limit


@pytest.mark.parametrize("channels", [8, 96] if INTERPRETED else [8, 96, 192, 256])
@pytest.mark.parametrize("before", [0, 6, 54])
def test_snake(channels: int, before: int, dtype: "torch.dtype") -> None:
    x = noise(3, 37, channels, dtype=dtype)
    rows = noise(3, before * channels + 64, dtype=dtype)
    past = rows[:, 64:].view(3, before, channels) if before else None
    frequency, height = noise(channels).exp(), noise(channels, seed=1).exp()
    given = (x, frequency, height, noise(channels, seed=2), past)
    close(TritonOps(dtype).snake(*given), TorchOps(dtype).snake(*given))


def test_snake_keeps_float16_finite_and_a_nan_visible() -> None:
    x = torch.tensor([float("inf"), -float("inf"), float("nan"), 65504.0, 1.0], device=DEVICE)
    x = x.half()[None, :, None].expand(1, 5, 8).contiguous()
    one = torch.ones(8, device=DEVICE)
    out = TritonOps(torch.float16).snake(x, one, one, one)
    wanted = TorchOps(torch.float16).snake(x, one, one, one)
    assert torch.equal(out.isnan(), wanted.isnan())
    assert torch.allclose(out, wanted, atol=0.01, equal_nan=True)


@pytest.mark.parametrize("channels", [24, 1024])
def test_depthwise(channels: int, dtype: "torch.dtype") -> None:
    extended = noise(2, 6 + 5, channels, dtype=dtype)
    given = (extended, noise(7, channels), *(noise(channels, seed=s) for s in (1, 2, 3)), 1e-6)
    close(TritonOps(dtype).depthwise(*given), TorchOps(dtype).depthwise(*given))


@pytest.mark.parametrize("channels", [24, 512])
def test_rms(channels: int, dtype: "torch.dtype") -> None:
    given = (noise(2, 3, channels, dtype=dtype), 1e-5)
    close(TritonOps(dtype).rms(*given), TorchOps(dtype).rms(*given))


@pytest.mark.parametrize("width", [20, 1024])
def test_gate(width: int, dtype: "torch.dtype") -> None:
    both = noise(3, 5, 2 * width, dtype=dtype)
    close(TritonOps(dtype).gate(both), TorchOps(dtype).gate(both))


@pytest.mark.parametrize("channels", [12, 96])
def test_fold(channels: int, dtype: "torch.dtype") -> None:
    """Against plain torch as the codec calls it, and against float64: on a device, plain torch
    rounds the inputs of a convolution to TF32 unless it is told not to."""
    given = (noise(2, 6 + 131, channels, dtype=dtype), noise(7, channels), noise(1))
    found = TritonOps(dtype).fold(*given)
    with full_float32():
        close(found, TorchOps(dtype).fold(*given), exact=1e-5)  # libraries take short cuts
    x, weight, bias = (value.double() for value in given)
    exact = (x.unfold(1, 7, 1) * weight.t()).sum((2, 3)) + bias
    # A weight is two numbers of the activations' precision: 16 bits of bfloat16, 23 of float32.
    close(found, exact.float(), exact=2e-6 if dtype == torch.float32 else 5e-6)


@pytest.mark.parametrize("heads", [TRUE, Heads(6, 2, 4, 5)], ids=["true", "tiny"])
@pytest.mark.parametrize("length", [1, 4])
def test_attend(heads: Heads, length: int, dtype: "torch.dtype") -> None:
    """Streams before their window is full, just past it, and far into the ring."""
    ring = -(-(heads.window - 1 + 4) // 8) * 8
    caches = [noise(6, ring, heads.keys, heads.width, seed=s, dtype=dtype) for s in (1, 2)]
    ours = [cache.clone() for cache in caches]
    qkv = noise(3, length, (heads.queries + 2 * heads.keys) * heads.width, dtype=dtype)
    slots = torch.tensor([4, 0, 2], device=DEVICE)
    first = torch.tensor([0, heads.window, 1000 + ring], device=DEVICE)
    inverse = 1e4 ** -(torch.arange(heads.width // 2, device=DEVICE) / (heads.width / 2))
    found = []
    for ops, (keys, values) in ((TorchOps(dtype), caches), (TritonOps(dtype), ours)):
        turn = ops.turn(first, slots, length, ring, inverse, heads.window)
        found.append(ops.attend(qkv.clone(), turn, keys, values, heads))
    close(found[1], found[0])
    for mine, theirs in zip(ours, caches, strict=True):
        close(mine, theirs)
