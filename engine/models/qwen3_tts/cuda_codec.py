"""A codec lane on a CUDA device: chunks of many streams through graphs on the lane's own stream.

Each graph begins by fetching its streams and ends by bringing the PCM to pinned memory, so that a
dispatch is one launch per chunk size, and the host waits once, on an event. Both lanes share the
arena: a stream has one chunk in work at a time, and its next one is given out only after the host
has seen the end of the last.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from playhead.engine.models.qwen3_tts.capture import fitting, pinned, record
from playhead.engine.models.qwen3_tts.codec import Codec
from playhead.engine.models.qwen3_tts.codec_rounds import Ints, Round, passes, rounds, targets
from playhead.engine.models.qwen3_tts.compiling import Ahead, target, wanted
from playhead.engine.types import Pcm
from torch import Tensor


def compile_ahead(codec: Codec, batches: Iterable[int], ladder: Sequence[int]) -> Ahead:
    """Begin to compile what lanes of these sizes will call; about half a minute of a processor."""

    def everything() -> None:
        _decode_each(codec, sorted(batches), ladder)
        _decode_each(codec, (1,), (codec.max_frames,))  # recordings of voices

    _try_convolutions()
    kernels = wanted(everything)
    codec.reset(torch.tensor([codec.arena.spare], device=codec.decoder.device))  # holds anything
    torch.cuda.empty_cache()  # graphs have memory of their own
    return Ahead(kernels, target())


def _try_convolutions() -> None:
    """Without trying them, cuDNN takes convolutions up to fifty times slower at some sizes; and
    what it has once taken for a size, tried or not, it keeps. So before the first call of all."""
    torch.backends.cudnn.benchmark = True


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
    """One bucket. ``where`` int64 [2 * rows], pinned: slots, then first frames. The PCM float32
    [rows * frames, frame_samples] goes to the beginning of ``out``, pinned too."""

    def __init__(
        self,
        codec: Codec,
        codes: Tensor,
        rows: int,
        out: Tensor,
        stream: torch.cuda.Stream,
        pool: Any,
    ) -> None:
        device, frames = codec.decoder.device, out.shape[1]
        self.rows = rows
        self.where = pinned(2 * rows, dtype=torch.int64)
        self.host = self.where.numpy()
        self.host[:rows] = codec.arena.spare
        self._fetched = self.where.to(device)
        # Kept: a graph holds addresses, not tensors.
        self._ahead = torch.arange(frames, device=device)
        self._out = out[:rows]

        def body() -> None:
            self._fetched.copy_(self.where, non_blocking=True)
            slots, first = self._fetched[:rows], self._fetched[rows:]
            found = codes[slots[:, None], first[:, None] + self._ahead]
            pcm = codec.decode(found.transpose(1, 2), slots)
            self._out.copy_(pcm.view_as(self._out), non_blocking=True)

        self.graph = record(body, stream, pool)

    def launch(self, slots: Ints, first: Ints, spare: int) -> None:
        """Begin. The host must see the end before it begins again."""
        count, host = len(slots), self.host
        host[:count] = slots
        host[count : self.rows] = spare
        host[self.rows : self.rows + count] = first
        host[self.rows + count :] = 0
        self.graph.replay()


class CodecLane:
    """Decodes batches of chunks of different slots. One thread at a time."""

    def __init__(
        self,
        codec: Codec,
        codes: Tensor,
        batches: Sequence[int],
        ladder: Sequence[int],
        stream: torch.cuda.Stream,
    ) -> None:
        """``codes`` int64 [slots + 1, positions, groups]: the table that the LM lane fills."""
        _try_convolutions()
        self._stream, self._spare = stream, codec.arena.spare
        self._ladder, self._batches = tuple(sorted(ladder)), tuple(sorted(batches))
        self.samples = codec.decoder.config.frame_samples
        most = self._batches[-1]
        sound = pinned(most * sum(self._ladder), self.samples, dtype=torch.float32)
        self._sound: Pcm = sound.numpy()
        self._first: dict[int, int] = {}  # row of each size's PCM
        self._graphs: dict[tuple[int, int], _Graph] = {}
        pool, at = torch.cuda.graph_pool_handle(), 0
        for size in self._ladder[::-1]:
            self._first[size], end = at, at + most * size
            out = sound[at:end].view(most, size, self.samples)
            for rows in self._batches[::-1]:
                self._graphs[rows, size] = _Graph(codec, codes, rows, out, stream, pool)
            at = end
        # Waits on a core of its own: an interrupt takes longer than a short chunk.
        self._done = torch.cuda.Event()

    @property
    def most(self) -> int:
        """Chunks of a size that one launch holds."""
        return self._batches[-1]

    @torch.inference_mode()
    def decode(self, slots: Ints, first: Ints, frames: Ints) -> Pcm:
        """Frames [first, first + frames) of each of ``slots`` (int64 [n], all different): float32
        [sum(frames), frame_samples], one after the other.

        Few calls into torch: each gives up the interpreter and queues for it again.
        """
        starts = np.cumsum(frames) - frames
        out: Pcm | None = None
        with torch.cuda.stream(self._stream):
            for together in passes(rounds(frames, self._ladder, self._batches[-1])):
                for one in together:
                    jobs = one.jobs
                    self._bucket(one).launch(slots[jobs], first[jobs] + one.done, self._spare)
                self._done.record(self._stream)
                self._done.synchronize()
                out = self._fetch(together, starts, int(frames.sum()), out)
        assert out is not None
        return out

    def _bucket(self, one: Round) -> _Graph:
        return self._graphs[fitting(self._batches, len(one.jobs)), one.size]

    def _fetch(self, together: Sequence[Round], starts: Ints, total: int, out: Pcm | None) -> Pcm:
        """A copy of what rounds have made, each frame in its row; the memory is used again. Rows
        of other passes are as ``out`` has them."""
        places = [np.arange(o.size * len(o.jobs)) + self._first[o.size] for o in together]
        source = np.concatenate(places)
        rows = np.concatenate([targets(one, starts) for one in together])
        if len(rows) < total:
            out = np.empty((total, self.samples), np.float32) if out is None else out
            out[rows] = self._sound[source]
            return out
        order = np.empty(total, np.int64)
        order[rows] = source
        made: Pcm = self._sound.take(order, axis=0)
        return made
