"""What the codec decoder remembers of each stream between chunks.

One stream owns one slot. Everything is allocated once; a decode reads and writes rows by slot index
on the device, so that the same captured graph serves any set of streams.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from playhead.engine.models.qwen3_tts.config import CodecDecoderConfig

RING_ALIGNMENT = 8  # attention kernels want the number of keys in multiples of this


@dataclass(frozen=True, slots=True)
class Place:
    """Where one convolution's past input columns lie in a slot's row."""

    index: int
    start: int
    columns: int
    channels: int

    @property
    def stop(self) -> int:
        """End of the place."""
        return self.start + self.columns * self.channels


class Layout:
    """Hands out places in a slot's row while the decoder is built."""

    def __init__(self) -> None:
        self.places: list[Place] = []

    @property
    def width(self) -> int:
        """Elements of a row."""
        return self.places[-1].stop if self.places else 0

    def reserve(self, columns: int, channels: int) -> Place:
        """Room for the past ``columns`` input columns of a convolution of ``channels``."""
        place = Place(len(self.places), self.width, columns, channels)
        self.places.append(place)
        return place


class Columns:
    """The past input columns of a batch during one decode: read old ones, keep new ones.

    ``rows`` [B, width] are the gathered rows. All columns are time-major: [B, columns, channels].
    """

    def __init__(self, rows: torch.Tensor, layout: Layout) -> None:
        self.rows = rows
        self.parts = [rows[:, :0]] * len(layout.places)  # what to remember, place by place

    def past(self, place: Place) -> torch.Tensor:
        """The columns before this chunk's: [B, columns, channels]."""
        span = self.rows[:, place.start : place.stop]
        return span.view(-1, place.columns, place.channels)

    def keep(self, place: Place, extended: torch.Tensor) -> None:
        """Remember the last columns of [B, columns + T, channels], past and new together."""
        self.parts[place.index] = extended[:, extended.shape[1] - place.columns :].flatten(1)

    def kept(self) -> torch.Tensor:
        """The rows after this chunk: [B, width]."""
        return torch.cat(self.parts, 1)


class SlotArena:
    """The decoder states of ``slots`` streams, and one spare slot for the padding rows of a batch.

    ``columns`` [slots + 1, width]: past input columns of every convolution.
    ``keys``, ``values``: per layer [slots + 1, ring, kv_heads, head_dim]; a column's keys lie at
    its position modulo ``ring``. The ring holds the window less one column, and the longest chunk.
    ``positions`` [slots + 1] int64: frames decoded so far.
    """

    def __init__(
        self,
        config: CodecDecoderConfig,
        layout: Layout,
        slots: int,
        max_frames: int,
        *,
        device: torch.device | str,
        dtype: torch.dtype,
    ) -> None:
        rows = slots + 1
        least = config.window - 1 + max_frames
        self.slots = slots
        self.spare = slots
        self.ring = -(-least // RING_ALIGNMENT) * RING_ALIGNMENT
        self.columns = torch.zeros(rows, layout.width, device=device, dtype=dtype)
        shape = (rows, self.ring, config.kv_heads, config.head_dim)
        self.keys, self.values = (
            [torch.zeros(shape, device=device, dtype=dtype) for _ in range(config.layers)]
            for _ in range(2)
        )
        self.positions = torch.zeros(rows, device=device, dtype=torch.int64)

    @property
    def tensors(self) -> Sequence[torch.Tensor]:
        """Every tensor, slots first."""
        return (self.columns, self.positions, *self.keys, *self.values)

    @property
    def slot_bytes(self) -> int:
        """Bytes that one stream occupies."""
        return sum(tensor[0].nbytes for tensor in self.tensors)

    def snapshot(self, slot: int) -> tuple[torch.Tensor, ...]:
        """A copy of one slot, tensor by tensor."""
        return tuple(tensor[slot].clone() for tensor in self.tensors)

    def restore(self, slots: torch.Tensor, kept: tuple[torch.Tensor, ...]) -> None:
        """Let slots [N] int64 go on where the copied one was."""
        for tensor, row in zip(self.tensors, kept, strict=True):
            tensor.index_copy_(0, slots, row.expand(len(slots), *row.shape))

    def reset(self, slots: torch.Tensor) -> None:
        """Make slots [N] int64 fresh: silence before the first frame.

        Keys are cleared too. They would be masked, but a former stream's NaN times zero is NaN.
        """
        for tensor in self.tensors:
            tensor.index_fill_(0, slots, 0)
