# ruff: noqa: E402 - what follows needs torch
"""The codec decoder against the reference implementation's vectors, and against itself.

The vectors are made by scripts/parity/make_codec_vectors.py; PCM is compared before the clamp.
"""

import itertools
import math
from collections.abc import Iterable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")
pytest.importorskip("safetensors", reason="safetensors is not installed (extra: qwen)")

from playhead.engine.models.qwen3_tts.codec import Codec, CodecDecoder, open_codec
from playhead.engine.models.qwen3_tts.codec_ops import TorchOps, window_mask
from playhead.engine.models.qwen3_tts.codec_spec import decoder_tensors
from playhead.engine.models.qwen3_tts.config import CodecDecoderConfig, read_codec_config
from playhead.engine.models.qwen3_tts.weights import random_tensors
from safetensors.torch import load_file

VECTORS = Path(__file__).resolve().parents[3] / "vectors" / "qwen3_tts"
FOLDERS = ("codec_tiny", "codec_grouped")
CHUNKS = {"ones": [1], "fours": [4], "mixed": [3, 1, 7, 2], "longest": [9], "whole": [1000]}
SLOTS = 7
MAX_FRAMES = 9
TOLERANCE = 1e-5  # the issue asks for 1e-4

TRUE = CodecDecoderConfig(
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
    rope_theta=1e4,
    channels=1536,
    upsample_rates=(8, 5, 4, 3),
    upsampling_ratios=(2, 2),
)


def opened(name: str) -> Codec:
    return open_codec(VECTORS / name, SLOTS, max_frames=MAX_FRAMES)


def reference(name: str) -> tuple["torch.Tensor", "torch.Tensor"]:
    vectors = load_file(VECTORS / name / "reference.safetensors")
    return vectors["codes"].long(), vectors["pcm"]


def spans(frames: int, sizes: Iterable[int]) -> Iterable[slice]:
    start = 0
    for size in itertools.cycle(sizes):
        if start >= frames:
            return
        yield slice(start, start + size)
        start += size


def chunked(
    codec: Codec, codes: "torch.Tensor", slots: list[int], sizes: Iterable[int]
) -> "torch.Tensor":
    where = torch.tensor(slots)
    parts = [
        codec.decode(codes[:, :, span], where, clamp=False) for span in spans(codes.shape[2], sizes)
    ]
    return torch.cat(parts, 1)


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("sizes", CHUNKS.values(), ids=CHUNKS)
def test_chunks_equal_the_reference(name: str, sizes: list[int]) -> None:
    codec, (codes, pcm) = opened(name), reference(name)
    out = chunked(codec, codes, [4, 1, 6][: len(codes)], sizes)
    assert out.shape == pcm.shape
    assert (out - pcm).abs().max() <= TOLERANCE


@pytest.mark.parametrize("name", FOLDERS)
def test_the_reference_is_loud_enough_to_show_errors(name: str) -> None:
    codes, pcm = reference(name)
    assert pcm.square().mean().sqrt() > 1000 * TOLERANCE
    assert pcm.abs().max() < 1.0
    assert not torch.equal(codes[0], codes[1])


def test_rows_at_different_positions_share_a_batch() -> None:
    """Rows join a running batch one after the other, leave it, and change places in it."""
    codec, (codes, pcm) = opened("codec_grouped"), reference("codec_grouped")
    samples = codec.decoder.config.frame_samples
    done, made = [0, 0, 0], [[], [], []]
    plan = [([0], 5), ([1, 0], 3), ([2, 0, 1], 1), ([1, 2], 9), ([0, 2], 2), ([2, 1, 0], 4)]
    for rows, size in plan:
        part = torch.stack([codes[row, :, done[row] : done[row] + size] for row in rows])
        out = codec.decode(part, torch.tensor(rows) + 3, clamp=False)
        for row, sound in zip(rows, out, strict=True):
            made[row].append(sound)
            done[row] += size
    for row in range(3):
        sound = torch.cat(made[row])
        assert len(sound) == done[row] * samples
        assert (sound - pcm[row, : len(sound)]).abs().max() <= TOLERANCE


