"""CUDA graphs of the codec decoder, one per (batch, frames) bucket.

A lane owns a set of graphs, captured on its stream and replayed on it; a graph captured on a green
context's stream keeps to that partition. Graphs of one lane share memory, as they never overlap.
Lanes share the decoder's weights and its arena: they work on different slots at any time.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from playhead.engine.models.qwen3_tts.codec import Codec

WARM_UPS = 2  # libraries choose algorithms and allocate workspaces at a first call

Progress = Callable[[int, int], None]


class CodecGraph:
    """One bucket: static inputs ``codes`` [B, quantizers, T] and ``slots`` [B] (all spare), and
    the output ``pcm`` float32 [B, T * frame_samples], within -1..1."""

    def __init__(
        self, codec: Codec, batch: int, frames: int, stream: torch.cuda.Stream, pool: Any
    ) -> None:
        device = codec.decoder.device
        quantizers = codec.decoder.config.quantizers
        self.codes = torch.zeros(batch, quantizers, frames, dtype=torch.int64, device=device)
        self.slots = torch.full((batch,), codec.arena.spare, dtype=torch.int64, device=device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                codec.decode(self.codes, self.slots)
        stream.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool=pool, stream=stream):
            self.pcm = codec.decode(self.codes, self.slots)

    def replay(self) -> None:
        """Decode once, on the current stream."""
        self._graph.replay()


class CodecGraphs:
    """Every bucket of a lane. Calls and replays go to the stream that is current."""

    def __init__(
        self,
        codec: Codec,
        batches: Sequence[int],
        frames: Sequence[int],
        *,
        stream: torch.cuda.Stream | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Capture all buckets, the largest first. ``progress`` hears (captured, of)."""
        if max(frames) > codec.max_frames:
            raise ValueError(
                f"chunks of {max(frames)} frames do not fit an arena made for {codec.max_frames}"
            )
        self.codec = codec
        self.batches = sorted(batches)
        self.frames = sorted(frames)
        # Without trying them, cuDNN takes convolutions up to fifty times slower at some sizes.
        torch.backends.cudnn.benchmark = True
        stream = stream or torch.cuda.Stream(codec.decoder.device)
        pool = torch.cuda.graph_pool_handle()
        buckets = [(rows, size) for size in reversed(self.frames) for rows in self.batches[::-1]]
        self._graphs: dict[tuple[int, int], CodecGraph] = {}
        for count, (rows, size) in enumerate(buckets, 1):
            self._graphs[rows, size] = CodecGraph(codec, rows, size, stream, pool)
            if progress is not None:
                progress(count, len(buckets))

    def bucket(self, rows: int, frames: int) -> CodecGraph:
        """The graph for a batch. Raises ``ValueError`` when none fits: there is no slow path."""
        if frames not in self.frames:
            raise ValueError(f"no graph for chunks of {frames} frames; there are {self.frames}")
        if not 0 < rows <= self.batches[-1]:
            raise ValueError(f"no graph for {rows} rows; there are {self.batches}")
        batch = next(size for size in self.batches if size >= rows)
        return self._graphs[batch, frames]

    def decode(self, codes: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """Continue the streams in ``slots`` [N] by codes [N, quantizers, T].

        Returns float32 [N, T * frame_samples] within -1..1 on the device, overwritten by the next
        call of this set. Inputs may be on the host (pinned, to be copied without a wait).
        """
        rows, _, frames = codes.shape
        graph = self.bucket(rows, frames)
        graph.codes[:rows].copy_(codes, non_blocking=True)
        graph.slots[:rows].copy_(slots, non_blocking=True)
        graph.slots[rows:].fill_(self.codec.arena.spare)
        graph.replay()
        return graph.pcm[:rows]
