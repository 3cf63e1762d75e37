# ruff: noqa: E402 - what follows needs torch
"""Long prompts in pieces say what they say in one."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")
pytest.importorskip("safetensors", reason="safetensors is not installed (extra: qwen)")

import runner_lab
import talker_lab as lab
from hypothesis import given
from hypothesis import strategies as st
from playhead.engine.models.qwen3_tts.codec import Codec, CodecDecoder
from playhead.engine.models.qwen3_tts.codec_spec import decoder_tensors
from playhead.engine.models.qwen3_tts.embed import embed_prompts
from playhead.engine.models.qwen3_tts.layers import attend_causal
from playhead.engine.models.qwen3_tts.long_prompts import (
    SIZES,
    LongPrompts,
    attend_context,
    pieces,
)
from playhead.engine.models.qwen3_tts.prompt import Prompt
from playhead.engine.models.qwen3_tts.weights import random_tensors
from talker_kit import RYAN, Spoken, model_config

TOLERANCE = 2e-5
LONG = Spoken(text=75, voice="ryan", language="english", seed=4)
CLONED = Spoken(text=30, reference=(40, 20), vector=True, seed=5)


class Begun(NamedTuple):
    prompt: Prompt
    slot: int
    seed: int = 7
    least: int = 2


@pytest.fixture(autouse=True)
def _inference() -> Iterator[None]:
    with torch.inference_mode():
        yield


@given(st.integers(1, 5_000), st.sets(st.integers(1, 300), min_size=1))
def test_pieces_cover_a_prompt_in_order(rows: int, sizes: set[int]) -> None:
    found = pieces(rows, tuple(sizes))
    at = 0
    for piece in found:
        assert piece.first == at
        assert 0 < piece.rows <= piece.size
        assert piece.size in sizes
        at += piece.rows
    assert at == rows
    assert all(piece.rows == piece.size for piece in found[:-1])


def test_pieces_are_few() -> None:
    assert [piece.size for piece in pieces(600, SIZES)] == [256, 256, 64, 64]
    assert [piece.size for piece in pieces(150, SIZES)] == [256]
    assert [piece.size for piece in pieces(64, SIZES)] == [64]
    assert [piece.size for piece in pieces(65, SIZES)] == [64, 64]


def test_attention_over_a_context_is_causal_attention() -> None:
    generator = torch.Generator().manual_seed(3)
    q = torch.randn(2, 6, 4, 8, generator=generator)
    k, v = (torch.randn(2, 6, 2, 8, generator=generator) for _ in range(2))
    seen = torch.ones(6, 6, dtype=torch.bool).tril().expand(2, -1, -1)
    whole = attend_causal(q, k, v)
    assert (attend_context(q, k, v, seen) - whole).abs().max() < 1e-6
    # The last two positions alone, as a piece.
    assert (attend_context(q[:, 4:], k, v, seen[:, 4:]) - whole[:, 4:]).abs().max() < 1e-6


def test_what_a_stream_before_left_behind_the_prompt_is_not_read() -> None:
    q, k, v = torch.randn(2, 3, 4, 8), torch.randn(2, 6, 2, 8), torch.randn(2, 6, 2, 8)
    seen = torch.arange(6) <= torch.tensor([2, 3, 4])[None, :, None].expand(2, -1, -1)
    clean = attend_context(q, k, v, seen)
    for left in (k, v):
        left[:, 5] = torch.nan
    assert torch.equal(attend_context(q, k, v, seen), clean)


class Both:
    """The same prompt in one and in pieces, in two slots of one model."""

    def __init__(self, folder: Path, spoken: Spoken, sizes: tuple[int, ...]) -> None:
        kind = "base" if spoken.vector else "custom_voice"
        config = model_config(kind, "1b7", folder)
        self.loop = lab.build(config, 11, slots=4)
        self.prompt = lab.prompt_of(spoken, config, full=True)
        weights = random_tensors(decoder_tensors(runner_lab.CODEC), 5)
        decoder = CodecDecoder(runner_lab.CODEC, weights)
        self.codec = Codec(decoder, decoder.arena(4), 25)
        self.fresh = torch.zeros_like(self.loop.table.carry)
        self.long = LongPrompts(self.loop, self.codec, self.fresh, lambda body: body, sizes)

    def whole(self, slot: int) -> "torch.Tensor":
        rows, lengths = embed_prompts([self.prompt], self.loop.talker, self.loop.predictor)
        where = torch.tensor([slot])
        self.loop.table.begin(where, lengths, torch.tensor([7]), torch.tensor([2]))
        hidden: torch.Tensor = self.loop.talker.prefill(rows, lengths, where, self.loop.table.cache)
        return hidden[0]

    def keys(self, slot: int) -> "torch.Tensor":
        cache = self.loop.table.cache
        both = torch.cat((cache.keys[:, slot], cache.values[:, slot]))
        return both[:, : len(self.prompt.rows)]


@pytest.mark.parametrize("sizes", [(16,), (8, 32), (64, 100), (7,)])
@pytest.mark.parametrize("spoken", [LONG, RYAN, CLONED], ids=["long", "short", "cloned"])
def test_pieces_give_what_one_gives(tmp_path: Path, spoken: Spoken, sizes: tuple[int, ...]) -> None:
    both = Both(tmp_path, spoken, sizes)
    # What a former stream left in the slot must not be seen.
    both.loop.table.cache.keys[:, 2] = 3.0
    both.loop.table.cache.values[:, 2] = -3.0
    rows = len(both.prompt.rows)
    assert list(both.long.read(Begun(both.prompt, 2))) == [
        (piece.size, rows - piece.first - piece.rows) for piece in pieces(rows, both.long.sizes)
    ]
    assert (both.fresh[2] - both.whole(1)).abs().max() < TOLERANCE
    assert (both.keys(2) - both.keys(1)).abs().max() < TOLERANCE
    table = both.loop.table
    for state in (table.length, table.made, table.seeds, table.least):
        assert state[2] == state[1]


def test_a_prompt_that_fills_its_slot(tmp_path: Path) -> None:
    """Padding behind the last row has no place of its own any more."""
    spoken = Spoken(text=lab.POSITIONS - 1 - 11, voice="ryan", language="english", seed=6)
    both = Both(tmp_path, spoken, (100,))
    assert len(both.prompt.rows) == lab.POSITIONS - 1
    list(both.long.read(Begun(both.prompt, 2)))
    assert (both.fresh[2] - both.whole(1)).abs().max() < TOLERANCE


def test_the_codec_is_primed_with_the_recording(tmp_path: Path) -> None:
    both = Both(tmp_path, CLONED, (32,))
    list(both.long.read(Begun(both.prompt, 2)))
    assert int(both.codec.arena.positions[2]) == 40


def test_sizes_that_no_slot_holds_are_left_out(tmp_path: Path) -> None:
    assert Both(tmp_path, RYAN, (16, 4_096)).long.sizes == (16,)


def test_running_streams_go_on_between_pieces(tmp_path: Path) -> None:
    """Steps of others in between change nothing, for them or for the prompt."""
    quiet = Both(tmp_path, LONG, (16,))
    expected = quiet.whole(1)
    others = [lab.prompt_of(RYAN, model_config("custom_voice", "1b7", tmp_path), full=True)]
    (alone,) = lab.speak(Both(tmp_path, LONG, (16,)).loop, others, 4, seeds=[5], slots=[0])
    both = Both(tmp_path, LONG, (16,))
    reading = both.long.read(Begun(both.prompt, 2))
    codes = lab.speak(both.loop, others, 1, seeds=[5], slots=[0])[0][:1]
    # ``speak`` has made the second frame already.
    codes.append(both.loop.table.codes[0, 1].tolist())
    for _ in reading:
        if len(codes) < len(alone):
            codes.append(lab.go_on(both.loop, [0]).codes[0].tolist())
    assert codes == alone
    assert (both.fresh[2] - expected).abs().max() < TOLERANCE


def test_two_prompts_take_turns(tmp_path: Path) -> None:
    both = Both(tmp_path, LONG, (16,))
    expected = both.whole(1)
    readings = [both.long.read(Begun(both.prompt, slot)) for slot in (2, 3)]
    while any([next(reading, None) for reading in readings]):
        pass
    for slot in (2, 3):
        assert (both.fresh[slot] - expected).abs().max() < TOLERANCE
        assert (both.keys(slot) - both.keys(1)).abs().max() < TOLERANCE
