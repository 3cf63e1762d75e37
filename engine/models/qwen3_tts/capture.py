"""Recording work of the device as a CUDA graph: one launch, whatever the number of kernels.

A recorded copy between the device and pinned memory is part of the graph, so that the host's part
of a dispatch is to fill in numbers and to launch. Nothing but copies may touch the host in it.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

WARM_UPS = 2
"""Libraries choose algorithms and allocate workspaces at a first call."""


class Replayable(Protocol):
    """What was recorded."""

    def replay(self) -> None:
        """Do it again, on the current stream."""


def record(body: Callable[[], None], stream: torch.cuda.Stream, pool: Any) -> Replayable:
    """``body`` as a graph on ``stream`` that shares the memory of ``pool``. Memory that ``body``
    allocates belongs to the graphs of that pool, and is overwritten by the next replay of any."""
    stream.wait_stream(torch.cuda.current_stream(stream.device))
    with torch.inference_mode(), torch.cuda.stream(stream):
        for _ in range(WARM_UPS):
            body()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool, stream=stream):
            body()
        graph.replay()  # the first replay also uploads the graph
        stream.synchronize()
    replayable: Replayable = graph
    return replayable


def pinned(*shape: int, dtype: torch.dtype) -> Tensor:
    """Memory of the host, zero, that copies reach without a wait. Allocating it may wait for the
    whole device: at the start only."""
    return torch.zeros(shape, dtype=dtype).pin_memory()


def fitting(sizes: Sequence[int], count: int) -> int:
    """The smallest of ``sizes`` (ascending) that holds ``count``; the largest must."""
    return sizes[bisect_left(sizes, count)]
