"""The LM lane on a CUDA device: prompts and frame steps as graphs on one stream.

A prompt's graph ends with the talker's hidden state, kept in ``LmLane.fresh``; the step's graph
goes on from there for new streams and from a talker position for running ones, so that both share
one pass of the predictor, which costs the most at small batches. All graphs of the lane share
memory: they never overlap.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, cycle
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from playhead.engine.models.qwen3_tts.capture import Replayable, fitting, pinned, record
from playhead.engine.models.qwen3_tts.codec import Codec
from playhead.engine.models.qwen3_tts.counts import Ints
from playhead.engine.models.qwen3_tts.embed import look_up
from playhead.engine.models.qwen3_tts.frames import FrameLoop
from playhead.engine.models.qwen3_tts.long_prompts import LongPrompts
from playhead.engine.models.qwen3_tts.prompt import NONE, Prompt
from playhead.engine.models.qwen3_tts.staging import Staging
from torch import Tensor

MOST_IN_FLIGHT = 8
_log = logging.getLogger(__name__)
Progress = Callable[[str], None]


class Opening(NamedTuple):
    """A new stream: its prompt, its slot, its seed, and codes before which it cannot end."""

    prompt: Prompt
    slot: int
    seed: int
    least: int


class Flight(NamedTuple):
    """Frames that the device was asked for. ``numbers`` int64 [2, streams]: status and repeats (see
    ``Frames``), running before opened, there when ``done``; in pinned memory that a later launch
    uses again (``MOST_IN_FLIGHT``)."""

    numbers: Ints
    done: torch.cuda.Event


class _Sheet(NamedTuple):
    """Pinned memory of one launch of one size, both ways, each as a tensor and as an array:
    ``asked`` int64 [3, size]: slots, whether new, the text id that joins the latest frame;
    ``seen`` int64 [2, size]."""

    asked: Tensor
    asked_host: Ints
    seen: Tensor
    seen_host: Ints


class _Turn:
    """Memory of one launch; in use until the device is done."""

    def __init__(self, sizes: Collection[int]) -> None:
        self.done = torch.cuda.Event()
        most = max(sizes)
        asked, seen = pinned(3 * most, dtype=torch.int64), pinned(2 * most, dtype=torch.int64)
        self.sheets: dict[int, _Sheet] = {}
        for size in sizes:
            ask, see = asked[: 3 * size].view(3, size), seen[: 2 * size].view(2, size)
            self.sheets[size] = _Sheet(ask, ask.numpy(), see, see.numpy())


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
class _Step:
    graph: Replayable
    inputs: Tensor  # int64 [3, batch], see ``_Sheet``
    seen: Tensor  # int64 [2, batch]


class _PromptGraph(NamedTuple):
    graph: Replayable
    asked: Tensor  # int64, the numbers and then the ids
    inputs: Tensor  # its first part as [4, batch]: slots, rows, seeds, codes before an end
    ids: Tensor  # the rest as [batch, rows, 2]


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
        self._step_sizes, self._first_sizes = sorted(buckets.steps), sorted(buckets.firsts)
        self._most_first = max(buckets.firsts, default=0)
        sizes = {*buckets.steps, *buckets.firsts}
        self._turns = cycle([_Turn(sizes) for _ in range(MOST_IN_FLIGHT)])
        self._pool = torch.cuda.graph_pool_handle()
        prompts = [p for p in buckets.prompts if p[1] <= table.positions]
        most = max((_numbers(*size) for size in prompts), default=0)
        self._staging = Staging(most, table.device)
        self._steps: dict[int, _Step] = {}
        self._firsts: dict[int, _Step] = {}
        self._prompts: dict[tuple[int, int], _PromptGraph] = {}
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

    def launch(self, slots: Ints, running: int, joining: npt.NDArray[np.int32]) -> Flight:
        """A frame of every slot, behind what was launched before: of the first ``running`` with a
        talker position first, which the text id of ``joining`` joins; the others were just read.
        Current stream: the lane's. At most ``MOST_IN_FLIGHT`` launches may be unfinished.

        Few calls into torch: each gives up the interpreter and queues for it again.
        """
        count = len(slots)
        alone = not running and count <= self._most_first
        graphs = self._firsts if alone else self._steps
        size = fitting(self._first_sizes if alone else self._step_sizes, count)
        graph, turn = graphs[size], next(self._turns)
        asked, host, seen, seen_host = turn.sheets[size]
        # The padding counts as new: its context does not grow.
        host[0, :count] = slots
        host[0, count:] = self.loop.table.slots
        host[1, :running] = 0
        host[1, running:] = 1
        host[2, :count] = joining
        graph.inputs.copy_(asked, non_blocking=True)
        graph.graph.replay()
        seen.copy_(graph.seen, non_blocking=True)
        turn.done.record(self.stream)
        return Flight(seen_host[:, :count], turn.done)

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
        graph = self._prompts[key]
        numbers = np.empty(_numbers(batch, length), np.int64)
        head = numbers[: 4 * batch].reshape(4, batch)
        head[:] = [[self.loop.table.slots], [1], [0], [0]]
        ids = numbers[4 * batch :].reshape(batch, length, 2)
        ids[:] = NONE
        for place, opening in enumerate(group):
            rows = opening.prompt.rows
            head[:, place] = opening.slot, len(rows), opening.seed, opening.least
            # One by one: an array of tuples takes four times as long.
            cells = np.fromiter(chain.from_iterable(rows), np.int64, 2 * len(rows))
            ids[place, : len(rows)] = cells.reshape(-1, 2)
        self._staging.send(graph.asked, numbers)
        graph.graph.replay()

    # -- capturing --------------------------------------------------------------------------

    def _capture_step(self, batch: int, *, alone: bool) -> _Step:
        device, spare = self.loop.table.device, self.loop.table.slots
        inputs = torch.zeros((3, batch), dtype=torch.int64, device=device)
        inputs[0], inputs[1] = spare, 1
        seen = torch.zeros((2, batch), dtype=torch.int64, device=device)
        body = self._first if alone else self._mixed
        return _Step(self._record(lambda: body(inputs, seen)), inputs, seen)

    def _capture_prompt(self, batch: int, rows: int) -> _PromptGraph:
        device, spare = self.loop.table.device, self.loop.table.slots
        asked = torch.full((_numbers(batch, rows),), NONE, dtype=torch.int64, device=device)
        inputs, ids = asked[: 4 * batch].view(4, batch), asked[4 * batch :].view(batch, rows, 2)
        inputs.fill_(1)
        inputs[0] = spare
        graph = self._record(lambda: self._read(inputs, ids))
        return _PromptGraph(graph, asked, inputs, ids)

    def _record(self, body: Callable[[], None]) -> Replayable:
        return record(body, self.stream, self._pool)

    def _repeatable(self, body: Callable[[], None]) -> Callable[[], None]:
        return self._record(body).replay

    def _mixed(self, inputs: Tensor, seen: Tensor) -> None:
        """A talker position and a frame of running streams, a frame of new ones. The position of
        a new stream is computed in vain: it writes behind the context, which does not grow."""
        table, loop, slots = self.loop.table, self.loop, inputs[0]
        text = loop.talker.text_table[inputs[2]]
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


def _numbers(batch: int, rows: int) -> int:
    """Of so many prompts: four each, and two ids per row."""
    return batch * (4 + 2 * rows)
