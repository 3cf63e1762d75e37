"""Who runs the model's calls: directly, or as CUDA graphs on streams of their own."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from typing import Protocol

import torch
from playhead.engine.models.qwen3_tts.codec import Codec
from playhead.engine.models.qwen3_tts.codec_graphs import CodecGraphs
from playhead.engine.models.qwen3_tts.frames import FrameLoop, Frames
from playhead.engine.models.qwen3_tts.graphs import LoopGraphs
from playhead.engine.types import Lane
from torch import Tensor

CODEC_LANES = (Lane.BACKGROUND, Lane.URGENT)
HIGH_PRIORITY = -1
"""Above the usual 0; the runtime clamps to what the device has."""


class Execution(Protocol):
    """Calls of the model, each inside the ``on`` of its lane."""

    def on(self, lane: Lane) -> AbstractContextManager[object]:
        """Work of ``lane``, one at a time where lanes have streams of their own."""

    def prefill(self, rows: Tensor, lengths: Tensor, slots: Sequence[int]) -> Frames:
        """See ``FrameLoop.prefill``. Results may be overwritten by the next call."""

    def step(self, slots: Sequence[int], joining: Sequence[int], span: int) -> Frames:
        """See ``FrameLoop.step``. Results may be overwritten by the next call."""

    def decode(self, lane: Lane, codes: Tensor, slots: Tensor) -> Tensor:
        """See ``Codec.decode``. Results may be overwritten by the lane's next call."""


@dataclass(frozen=True, slots=True)
class Direct:
    """Call by call, for the CPU and for comparison."""

    loop: FrameLoop
    codec: Codec

    def on(self, lane: Lane) -> AbstractContextManager[object]:
        """See :class:`Execution`. Lanes work on different slots: nothing to keep apart."""
        return nullcontext(lane)

    def prefill(self, rows: Tensor, lengths: Tensor, slots: Sequence[int]) -> Frames:
        """See :class:`Execution`."""
        return self.loop.prefill(rows, lengths, self._column(slots))

    def step(self, slots: Sequence[int], joining: Sequence[int], span: int) -> Frames:
        """See :class:`Execution`."""
        return self.loop.step(self._column(slots), self._column(joining), span)

    def decode(self, lane: Lane, codes: Tensor, slots: Tensor) -> Tensor:
        """See :class:`Execution`."""
        return self.codec.decode(codes, slots)

    def _column(self, slots: Sequence[int]) -> Tensor:
        return torch.tensor(slots, dtype=torch.int64, device=self.loop.table.device)


@dataclass(frozen=True, slots=True)
class Buckets:
    """What is captured. Steps: every batch size over the whole context. Prompts: every pair of
    ``prompt_batches`` and ``prompt_rows``; others run call by call. Chunks: every pair of
    ``chunk_batches`` and ``chunk_frames``; larger batches are divided."""

    batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    prompt_batches: tuple[int, ...] = (1, 2, 4, 8)
    prompt_rows: tuple[int, ...] = (16, 32, 64, 128)
    chunk_batches: tuple[int, ...] = (1, 4, 16, 64)
    chunk_frames: tuple[int, ...] = (1, 2, 4, 8, 16, 25)

    def up_to(self, slots: int) -> tuple[int, ...]:
        """Batch sizes that ``slots`` streams can need."""
        needed = [size for size in self.batches if size < slots]
        larger = [size for size in self.batches if size >= slots]
        return tuple(needed + larger[:1])


class Graphed:
    """CUDA graphs on one stream per lane; captures everything when made (seconds to minutes).

    ``streams``: a stream per lane, for instance of green contexts; without, plain ones, the urgent
    lane's with priority. Graphs keep to the stream they were captured on.
    """

    def __init__(
        self,
        loop: FrameLoop,
        codec: Codec,
        buckets: Buckets,
        streams: Mapping[Lane, torch.cuda.Stream] | None = None,
    ) -> None:
        device = loop.table.device
        self._streams = dict(streams or _plain_streams(device))
        self._locks = {lane: threading.Lock() for lane in Lane}
        self._rows = max(buckets.chunk_batches)
        self._prompts = max(buckets.prompt_batches)
        self.graphs = LoopGraphs(loop, self._streams[Lane.LM])
        for batch in reversed(buckets.up_to(loop.table.slots)):
            self.graphs.capture_step(batch, loop.table.positions)
        for batch in buckets.prompt_batches:
            for rows in buckets.prompt_rows:
                self.graphs.capture_prefill(batch, min(rows, loop.table.positions))
        self._codecs = {
            lane: CodecGraphs(
                codec, buckets.chunk_batches, buckets.chunk_frames, stream=self._streams[lane]
            )
            for lane in CODEC_LANES
        }
        torch.cuda.synchronize(device)

    def on(self, lane: Lane) -> AbstractContextManager[object]:
        """See :class:`Execution`."""
        stack = ExitStack()
        stack.enter_context(self._locks[lane])
        stack.enter_context(torch.cuda.stream(self._streams[lane]))
        return stack

    def prefill(self, rows: Tensor, lengths: Tensor, slots: Sequence[int]) -> Frames:
        """See :class:`Execution`."""
        parts: list[Frames] = []
        for at in range(0, len(slots), self._prompts):
            end = at + self._prompts
            made = self.graphs.prefill(rows[at:end], lengths[at:end], slots[at:end])
            parts.append(Frames(made.codes.clone(), made.status.clone(), made.repeats.clone()))
        return Frames(
            torch.cat([part.codes for part in parts]),
            torch.cat([part.status for part in parts]),
            torch.cat([part.repeats for part in parts]),
        )

    def step(self, slots: Sequence[int], joining: Sequence[int], span: int) -> Frames:
        """See :class:`Execution`."""
        return self.graphs.step(slots, joining, self.graphs.loop.table.positions)

    def decode(self, lane: Lane, codes: Tensor, slots: Tensor) -> Tensor:
        """See :class:`Execution`."""
        graphs = self._codecs[lane]
        if len(slots) <= self._rows:
            return graphs.decode(codes, slots)
        parts = zip(codes.split(self._rows), slots.split(self._rows), strict=True)
        return torch.cat([graphs.decode(*part).clone() for part in parts])


def _plain_streams(device: torch.device) -> dict[Lane, torch.cuda.Stream]:
    return {
        Lane.LM: torch.cuda.Stream(device),
        Lane.BACKGROUND: torch.cuda.Stream(device),
        Lane.URGENT: torch.cuda.Stream(device, priority=HIGH_PRIORITY),
    }
