"""Memory that an engine's process and its model's process share, one piece for each lane.

A batch of sound is some megabytes; a socket holds a fifth of one, so that both sides would take
turns with it, each wait ending in the queue for its interpreter. The model lays sound here instead,
and the engine copies it out. One message goes each way at a time, so nothing else is needed.
"""

import mmap
import os
import sys
from collections.abc import Sequence
from typing import Final

import numpy as np
from playhead.engine.remote.wire import WireError
from playhead.engine.types import Lane, Pcm

ROOM: Final = 16 * 2**20
"""Bytes: 128 chunks of 16 frames of 80 ms at 24 kHz. What is never written takes no memory."""


def descriptors(room: int = ROOM) -> list[int]:
    """New pieces of memory, one for each lane, to be given to the other process; none where the
    system (anything but Linux) has no such thing."""
    if sys.platform != "linux":
        return []
    made = [os.memfd_create(f"playhead-{lane}") for lane in Lane]
    for descriptor in made:
        os.ftruncate(descriptor, room)
    return made


class Shelf:
    """One side's view of a piece. Either side may end at any time; memory stays for the other."""

    def __init__(self, descriptor: int) -> None:
        """Takes the descriptor and closes it."""
        self._samples: Pcm = np.frombuffer(mmap.mmap(descriptor, 0), np.float32)
        os.close(descriptor)

    def lay(self, sound: Sequence[Pcm]) -> int:
        """Put arrays of float32 [samples] one after the other. Returns bytes; 0 where there is no
        room for all."""
        samples = sum(len(pcm) for pcm in sound)
        if not 0 < samples <= len(self._samples):
            return 0
        np.concatenate(sound, out=self._samples[:samples])
        return samples * self._samples.itemsize

    def take(self, size: int) -> Pcm:
        """A copy of the first ``size`` bytes, float32 [samples]. Raises :class:`WireError`."""
        if size > self._samples.nbytes:
            raise WireError(f"{size} bytes of sound cannot lie in {self._samples.nbytes}")
        return self._samples[: size // self._samples.itemsize].copy()


def shelves(given: Sequence[int]) -> list[Shelf | None]:
    """One for each lane, of the descriptors that :func:`descriptors` made; None without."""
    return [Shelf(descriptor) for descriptor in given] or [None for _ in Lane]
