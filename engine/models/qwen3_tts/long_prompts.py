"""Prompts of any length in pieces of a few fixed sizes, so that a graph fits each of them.

A piece attends to everything its slot already holds and to itself. Pieces are also places to stop:
between two of them running streams can have their step, so that a prompt of a thousand rows (a
cloned voice with a long recording, a long text) delays nobody by more than one piece.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import torch
from playhead.engine.models.qwen3_tts.calls import counted
from playhead.engine.models.qwen3_tts.codec import Codec
from playhead.engine.models.qwen3_tts.embed import embed_prompts
from playhead.engine.models.qwen3_tts.frames import FrameLoop
from playhead.engine.models.qwen3_tts.layers import LayerOps, rms_norm
from playhead.engine.models.qwen3_tts.prompt import Prompt
from playhead.engine.models.qwen3_tts.talker import Talker
from torch import Tensor
from torch.nn import functional as F

SIZES = (64, 256)
"""Rows of a piece: prompts that are short need none of this."""
Record = Callable[[Callable[[], None]], Callable[[], None]]
"""Makes a call without arguments repeatable: captures it, or gives it back as it is."""


class Opening(Protocol):
    """A new stream: its prompt, its slot, its seed, and codes before which it cannot end."""

    @property
    def prompt(self) -> Prompt: ...
    @property
    def slot(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def least(self) -> int: ...


class Piece(NamedTuple):
    """``rows`` of a prompt from ``first`` on, in a graph for ``size`` of them."""

    size: int
    first: int
    rows: int


def pieces(rows: int, sizes: Sequence[int]) -> list[Piece]:
    """A prompt of ``rows`` divided: as many of the largest size as there are, and for what is left
    the size with the least padding, at most two of them."""
    ordered = sorted(sizes)
    found: list[Piece] = []
    first = 0
    while first < rows:
        left = rows - first
        size = next((size for size in ordered if size >= left), ordered[-1])
        smaller = [one for one in ordered if one < left < size and 2 * one >= left]
        if smaller and 2 * smaller[-1] < size:
            size = smaller[-1]
        found.append(Piece(size, first, min(size, left)))
        first += size
    return found


@counted("pieces")
def extend(
    talker: Talker, rows: Tensor, first: Tensor, slots: Tensor, cache_span: int, context: "Context"
) -> Tensor:
    """Read ``rows`` [N, T, hidden] into ``slots`` int64 [N] at positions ``first`` [N] and after;
    ``cache_span``: positions of a slot. Returns hidden states [N, T, hidden].

    Rows of padding come last. They write behind the prompt, where nothing looks before a later
    step has overwritten them, or at the slot's last position, which no prompt reaches.
    """
    shape, ops, cache = talker.stack.shape, context.ops, context.loop.table.cache
    steps = torch.arange(rows.shape[1], device=rows.device)
    positions = (first[:, None] + steps).clamp(max=cache_span - 1)
    cos, sin = talker.rope.at(positions)
    seen = torch.arange(cache_span, device=rows.device) <= positions[..., None]
    x, where = rows, slots[:, None]
    for index, (entry, leave) in enumerate(talker.stack.layers):
        q, k, v = ops.enter(x, entry, cos, sin, shape.kv_heads, shape.eps)
        keys, values = cache.keys[index], cache.values[index]
        keys[where, positions] = k
        values[where, positions] = v
        x = ops.close(x, attend_context(q, keys[slots], values[slots], seen), leave, shape.eps)
    return rms_norm(x, talker.stack.norm, shape.eps)


def attend_context(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    """Grouped-query attention of several positions to a context: ``q`` [N, T, heads, head_dim],
    ``k`` and ``v`` [N, S, kv_heads, head_dim], ``seen`` bool [N, T, S]. Returns
    [N, T, heads * head_dim]. Queries that share a key head stand as more query positions. What
    nobody sees is cleared: a stream before that came to nothing may have left NaN there, against
    which no mask helps."""
    unseen = ~seen.any(1)[..., None, None]
    k, v = k.masked_fill(unseen, 0.0), v.masked_fill(unseen, 0.0)
    count, length, heads, width = q.shape
    groups = heads // k.shape[2]
    folded = q.unflatten(2, (-1, groups)).permute(0, 2, 3, 1, 4).flatten(2, 3)
    mask = seen[:, None].expand(-1, groups, -1, -1).reshape(count, 1, groups * length, -1)
    out = F.scaled_dot_product_attention(
        folded, k.transpose(1, 2), v.transpose(1, 2), attn_mask=mask
    )
    out = out.unflatten(2, (groups, length)).permute(0, 3, 1, 2, 4)
    return out.reshape(count, length, heads * width)


class Context(NamedTuple):
    """Where pieces are read: the loop whose slots they fill, and who does a layer's work."""

    loop: FrameLoop
    ops: LayerOps


class _Graph(NamedTuple):
    """``numbers`` int64 [3, 1]: slot, first position, last row of the piece that is real."""

    rows: Tensor
    numbers: Tensor
    replay: Callable[[], None]


class LongPrompts:
    """Reads one prompt at a time; the talker's hidden state after it goes to ``fresh`` [slots + 1,
    hidden]. One thread, always the same stream. Made and used in inference mode."""

    def __init__(
        self,
        loop: FrameLoop,
        codec: Codec,
        fresh: Tensor,
        record: Record,
        sizes: Sequence[int] = SIZES,
    ) -> None:
        self._context, self._codec, self._fresh = Context(loop, loop.talker.ops), codec, fresh
        self.sizes = tuple(size for size in sorted(sizes) if size < loop.table.positions)
        self._graphs = {size: self._capture(size, record) for size in reversed(self.sizes)}

    def read(self, opening: Opening) -> Iterator[tuple[int, int]]:
        """Begin a stream; after each piece gives the rows that it took, padding included, and how
        many are left. In between, steps of other streams and pieces of other prompts may run."""
        loop, prompt = self._context.loop, opening.prompt
        rows, lengths = embed_prompts([prompt], loop.talker, loop.predictor)
        slots, seeds, least = (
            torch.tensor([value], dtype=torch.int64).to(rows.device, non_blocking=True)
            for value in (opening.slot, opening.seed, opening.least)
        )
        loop.table.begin(slots, lengths, seeds, least)
        self._codec.reset(slots)
        if prompt.clone is not None and prompt.clone.codes is not None:
            self._codec.prime(prompt.clone.codes, slots)
        for piece in pieces(len(prompt.rows), self.sizes):
            graph = self._graphs[piece.size]
            graph.rows[:, : piece.rows].copy_(rows[:, piece.first : piece.first + piece.rows])
            numbers = torch.tensor([[opening.slot], [piece.first], [piece.rows - 1]])
            graph.numbers.copy_(numbers, non_blocking=True)
            graph.replay()
            yield piece.size, len(prompt.rows) - piece.first - piece.rows

    def _capture(self, size: int, record: Record) -> _Graph:
        table, talker = self._context.loop.table, self._context.loop.talker
        hidden = talker.codec_table.shape[1]
        rows = torch.zeros((1, size, hidden), dtype=talker.codec_table.dtype, device=table.device)
        numbers = torch.zeros((3, 1), dtype=torch.int64, device=table.device)
        numbers[0] = table.slots

        def body() -> None:
            slot, first, last = numbers.unbind()
            made = extend(talker, rows, first, slot, table.positions, self._context)
            self._fresh[slot] = made[:, last].squeeze(1)

        return _Graph(rows, numbers, record(body))
