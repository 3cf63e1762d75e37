"""A codec lane on a CUDA device: chunks of many streams through graphs on the lane's own stream.

The ladder of captured chunk sizes is short; a chunk of another size is decoded in pieces, which is
exact. The host waits once per batch, on an event, and one copy per graph brings PCM to pinned
memory. Both lanes share the arena: a stream has one chunk in work at a time, and its next one is
given out only after the host has seen the end of the last.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from playhead.engine.models.qwen3_tts.codec import Codec
from playhead.engine.models.qwen3_tts.codec_graphs import CodecGraphs, Progress
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


class CodecLane:
    """Decodes batches of jobs of different slots. One thread at a time."""

    def __init__(
        self,
        codec: Codec,
        codes: Tensor,
        batches: Sequence[int],
        ladder: Sequence[int],
        stream: torch.cuda.Stream,
        progress: Progress | None = None,
    ) -> None:
        """``codes`` int64 [slots + 1, positions, groups]: the table that the LM lane fills."""
        self._codes, self._stream = codes, stream
        self._ladder, self._most = tuple(sorted(ladder)), max(batches)
        self._samples = codec.decoder.config.frame_samples
        self._graphs = CodecGraphs(codec, batches, ladder, stream=stream, progress=progress)
        self._done = torch.cuda.Event(blocking=True)
        device = codec.decoder.device
        self._offsets = torch.arange(max(ladder), device=device)
        self._pcm = torch.zeros(self._most * max(ladder) * self._samples).pin_memory()
        for size in self._ladder:
            for rows in sorted(batches):
                spare = Job(codes.shape[0] - 1, 0, size)
                self.decode([spare] * rows)

    @torch.inference_mode()
    def decode(self, jobs: Sequence[Job]) -> list[Pcm]:
        """PCM of each job, float32 [frames * frame_samples]."""
        parts: list[list[Pcm]] = [[] for _ in jobs]
        launched: list[tuple[int, list[_Piece], int]] = []
        batches = rounds(jobs, self._ladder, self._most)
        total = sum(size * len(group) for size, group in batches) * self._samples
        if total > len(self._pcm):
            self._pcm = torch.zeros(total).pin_memory()
        numbers = [[p.slot for _, group in batches for p in group]]
        numbers.append([p.first for _, group in batches for p in group])
        at = row = 0
        with torch.cuda.stream(self._stream):
            where = torch.tensor(numbers).pin_memory().to(self._codes.device, non_blocking=True)
            for size, group in batches:
                rows = where[:, row : row + len(group)]
                self._launch(rows[0], rows[1], size, at)
                launched.append((size, group, at))
                at += size * len(group) * self._samples
                row += len(group)
            self._done.record(self._stream)
        self._done.synchronize()
        made = self._pcm.numpy()
        for size, group, start in launched:
            length = size * self._samples
            for index, piece in enumerate(group):
                begin = start + index * length
                parts[piece.job].append(made[begin : begin + length])
        return [np.concatenate(found) for found in parts]  # copies: the buffer is used again

    def _launch(self, slots: Tensor, first: Tensor, size: int, at: int) -> None:
        frames = first[:, None] + self._offsets[:size]
        codes = self._codes[slots[:, None], frames].transpose(1, 2)
        pcm = self._graphs.decode(codes, slots)
        self._pcm[at : at + pcm.numel()].view(pcm.shape).copy_(pcm, non_blocking=True)
