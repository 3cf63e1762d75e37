"""A codec lane on a CUDA device: chunks of many streams through graphs on the lane's own stream.

Each graph begins by fetching its streams and ends by bringing the PCM to pinned memory, so that a
dispatch is one launch per chunk size, and the host waits once, on an event. Both lanes share the
arena: a stream has one chunk in work at a time, and its next one is given out only after the host
has seen the end of the last. Dispatches of a lane are done in the order in which they are launched,
and each has memory and graphs to itself, so that one may wait on the device behind another.
"""

import threading
from collections.abc import Iterable, Sequence
from queue import SimpleQueue
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

    kernels = wanted(everything)
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


class _Flight:
    """What one dispatch has to itself until the host has copied what it made."""

    def __init__(
        self,
        codec: Codec,
        codes: Tensor,
        batches: Sequence[int],
        ladder: Sequence[int],
        stream: torch.cuda.Stream,
        pool: Any,
    ) -> None:
        """``batches`` and ``ladder`` ascending. ``pool``: of all graphs on ``stream``."""
        self._batches, self._spare = batches, codec.arena.spare
        self.samples = codec.decoder.config.frame_samples
        most = batches[-1]
        sound = pinned(most * sum(ladder), self.samples, dtype=torch.float32)
        self._sound: Pcm = sound.numpy()
        self._first: dict[int, int] = {}  # row of each size's PCM
        self._graphs: dict[tuple[int, int], _Graph] = {}
        at = 0
        for size in ladder[::-1]:
            self._first[size], end = at, at + most * size
            out = sound[at:end].view(most, size, self.samples)
            for rows in batches[::-1]:
                self._graphs[rows, size] = _Graph(codec, codes, rows, out, stream, pool)
            at = end
        # Waits on a core of its own: an interrupt takes longer than a short chunk.
        self.done = torch.cuda.Event()

    def launch(self, together: Sequence[Round], slots: Ints, first: Ints) -> None:
        """Begin rounds of a dispatch, on the current stream."""
        for one in together:
            jobs = one.jobs
            graph = self._graphs[fitting(self._batches, len(jobs)), one.size]
            graph.launch(slots[jobs], first[jobs] + one.done, self._spare)

    def fetch(self, together: Sequence[Round], starts: Ints, total: int, out: Pcm | None) -> Pcm:
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


class CodecLane:
    """Decodes batches of chunks of different slots. Any thread; more than ``flights`` at a time
    wait for each other."""

    def __init__(
        self,
        codec: Codec,
        codes: Tensor,
        batches: Sequence[int],
        ladder: Sequence[int],
        stream: torch.cuda.Stream,
        flights: int = 1,
    ) -> None:
        """``codes`` int64 [slots + 1, positions, groups]: the table that the LM lane fills.
        ``flights``: dispatches that the device may have at a time."""
        # Without trying them, cuDNN takes convolutions up to fifty times slower at some sizes.
        torch.backends.cudnn.benchmark = True
        self._stream = stream
        self._ladder, self._batches = tuple(sorted(ladder)), tuple(sorted(batches))
        pool = torch.cuda.graph_pool_handle()
        self._free: SimpleQueue[_Flight] = SimpleQueue()
        for _ in range(flights):
            self._free.put(_Flight(codec, codes, self._batches, self._ladder, stream, pool))
        self._launching = threading.Lock()  # dispatches come to the device one after the other
        self._waiting = threading.Lock()  # only who is next keeps a core busy with waiting

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
        flight = self._free.get()
        try:
            return self._fly(flight, slots, first, frames)
        finally:
            self._free.put(flight)

    def _fly(self, flight: _Flight, slots: Ints, first: Ints, frames: Ints) -> Pcm:
        starts = np.cumsum(frames) - frames
        out: Pcm | None = None
        with torch.cuda.stream(self._stream):
            for together in passes(rounds(frames, self._ladder, self._batches[-1])):
                with self._launching:
                    flight.launch(together, slots, first)
                    flight.done.record(self._stream)
                with self._waiting:
                    flight.done.synchronize()
                out = flight.fetch(together, starts, int(frames.sum()), out)
        assert out is not None
        return out
