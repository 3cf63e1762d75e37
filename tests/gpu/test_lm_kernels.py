"""The LM lane's Triton kernels against plain torch, one by one."""

import os

import pytest
import torch
from playhead.engine.models.qwen3_tts import attention_triton, linear_triton, lm_triton
from playhead.engine.models.qwen3_tts.layers import (
    Entry,
    Exit,
    Few,
    Slotted,
    attend_few,
    attend_slots,
    close_layer,
    enter_layer,
    project,
    read_out,
    rms_norm,
)
from playhead.engine.models.qwen3_tts.sampling import Sampling, draw

pytestmark = pytest.mark.gpu
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
DTYPES = [torch.float32] if INTERPRETED else [torch.float32, torch.bfloat16]
LIMITS = {torch.float32: 3e-6, torch.bfloat16: 1e-2}
TRUE, SMALL = (2048, 16, 8, 128, 6144), (64, 4, 2, 16, 128)
SHAPES = [SMALL] if INTERPRETED else [SMALL, TRUE]


def noise(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator).to(DEVICE, dtype)


def close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    difference = (found.double() - wanted.double()).norm() / wanted.double().norm()
    assert difference <= LIMITS[wanted.dtype]


def weights(shape: tuple[int, ...], dtype: torch.dtype) -> tuple[Entry, Exit]:
    hidden, heads, kv_heads, width, inner = shape
    qkv = noise((heads + 2 * kv_heads) * width, hidden, seed=1) / hidden**0.5
    entry = Entry(
        1 + 0.1 * noise(hidden, dtype=dtype),
        qkv.to(dtype),
        1 + 0.1 * noise(width, seed=2, dtype=dtype),
        1 + 0.1 * noise(width, seed=3, dtype=dtype),
    )
    leave = Exit(
        (noise(hidden, heads * width, seed=4) / (heads * width) ** 0.5).to(dtype),
        1 + 0.1 * noise(hidden, seed=5, dtype=dtype),
        (noise(2 * inner, hidden, seed=6) / hidden**0.5).to(dtype),
        (noise(hidden, inner, seed=7) / inner**0.5).to(dtype),
    )
    return entry, leave


def angles(rows: int, width: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    turn = noise(rows, 1, width // 2, seed=8).repeat(1, 1, 2)
    return turn.cos().to(dtype), turn.sin().to(dtype)


def memory(
    rows: int, length: int, shape: tuple[int, ...], dtype: torch.dtype
) -> list[torch.Tensor]:
    return [noise(rows, length, shape[2], shape[3], seed=s, dtype=dtype) for s in (1, 2)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("width", [48, 64, 2048])
def test_norm(width: int, dtype: torch.dtype) -> None:
    x, gain = noise(3, 5, width, dtype=dtype), noise(width, seed=1, dtype=dtype)
    close(lm_triton.norm(x, gain, 1e-6), rms_norm(x, gain, 1e-6))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape[0]))
@pytest.mark.parametrize("rows", [(1,), (2, 3)] if INTERPRETED else [(1,), (7,), (2, 9)], ids=str)
@pytest.mark.parametrize("most", [0, lm_triton.MOST_ROWS], ids=["library", "few rows"])
def test_a_layer(
    most: int,
    rows: tuple[int, ...],
    shape: tuple[int, ...],
    dtype: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lm_triton, "MOST_ROWS", most)
    hidden, heads, kv_heads, width, _ = shape
    entry, leave = weights(shape, dtype)
    x = noise(*rows, hidden, dtype=dtype)
    # Prompts: the same positions in every row. Steps: each stream has its own.
    cos, sin = angles(rows[-1], width, dtype)
    found = lm_triton.enter(x, entry, cos, sin, kv_heads, 1e-6)
    for ours, theirs in zip(found, enter_layer(x, entry, cos, sin, kv_heads, 1e-6), strict=True):
        close(ours, theirs)
    close(lm_triton.project(x, entry, 1e-6), project(x, entry, 1e-6))
    attended = noise(*rows, heads * width, seed=9, dtype=dtype)
    close(lm_triton.close(x.clone(), attended, leave, 1e-6), close_layer(x, attended, leave, 1e-6))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rows", [1, 20, 70, 129] if not INTERPRETED else [1, 17])
def test_what_reads_a_state_out(rows: int, dtype: torch.dtype) -> None:
    x = noise(rows, 2, 64, dtype=dtype)[:, 1]
    gain, weight = 1 + 0.1 * noise(64, dtype=dtype), noise(96, 64, seed=1, dtype=dtype)
    close(lm_triton.read_out(x, gain, weight, 1e-6), read_out(x, gain, weight, 1e-6))


def test_what_is_added_to_a_product_may_be_a_slice() -> None:
    x, weight, wide = noise(3, 64), noise(32, 64, seed=1), noise(3, 2, 32, seed=2)
    close(linear_triton.linear(x, weight, more=wide[:, 1]), wide[:, 1] + x @ weight.t())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("rows", [3, 40])
def test_a_norm_whose_gain_is_in_the_weight(rows: int, gated: bool, dtype: torch.dtype) -> None:
    """As the codec's transformer has it, several programs of rows among them."""
    x, weight = noise(rows, 64, dtype=dtype), noise(64, 64, seed=1, dtype=dtype) / 8
    bias = noise(32 if gated else 64, seed=2, dtype=dtype)
    cut = linear_triton.Cut(16, 32, 4, 3, 16)
    found = linear_triton.linear(x, weight, eps=1e-6, gated=gated, bias=bias, cut=cut)
    wanted = rms_norm(x.double(), torch.ones_like(x[0]).double(), 1e-6) @ weight.double().t()
    if gated:
        gate, up = wanted.chunk(2, 1)
        wanted = torch.nn.functional.silu(gate) * up
    close(found, (wanted + bias.double()).to(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape[0]))
@pytest.mark.parametrize("at", [0, 1, 15, 40])
def test_the_newest_of_a_few_positions(at: int, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    entry, _ = weights(shape, dtype)
    cos, sin = angles(1, shape[3], dtype)
    qkv = noise(5, 2, entry.qkv.shape[0], dtype=dtype)[:, 1]  # as in a pass of two positions
    ours, theirs = (Few(*memory(5, 48, shape, dtype), at) for _ in range(2))
    found = attention_triton.over_few(qkv, entry, cos, sin, ours, 1e-6)
    close(found, attend_few(qkv, entry, cos, sin, theirs, 1e-6))
    close(ours.keys, theirs.keys)
    assert torch.equal(ours.values, theirs.values)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape[0]))
