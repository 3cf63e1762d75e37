"""A codec lane on a CUDA device: chunks of many streams through graphs on the lane's own stream.

The ladder of captured chunk sizes is short; a chunk of another size is decoded in pieces, which is
exact. The host waits once per batch, on an event, and one copy per graph brings PCM to pinned
memory. Both lanes share the arena: a stream has one chunk in work at a time, and its next one is
given out only after the host has seen the end of the last.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from playhead.engine.models.qwen3_tts.codec import Codec
from playhead.engine.models.qwen3_tts.codec_graphs import WARM_UPS
from playhead.engine.models.qwen3_tts.compiling import Ahead, target, wanted
from playhead.engine.types import Pcm
from torch import Tensor


class Job(NamedTuple):
    """Frames [first, first + frames) of a slot."""

    slot: int
    first: int
    frames: int


class _Piece(NamedTuple):
    job: int
    slot: int
    first: int


def pieces(frames: int, ladder: Sequence[int]) -> list[int]:
    """``frames`` as a sum of sizes of ``ladder`` (ascending, from 1 on), the largest first."""
    out: list[int] = []
    for size in reversed(ladder):
        out += [size] * (frames // size)
        frames %= size
    return out


def rounds(jobs: Sequence[Job], ladder: Sequence[int], most: int) -> list[tuple[int, list[_Piece]]]:
    """Batches of (size, pieces), at most ``most`` pieces each, in an order that keeps every job's
    pieces in theirs."""
    todo: dict[tuple[int, int], list[_Piece]] = {}
    for index, job in enumerate(jobs):
        first = job.first
        for turn, size in enumerate(pieces(job.frames, ladder)):
            todo.setdefault((turn, size), []).append(_Piece(index, job.slot, first))
            first += size
    return [
        (size, group[at : at + most])
        for (_, size), group in sorted(todo.items())
        for at in range(0, len(group), most)
    ]


def compile_ahead(codec: Codec, batches: Iterable[int], ladder: Sequence[int]) -> Ahead:
    """Begin to compile what lanes of these sizes will call; about half a minute of a processor."""
    kernels = wanted(lambda: _decode_each(codec, sorted(batches), ladder))
    codec.reset(torch.tensor([codec.arena.spare], device=codec.decoder.device))  # holds anything
    torch.cuda.empty_cache()  # graphs have memory of their own
    return Ahead(kernels, target())


def _decode_each(codec: Codec, batches: Sequence[int], ladder: Sequence[int]) -> None:
    """Every bucket once, of nobody's stream."""
    device, quantizers = codec.decoder.device, codec.decoder.config.quantizers
    with torch.inference_mode():
        for rows in batches:
            slots = torch.full((rows,), codec.arena.spare, device=device)
            for frames in ladder:
                codes = torch.zeros(rows, quantizers, frames, dtype=torch.int64, device=device)
                codec.decode(codes, slots)


class _Graph:
    """One bucket. ``where`` int64 [2 * rows]: slots, then first frames; ``pcm`` float32 [rows,
    frames * frame_samples], overwritten by the lane's next replay."""

    def __init__(
        self,
        codec: Codec,
        codes: Tensor,
        rows: int,
        frames: int,
        stream: torch.cuda.Stream,
        pool: Any,
    ) -> None:
        device = codec.decoder.device
        self.rows = rows
        self.where = torch.zeros(2 * rows, dtype=torch.int64, device=device)
        self.where[:rows] = codec.arena.spare
        slots, first = self.where[:rows], self.where[rows:]
        # Kept: a graph holds addresses, not tensors.
        self._ahead = torch.arange(frames, device=device)

        def body() -> Tensor:
            found = codes[slots[:, None], first[:, None] + self._ahead]
            return codec.decode(found.transpose(1, 2), slots)

        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.inference_mode(), torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                body()
            stream.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, pool=pool, stream=stream):
                self.pcm = body()
            self.graph.replay()  # the first replay also uploads the graph
            stream.synchronize()


