"""Frame steps as CUDA graphs: one launch per step, whatever the number of kernels.

A graph has a fixed batch size and a fixed bound of the context. Smaller batches are padded with
the slot that belongs to nobody.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from playhead.engine.models.qwen3_tts.frames import FrameLoop, Frames
from playhead.engine.models.qwen3_tts.layers import LayerOps, close_layer, enter_layer
from torch import Tensor

WARM_UPS = 3
_log = logging.getLogger(__name__)
Key = tuple[int, int]
"""Batch size and span."""


@dataclass(frozen=True, slots=True)
class _Captured:
    graph: torch.cuda.CUDAGraph
    slots: Tensor
    frames: Frames


class StepGraphs:
    """Captured ``FrameLoop.step`` for buckets of batch sizes and spans. CUDA only.

    ``eager`` counts steps for which no graph fits; after warm-up it must not grow.
    """

    def __init__(self, loop: FrameLoop) -> None:
        self._loop = loop
        self._captured: dict[Key, _Captured] = {}
        self._pool = torch.cuda.graph_pool_handle()
        self.eager = 0

    def capture(self, batch: int, span: int) -> None:
        """Record a bucket. The spare slot's content is used up; streams are not touched."""
        table = self._loop.table
        slots = torch.full((batch,), table.slots, dtype=torch.int64, device=table.device)
        side = torch.cuda.Stream(table.device)
        side.wait_stream(torch.cuda.current_stream(table.device))
        with torch.inference_mode(), torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                self._loop.step(slots, span)
        torch.cuda.current_stream(table.device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.inference_mode(), torch.cuda.graph(graph, pool=self._pool):
            frames = self._loop.step(slots, span)
        self._captured[batch, span] = _Captured(graph, slots, frames)
        _log.info("captured a step of %d streams over %d positions", batch, span)

    def fit(self, batch: int, span: int) -> Key | None:
        """The smallest bucket that holds ``batch`` streams with contexts below ``span``."""
        fitting = [key for key in self._captured if key[0] >= batch and key[1] >= span]
        return min(fitting, default=None)

    def step(self, slots: Sequence[int], span: int) -> Frames:
        """As ``FrameLoop.step``. What is returned is overwritten by the next step of the bucket."""
        table = self._loop.table
        key = self.fit(len(slots), span)
        if key is None:
            self.eager += 1
            return self._loop.step(torch.tensor(slots, device=table.device), span)
        captured = self._captured[key]
        padded = [*slots, *[table.slots] * (key[0] - len(slots))]
        captured.slots.copy_(torch.tensor(padded).pin_memory(), non_blocking=True)
        captured.graph.replay()
        count, frames = len(slots), captured.frames
        return Frames(frames.codes[:count], frames.status[:count], frames.repeats[:count])


def fast_ops(*, compiled: bool, in_place: bool) -> LayerOps:
    """Layer work for CUDA: ``compiled`` fuses what lies between the matrix products, ``in_place``
    reads keys and values where they are."""
    from playhead.engine.models.qwen3_tts.layers import attend_slots

    enter, close, over_slots = enter_layer, close_layer, attend_slots
    if in_place:
        from playhead.engine.models.qwen3_tts.slot_attention import attend_slots_in_place

        over_slots = attend_slots_in_place
    if compiled:
        enter = torch.compile(enter_layer, dynamic=False)
        close = torch.compile(close_layer, dynamic=False)
    return LayerOps(enter, close, over_slots)


def with_ops(loop: FrameLoop, ops: LayerOps) -> FrameLoop:
    """The same model and slots with other layer work."""
    talker, predictor = replace(loop.talker, ops=ops), replace(loop.predictor, ops=ops)
    return FrameLoop(talker, predictor, loop.table, loop.config, loop.rule, loop.fine_rule)