def test_the_newest_position_in_slots(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    entry, _ = weights(shape, dtype)
    cos, sin = angles(5, shape[3], dtype)
    qkv = noise(5, entry.qkv.shape[0], dtype=dtype)
    slots = torch.tensor([4, 0, 2, 5, 1], device=DEVICE)
    positions = torch.tensor([0, 63, 64, 149, 1], device=DEVICE)
    ours, theirs = (Slotted(*memory(6, 150, shape, dtype), slots, positions, 150) for _ in range(2))
    found = attention_triton.over_slots(qkv, entry, cos, sin, ours, 1e-6)
    close(found, attend_slots(qkv, entry, cos, sin, theirs, 1e-6))
    close(ours.keys, theirs.keys)
    assert torch.equal(ours.values, theirs.values)


def test_attention_does_not_look_behind_a_context() -> None:
    entry, _ = weights(SMALL, torch.float32)
    cos, sin = angles(1, SMALL[3], torch.float32)
    qkv = noise(1, entry.qkv.shape[0])
    slots, positions = (torch.tensor([value], device=DEVICE) for value in (1, 9))
    place = Slotted(*memory(2, 64, SMALL, torch.float32), slots, positions, 64)
    before = attention_triton.over_slots(qkv, entry, cos, sin, place, 1e-6)
    place.keys[1, 9:], place.values[1, 9:] = torch.nan, torch.nan
    after = attention_triton.over_slots(qkv, entry, cos, sin, place, 1e-6)
    assert torch.equal(after, before)


@pytest.mark.parametrize("size", [300, 2048, 3072])
def test_draws_have_the_same_distribution(size: int) -> None:
    """Each code as often as plain torch says, over evenly spaced numbers."""
    count = 8 if INTERPRETED else 20_000
    logits = 2 * noise(1, size)
    logits[0, ::7] = -torch.inf
    rule = Sampling(temperature=0.9, top_k=50)
    uniform = ((torch.arange(count, device=DEVICE) + 0.5) / count)[:, None]
    many = logits.expand(count, -1)
    found = lm_triton.draw_code(many, rule, uniform[:, 0]).bincount(minlength=size)
    wanted = draw(many, rule, uniform[:, 0]).bincount(minlength=size)
    assert found.sum() == count
    assert set(found.nonzero().flatten().tolist()) <= set(
        torch.topk(logits[0], 50).indices.tolist()
    )
    # Evenly spaced numbers give each code its share, up to one at either end of its interval.
    assert (found - wanted).abs().max() <= 2 + count * 1e-5


def test_draws_of_hopeless_rows_stay_in_range() -> None:
    logits = torch.full((2, 300), torch.nan, device=DEVICE)
    logits[1] = -torch.inf
    logits[1, 17] = 0.0
    codes = lm_triton.draw_code(logits, Sampling(), torch.tensor([0.3, 0.999], device=DEVICE))
    assert 0 <= int(codes[0]) < 300
    assert int(codes[1]) == 17


@pytest.mark.parametrize("rule", [Sampling(greedy=True), Sampling(top_p=0.5)], ids=str)
def test_rules_without_a_kernel_go_to_torch(rule: Sampling) -> None:
    logits, uniform = noise(4, 300), noise(4).abs().clamp(max=0.99)
    assert torch.equal(lm_triton.draw_code(logits, rule, uniform), draw(logits, rule, uniform))