def test_alone_equals_in_a_shuffled_batch() -> None:
    codec, (codes, _) = opened("codec_tiny"), reference("codec_tiny")
    generator = torch.Generator().manual_seed(1)
    others = torch.randint(0, 64, (5, *codes.shape[1:]), generator=generator)
    alone = chunked(codec, codes[:1], [0], [4])
    codec.reset(torch.arange(SLOTS))
    batch = torch.cat([others[:3], codes[:1], others[3:]])
    together = chunked(codec, batch, [6, 2, 5, 3, 0, 1], [4])
    assert (together[3] - alone[0]).abs().max() <= TOLERANCE


def test_a_reset_slot_remembers_nothing() -> None:
    codec, (codes, pcm) = opened("codec_tiny"), reference("codec_tiny")
    fresh = chunked(codec, codes[:1], [2], [4])
    codec.reset(torch.tensor([2]))
    assert torch.equal(chunked(codec, codes[:1], [2], [4]), fresh)
    assert not torch.allclose(
        codec.decode(codes[:1, :, :4], torch.tensor([2]), clamp=False), pcm[:1, : 4 * 192]
    )


def test_reset_clears_even_a_poisoned_slot() -> None:
    codec, (codes, pcm) = opened("codec_tiny"), reference("codec_tiny")
    for tensor in codec.arena.tensors:
        tensor[5] = float("nan") if tensor.is_floating_point() else 10**6
    codec.reset(torch.tensor([5]))
    out = chunked(codec, codes[:1], [5], [3])
    assert (out - pcm[:1]).abs().max() <= TOLERANCE


def test_other_slots_are_untouched() -> None:
    codec, (codes, _) = opened("codec_tiny"), reference("codec_tiny")
    chunked(codec, codes, [1, 3], [7])
    for tensor in codec.arena.tensors:
        assert tensor[[1, 3]].count_nonzero() > 0
        assert tensor[[0, 2, 4, 5, 6, 7]].count_nonzero() == 0


def test_padding_rows_may_share_the_spare_slot() -> None:
    codec, (codes, pcm) = opened("codec_tiny"), reference("codec_tiny")
    spare = codec.arena.spare
    padded = torch.cat([codes[:1], torch.zeros_like(codes[:1]).expand(3, -1, -1)])
    out = chunked(codec, padded, [0, spare, spare, spare], [4])
    assert (out[:1] - pcm[:1]).abs().max() <= TOLERANCE
    assert out.isfinite().all()


def test_a_bad_code_harms_its_own_stream_only() -> None:
    codec, (codes, pcm) = opened("codec_tiny"), reference("codec_tiny")
    bad = codes.clone()
    bad[0, 0, 3], bad[0, 1, 4] = 10**6, -1
    out = chunked(codec, bad, [0, 1], [4])
    assert out.isfinite().all()
    assert (out[1] - pcm[1]).abs().max() <= TOLERANCE


def test_pcm_is_clamped_unless_asked_not_to() -> None:
    codec, (codes, _) = opened("codec_tiny"), reference("codec_tiny")
    codec.decoder.last_bias += 0.9
    loud = codec.decode(codes[:1], torch.tensor([0]), clamp=False)
    limited = codec.decode(codes[:1], torch.tensor([1]))
    assert loud.max() > 1.0
    assert torch.equal(limited, loud.clamp(-1.0, 1.0))


