"""Numbers from the host to a device without a wait, through memory that is kept.

A copy from pinned memory returns at once; allocating such memory may wait for the whole device, so
it is done at the start. A buffer is used again when the device has taken what was in it.
"""

from collections.abc import Sequence
from itertools import cycle

import torch
from playhead.engine.models.qwen3_tts.counts import Ints
from torch import Tensor

TURNS = 16
"""Buffers. The host is at most a few steps ahead of the device, so that each is long free when
its turn comes."""


class Staging:
    """For one thread and one stream of the device at a time. For the CPU its memory is ordinary
    and copies are done at once."""

    def __init__(self, most: int, device: torch.device, turns: int = TURNS) -> None:
        """``most``: numbers of one copy."""
        pin = device.type == "cuda"
        self.most = most
        buffers = [torch.zeros(most, dtype=torch.int64, pin_memory=pin) for _ in range(turns)]
        self._turns = cycle([(buffer, torch.cuda.Event() if pin else None) for buffer in buffers])

    def send(self, to: Tensor, numbers: Sequence[int] | Ints) -> None:
        """Copy ``numbers`` to ``to`` (int64, as many places), behind what the current stream does
        already. Raises ``ValueError`` for another count or for more than ``most``."""
        count = len(numbers)
        if count != to.numel() or count > self.most:
            raise ValueError(
                f"{count} numbers for {to.numel()} places, at most {self.most} at once"
            )
        buffer, taken = next(self._turns)
        if taken is not None:
            taken.synchronize()
        buffer.numpy()[:count] = numbers
        to.copy_(buffer[:count].view(to.shape), non_blocking=True)
        if taken is not None:
            taken.record()
