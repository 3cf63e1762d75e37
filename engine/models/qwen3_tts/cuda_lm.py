"""The LM lane on a CUDA device: prompts and frame steps as graphs on one stream.

A prompt's graph ends with the talker's hidden state, kept in ``LmLane.fresh``; the step's graph
goes on from there for new streams and from a talker position for running ones, so that both share
one pass of the predictor, which costs the most at small batches. All graphs of the lane share
memory: they never overlap.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import NamedTuple

import torch
from playhead.engine.models.qwen3_tts.capture import Replayable, record
from playhead.engine.models.qwen3_tts.codec import Codec
from playhead.engine.models.qwen3_tts.embed import look_up
from playhead.engine.models.qwen3_tts.frames import FrameLoop
from playhead.engine.models.qwen3_tts.long_prompts import LongPrompts
from playhead.engine.models.qwen3_tts.prompt import NONE, Prompt, Row
from playhead.engine.models.qwen3_tts.staging import Staging
from torch import Tensor

MOST_IN_FLIGHT = 8
EMPTY = Row(NONE, NONE)
_log = logging.getLogger(__name__)
Progress = Callable[[str], None]


class Opening(NamedTuple):
    """A new stream: its prompt, its slot, its seed, and codes before which it cannot end."""

    prompt: Prompt
    slot: int
    seed: int
    least: int


class Flight(NamedTuple):
    """Frames that the device was asked for."""

    numbers: Tensor  # pinned, [2, streams]
    done: torch.cuda.Event

    def wait(self) -> tuple[list[int], list[int]]:
        """Status and repeats (see ``Frames``) once the device is done, running before opened."""
        self.done.synchronize()
        status, repeats = self.numbers.tolist()
        return status, repeats


@dataclass(frozen=True, slots=True)
class _Answer:
    """Pinned memory of one launch, both ways; in use until the device is done."""

    asked: Tensor
    numbers: Tensor
    done: torch.cuda.Event

    @classmethod
    def of(cls, most: int) -> "_Answer":
        asked, numbers = (torch.zeros(2 * most, dtype=torch.int64).pin_memory() for _ in range(2))
        return cls(asked, numbers, torch.cuda.Event())


@dataclass(frozen=True, slots=True)
class LmBuckets:
    """What is captured: steps by batch size, steps of new streams alone, and prompts as
    (batch, rows)."""

    steps: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
    firsts: tuple[int, ...] = (1, 2, 4)
    prompts: tuple[tuple[int, int], ...] = (
        (1, 32), (2, 32), (4, 32), (8, 32),
        (1, 64), (2, 64), (4, 64), (8, 64),
        (1, 128), (4, 128), (1, 256), (2, 256),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Graph:
    graph: Replayable
    inputs: Tensor  # int64 [numbers per stream, batch]
    ids: Tensor | None = None  # of prompts: [batch, rows, 2]
    seen: Tensor | None = None  # of steps: status and repeats, [2, batch]


class LmLane:
    """Everything the LM lane runs. One thread at a time, always the same stream.

    Everything fits a graph: prompts that none holds whole are read in pieces (``read``), the rest
    together (``open``).
    """

    def __init__(
        self,
        loop: FrameLoop,
        codec: Codec,
        buckets: LmBuckets,
        stream: torch.cuda.Stream,
        progress: Progress,
    ) -> None:
        self.loop, self.codec, self.stream = loop, codec, stream
        table = loop.table
        self.most = max(buckets.steps)
        self.fresh = torch.zeros_like(table.carry)
        self._answers = cycle([_Answer.of(self.most) for _ in range(MOST_IN_FLIGHT)])
        self._pool = torch.cuda.graph_pool_handle()
        prompts = [p for p in buckets.prompts if p[1] <= table.positions]
        # Ids of all rows, and before them four numbers per prompt: fewer than a prompt has ids.
        most = max((2 * batch * max(rows, 2) for batch, rows in prompts), default=0)
        self._staging = Staging(most, table.device)
        self._steps: dict[int, _Graph] = {}
        self._firsts: dict[int, _Graph] = {}
        self._prompts: dict[tuple[int, int], _Graph] = {}
        for batch in sorted(buckets.steps, reverse=True):
            self._steps[batch] = self._capture_step(batch, alone=False)
            progress(f"step of {batch} streams")
        for batch in buckets.firsts:
            self._firsts[batch] = self._capture_step(batch, alone=True)
        for batch, rows in sorted(prompts, reverse=True):
            self._prompts[batch, rows] = self._capture_prompt(batch, rows)
        progress(f"{len(self._firsts)} first steps, {len(self._prompts)} prompt sizes")
        with torch.inference_mode():
            self._long = LongPrompts(loop, codec, self.fresh, self._repeatable)
        progress(f"{len(self._long.sizes)} sizes of pieces of longer prompts")

    def holds(self, prompt: Prompt) -> bool:
        """Whether a graph reads ``prompt`` whole."""
        return prompt.clone is None and self._fit(1, len(prompt.rows)) is not None

    def read(self, opening: Opening) -> Iterator[tuple[int, int]]:
        """Read the prompt of a new stream in pieces: see ``LongPrompts.read``. Current stream: the
        lane's, whenever a piece is asked for."""
        return self._long.read(opening)

    def open(self, openings: Sequence[Opening]) -> None:
        """Read the prompts of new streams, which are held whole. Current stream: the lane's."""
        ready = sorted(openings, key=lambda opening: len(opening.prompt.rows))
        while ready:
            longest = len(ready[0].prompt.rows)
            size = self._widest(longest)
            group = [o for o in ready if len(o.prompt.rows) <= size[1]][: size[0]]
            ready = ready[len(group) :]
            fitting = self._fit(len(group), size[1])
            assert fitting is not None
            self._replay_prompts(fitting, group)

    def launch(self, running: Sequence[int], opened: Sequence[int]) -> "Flight":
        """A frame of every slot of ``running`` (talker position first) and ``opened`` (just read),
        behind what was launched before. Current stream: the lane's. At most ``MOST_IN_FLIGHT``
        launches may be unfinished."""
        count = len(running) + len(opened)
        alone = not running and count <= max(self._firsts, default=0)
        graphs = self._firsts if alone else self._steps
        size = min(size for size in graphs if size >= count)
        graph, spare = graphs[size], self.loop.table.slots
        answer = next(self._answers)
        asked = answer.asked[: 2 * size]
        # The padding counts as new: its context does not grow.
        asked.numpy()[:] = (
            [*running, *opened]
            + [spare] * (size - count)
            + [0] * len(running)
            + [1] * (size - len(running))
        )
        graph.inputs.copy_(asked.view(2, size), non_blocking=True)
        graph.graph.replay()
        assert graph.seen is not None
        numbers = answer.numbers[: 2 * size].view(2, size)
        numbers.copy_(graph.seen, non_blocking=True)
        answer.done.record(self.stream)
        return Flight(numbers[:, :count], answer.done)

    # -- replaying --------------------------------------------------------------------------

    def _fit(self, batch: int, rows: int) -> tuple[int, int] | None:
        fitting = [key for key in self._prompts if key[0] >= batch and key[1] >= rows]
        return min(fitting, key=lambda key: key[0] * key[1], default=None)

    def _widest(self, rows: int) -> tuple[int, int]:
        """The shortest prompt size that holds ``rows``, with the most prompts at once."""
        least = min(length for _, length in self._prompts if length >= rows)
        return max(key for key in self._prompts if key[1] == least)

    def _replay_prompts(self, key: tuple[int, int], group: Sequence[Opening]) -> None:
        batch, length = key
        graph, spare = self._prompts[key], self.loop.table.slots
        missing = batch - len(group)
        ids = [cell for o in group for row in _padded(o.prompt.rows, length) for cell in row]
        ids += [NONE] * (2 * length * missing)
        assert graph.ids is not None
        self._staging.send(graph.ids, ids)
        numbers = [
            *(o.slot for o in group), *[spare] * missing,
            *(len(o.prompt.rows) for o in group), *[1] * missing,
            *(o.seed for o in group), *[0] * missing,
            *(o.least for o in group), *[0] * missing,
        ]  # fmt: skip
        self._staging.send(graph.inputs, numbers)
        graph.graph.replay()

    # -- capturing --------------------------------------------------------------------------

    def _capture_step(self, batch: int, *, alone: bool) -> _Graph:
        device, spare = self.loop.table.device, self.loop.table.slots
        inputs = torch.full((2, batch), spare, dtype=torch.int64, device=device)
        inputs[1] = 1
        seen = torch.zeros_like(inputs)
        body = self._first if alone else self._mixed
        return _Graph(self._record(lambda: body(inputs, seen)), inputs, seen=seen)

    def _capture_prompt(self, batch: int, rows: int) -> _Graph:
        device, spare = self.loop.table.device, self.loop.table.slots
        inputs = torch.ones((4, batch), dtype=torch.int64, device=device)
        inputs[0] = spare
        ids = torch.full((batch, rows, 2), NONE, dtype=torch.int64, device=device)
        return _Graph(self._record(lambda: self._read(inputs, ids)), inputs, ids)

    def _record(self, body: Callable[[], None]) -> Replayable:
        return record(body, self.stream, self._pool)

    def _repeatable(self, body: Callable[[], None]) -> Callable[[], None]:
        return self._record(body).replay

    def _mixed(self, inputs: Tensor, seen: Tensor) -> None:
        """A talker position and a frame of running streams, a frame of new ones. The position of
        a new stream is computed in vain: it writes behind the context, which does not grow."""
        table, loop, slots = self.loop.table, self.loop, inputs[0]
        at = table.made[slots] - 1
        text = loop.talker.text_table[table.text[slots, at.clamp(0, table.positions - 1)]]
        span = table.positions
        positions = table.length[slots].clamp(max=span - 1)
        hidden = loop.talker.step(table.carry[slots] + text, slots, positions, table.cache, span)
        table.length[slots] = positions + 1 - inputs[1]
        new = inputs[1].bool()[:, None]
        self._finish(torch.where(new, self.fresh[slots], hidden), slots, seen)

    def _first(self, inputs: Tensor, seen: Tensor) -> None:
        self._finish(self.fresh[inputs[0]], inputs[0], seen)

    def _finish(self, hidden: Tensor, slots: Tensor, seen: Tensor) -> None:
        frames = self.loop._finish(hidden, slots)
        seen[0], seen[1] = frames.status, frames.repeats

    def _read(self, inputs: Tensor, ids: Tensor) -> None:
        loop, (slots, lengths, seeds, least) = self.loop, inputs.unbind()
        rows = look_up(loop.talker.text_table, ids[..., 0])
        rows = rows + look_up(loop.talker.codec_table, ids[..., 1])
        loop.table.begin(slots, lengths, seeds, least)
        self.codec.reset(slots)
        ops = loop.talker.ops
        self.fresh[slots] = loop.talker.prefill(rows, lengths, slots, loop.table.cache, ops)


def _padded(rows: Sequence[Row], length: int) -> list[Row]:
    return [*rows, *[EMPTY] * (length - len(rows))]