@pytest.mark.parametrize(
    ("codes", "slots", "message"),
    [
        ((2, 3, 4), (2,), r"\[2, 3, 4\]; expected \[batch, 4, frames\]"),
        ((2, 4), (2,), "expected"),
        ((2, 4, 0), (2,), "expected"),
        ((2, 4, 1), (3,), "2 rows of codes need as many slots"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    codes: tuple[int, ...], slots: tuple[int, ...], message: str
) -> None:
    codec = opened("codec_tiny")
    with pytest.raises(ValueError, match=message):
        codec.decode(torch.zeros(codes, dtype=torch.int64), torch.zeros(slots, dtype=torch.int64))


@pytest.mark.parametrize(("dtype", "limit"), [("bfloat16", 5e-2), ("float16", 6e-3)])
def test_half_precision_states_a_small_error(dtype: str, limit: float) -> None:
    codes, pcm = reference("codec_tiny")
    ops = TorchOps({"bfloat16": torch.bfloat16, "float16": torch.float16}[dtype])
    codec = open_codec(VECTORS / "codec_tiny", SLOTS, ops=ops)
    out = chunked(codec, codes, [0, 1], [4])
    error = (out - pcm).norm() / pcm.norm()
    assert limit / 50 < error < limit


def test_float16_activations_stay_finite() -> None:
    ops, one = TorchOps(torch.float16), torch.ones(1)
    x = torch.tensor([float("inf"), -float("inf"), float("nan"), 65504.0]).half().view(1, 4, 1)
    out = ops.snake(x, one, one, 100 * one).flatten().tolist()
    assert out[:2] == [65504.0, pytest.approx(-65404, abs=40)]
    assert math.isnan(out[2])
    assert out[3] == 65504.0


def test_true_sizes_are_the_published_ones() -> None:
    """114,323,137 parameters; 2.6 MB of bfloat16 state: 135,232 columns, 71 frames of keys."""
    specs = decoder_tensors(TRUE)
    assert sum(spec.size for spec in specs.values()) == 114_323_137
    with torch.device("meta"):
        tensors = {name: torch.empty(spec.shape) for name, spec in specs.items()}
        decoder = CodecDecoder(TRUE, tensors, TorchOps(torch.bfloat16))
        arena = decoder.arena(1, 1)
        codes, slots = torch.empty(3, 16, 1, dtype=torch.int64), torch.empty(3, dtype=torch.int64)
        assert decoder(codes, slots, arena).shape == (3, 1920)
    assert decoder.layout.width == 132_352 + 2_880
    assert arena.ring == 72  # window - 1 + 1
    assert arena.slot_bytes == 2 * (135_232 + 8 * 2 * 1024 * 72) + 8


def test_window_mask_by_enumeration() -> None:
    window, ring = 5, 8
    for first in (0, 1, 3, 6, 20):
        positions = torch.arange(first, first + 3)[None]
        seen = window_mask(positions, ring, window)[0, 0] == 0
        for query in range(3):
            at = first + query
            expected = {p % ring for p in range(max(0, at - window + 1), at + 1)}
            assert {place for place in range(ring) if seen[query, place]} == expected


def test_random_weights_give_sound_that_is_not_clamped() -> None:
    config = read_codec_config(VECTORS / "codec_tiny" / "config.json").decoder
    decoder = CodecDecoder(config, random_tensors(decoder_tensors(config), 3))
    codec = Codec(decoder, decoder.arena(1), 25)
    codes = torch.randint(0, 64, (1, 4, 30), generator=torch.Generator().manual_seed(2))
    pcm = codec.decode(codes, torch.tensor([0]), clamp=False)
    assert 0.01 < pcm.square().mean().sqrt() < 0.5
    assert pcm.abs().max() < 1.0


def test_primed_slots_go_on_where_a_recording_ended() -> None:
    codec = opened("codec_tiny")
    codes, _ = reference("codec_tiny")
    recording = codes[0, :, :20].t().contiguous().numpy()
    following = codes[:1, :, 20:].expand(2, -1, -1)
    whole = codec.decode(codes[:1], torch.tensor([6]), clamp=False)
    for slots in ([0, 3], [5, 3]):  # the second time from memory
        where = torch.tensor(slots)
        codec.reset(where)
        codec.prime(recording, where)
        pcm = codec.decode(following, where, clamp=False)
        assert (pcm - whole[:, -pcm.shape[1] :]).abs().max() < TOLERANCE
