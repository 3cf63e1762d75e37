"""Frame steps and prompts as CUDA graphs: one launch each, whatever the number of kernels.

A graph has a fixed batch size and a fixed bound of the context or of the prompt. Smaller batches
are padded with the slot that belongs to nobody.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from playhead.engine.models.qwen3_tts.frames import FrameLoop, Frames
from playhead.engine.models.qwen3_tts.layers import (
    LayerOps,
    attend_slots,
    close_layer,
    enter_layer,
    project,
)
from torch import Tensor

WARM_UPS = 3
MOST_SHAPES = 128
_log = logging.getLogger(__name__)
Key = tuple[int, int]
"""Batch size, and span or prompt rows."""


@dataclass(frozen=True, slots=True)
class _Captured:
    graph: torch.cuda.CUDAGraph
    frames: Frames
    slots: Tensor
    joining: Tensor | None = None
    rows: Tensor | None = None
    lengths: Tensor | None = None


class LoopGraphs:
    """Captured calls of a ``FrameLoop``, in buckets. CUDA only. Calls go to the current stream,
    which should be ``stream``, the one of the captures.

    ``eager`` counts calls for which no graph fits; after warm-up it must not grow.
    """

    def __init__(self, loop: FrameLoop, stream: torch.cuda.Stream | None = None) -> None:
        self.loop = loop
        self.eager = 0
        self._stream = stream or torch.cuda.Stream(loop.table.device)
        self._pool = torch.cuda.graph_pool_handle()
        self._steps: dict[Key, _Captured] = {}
        self._prefills: dict[Key, _Captured] = {}

    def capture_step(self, batch: int, span: int) -> None:
        """Record a bucket of ``FrameLoop.step``. Streams are not touched."""
        slots = self._spare_slots(batch)
        joining = torch.zeros_like(slots)
        graph, frames = self._record(lambda: self.loop.step(slots, joining, span))
        self._steps[batch, span] = _Captured(graph, frames, slots, joining)
        _log.info("captured a step of %d streams over %d positions", batch, span)

    def capture_prefill(self, batch: int, length: int) -> None:
        """Record a bucket of ``FrameLoop.prefill``: prompts of up to ``length`` rows."""
        slots = self._spare_slots(batch)
        table = self.loop.table
        rows = table.carry.new_zeros((batch, length, table.carry.shape[1]))
        lengths = torch.ones_like(slots)
        graph, frames = self._record(lambda: self.loop.prefill(rows, lengths, slots))
        self._prefills[batch, length] = _Captured(graph, frames, slots, None, rows, lengths)
        _log.info("captured prompts: %d of up to %d rows", batch, length)

    def step(self, slots: Sequence[int], joining: Sequence[int], span: int) -> Frames:
        """As ``FrameLoop.step``. The next call of the bucket overwrites what is returned."""
        captured = _fit(self._steps, len(slots), span)
        if captured is None or captured.joining is None:
            self.eager += 1
            where, text = torch.tensor([slots, joining], device=self.loop.table.device)
            return self.loop.step(where, text, span)
        self._set_slots(captured, slots)
        text = torch.tensor(joining).pin_memory()
        captured.joining[: len(joining)].copy_(text, non_blocking=True)
        captured.graph.replay()
        return _first(captured.frames, len(slots))

    def prefill(self, rows: Tensor, lengths: Tensor, slots: Sequence[int]) -> Frames:
        """As ``FrameLoop.prefill``. The next call of the bucket overwrites what is returned."""
        captured = _fit(self._prefills, *rows.shape[:2])
        if captured is None or captured.rows is None or captured.lengths is None:
            self.eager += 1
            where = torch.tensor(slots, device=self.loop.table.device)
            return self.loop.prefill(rows, lengths, where)
        count, length = rows.shape[:2]
        # What lies behind a prompt's end is overwritten before it is read; NaN is not in it.
        captured.rows[:count, :length].copy_(rows)
        captured.lengths.fill_(1)
        captured.lengths[:count].copy_(lengths)
        self._set_slots(captured, slots)
        captured.graph.replay()
        return _first(captured.frames, count)

    def _record(self, call: Callable[[], Frames]) -> tuple[torch.cuda.CUDAGraph, Frames]:
        device = self.loop.table.device
        self._stream.wait_stream(torch.cuda.current_stream(device))
        with torch.inference_mode(), torch.cuda.stream(self._stream):
            for _ in range(WARM_UPS):
                call()
        self._stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with (
            torch.inference_mode(),
            torch.cuda.graph(graph, pool=self._pool, stream=self._stream),
        ):
            frames = call()
        torch.cuda.current_stream(device).wait_stream(self._stream)
        return graph, frames

    def _spare_slots(self, batch: int) -> Tensor:
        table = self.loop.table
        return torch.full((batch,), table.slots, dtype=torch.int64, device=table.device)

    def _set_slots(self, captured: _Captured, slots: Sequence[int]) -> None:
        spare = [self.loop.table.slots] * (len(captured.slots) - len(slots))
        captured.slots.copy_(torch.tensor([*slots, *spare]).pin_memory(), non_blocking=True)


def _fit(buckets: dict[Key, _Captured], batch: int, length: int) -> _Captured | None:
    """The smallest bucket that holds a call, or None."""
    fitting = [key for key in buckets if key[0] >= batch and key[1] >= length]
    return buckets[min(fitting)] if fitting else None


def _first(frames: Frames, count: int) -> Frames:
    return Frames(frames.codes[:count], frames.status[:count], frames.repeats[:count])


def fast_ops(*, compiled: bool, in_place: bool) -> LayerOps:
    """Layer work for CUDA: ``compiled`` fuses what lies between the matrix products, ``in_place``
    reads keys and values where they are."""
    enter, close, first, over = enter_layer, close_layer, project, attend_slots
    if in_place:
        # Needs triton, which only comes with torch for CUDA.
        from playhead.engine.models.qwen3_tts.attention_triton import over_slots

        over = over_slots
    if compiled:
        # One form per shape: beyond the limit torch would quietly run uncompiled.
        torch._dynamo.config.recompile_limit = MOST_SHAPES
        enter = torch.compile(enter_layer, dynamic=False)
        close = torch.compile(close_layer, dynamic=False)
        first = torch.compile(project, dynamic=False)
    return LayerOps(enter, close, first, over_slots=over)


def with_ops(loop: FrameLoop, ops: LayerOps) -> FrameLoop:
    """The same model and slots with other layer work."""
    talker, predictor = replace(loop.talker, ops=ops), replace(loop.predictor, ops=ops)
    return FrameLoop(talker, predictor, loop.table, loop.config, loop.rule, loop.fine_rule)