class CodecLane:
    """Decodes batches of jobs of different slots. One thread at a time."""

    def __init__(
        self,
        codec: Codec,
        codes: Tensor,
        batches: Sequence[int],
        ladder: Sequence[int],
        stream: torch.cuda.Stream,
    ) -> None:
        """``codes`` int64 [slots + 1, positions, groups]: the table that the LM lane fills."""
        # Without trying them, cuDNN takes convolutions up to fifty times slower at some sizes.
        torch.backends.cudnn.benchmark = True
        self._stream, self._spare = stream, codec.arena.spare
        self._ladder, self._batches = tuple(sorted(ladder)), tuple(sorted(batches))
        self._samples = codec.decoder.config.frame_samples
        pool = torch.cuda.graph_pool_handle()
        self._graphs = {
            (rows, size): _Graph(codec, codes, rows, size, stream, pool)
            for size in self._ladder[::-1]
            for rows in self._batches[::-1]
        }
        # Waits on a core of its own: an interrupt takes longer than a short chunk.
        self._done = torch.cuda.Event()
        most = self._batches[-1]
        self._pcm = torch.zeros(most * self._ladder[-1] * self._samples).pin_memory()
        self._where = torch.zeros(4 * most * len(self._ladder), dtype=torch.int64).pin_memory()

    @torch.inference_mode()
    def decode(self, jobs: Sequence[Job]) -> list[Pcm]:
        """PCM of each job, float32 [frames * frame_samples].

        Few calls into torch: each gives up the interpreter and queues for it again.
        """
        batches = rounds(jobs, self._ladder, self._batches[-1])
        self._make_room(batches)
        host = self._where.numpy()
        starts: list[int] = []
        at = end = 0
        with torch.cuda.stream(self._stream):
            for size, group in batches:
                rows = next(rows for rows in self._batches if rows >= len(group))
                graph, missing = self._graphs[rows, size], rows - len(group)
                staged = slice(at, at + 2 * rows)
                host[staged] = (
                    [piece.slot for piece in group]
                    + [self._spare] * missing
                    + [piece.first for piece in group]
                    + [0] * missing
                )
                graph.where.copy_(self._where[staged], non_blocking=True)
                graph.graph.replay()
                length = len(group) * size * self._samples
                made = graph.pcm[: len(group)].view(-1)
                self._pcm[end : end + length].copy_(made, non_blocking=True)
                starts.append(end)
                at, end = at + 2 * rows, end + length
            self._done.record(self._stream)
        self._done.synchronize()
        pcm = self._pcm.numpy()[:end].copy()  # the buffer is used again
        return _shared_out(pcm, batches, starts, len(jobs), self._samples)

    def _make_room(self, batches: Sequence[tuple[int, list[_Piece]]]) -> None:
        """Chunks longer than the ladder's longest need more than is usual."""
        samples = sum(size * len(group) for size, group in batches) * self._samples
        if samples > len(self._pcm):
            self._pcm = torch.zeros(samples).pin_memory()
        numbers = 2 * len(batches) * self._batches[-1]
        if numbers > len(self._where):
            self._where = torch.zeros(numbers, dtype=torch.int64).pin_memory()


def _shared_out(
    pcm: Pcm,
    batches: Sequence[tuple[int, list[_Piece]]],
    starts: Sequence[int],
    jobs: int,
    samples: int,
) -> list[Pcm]:
    """What belongs to each job, its pieces joined; views where there is one piece."""
    parts: list[list[Pcm]] = [[] for _ in range(jobs)]
    for (size, group), start in zip(batches, starts, strict=True):
        length = size * samples
        for index, piece in enumerate(group):
            begin = start + index * length
            parts[piece.job].append(pcm[begin : begin + length])
    return [found[0] if len(found) == 1 else np.concatenate(found) for found in parts]
