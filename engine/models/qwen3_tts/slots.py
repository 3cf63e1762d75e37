"""What every stream keeps on the device between steps, in rows that are handed out and reused.

Row ``slots`` (the last) belongs to nobody: batches are padded with it to their bucket's size.
"""

from dataclasses import dataclass

import torch
from playhead.engine.models.qwen3_tts.config import TalkerConfig
from torch import Tensor


@dataclass(frozen=True, slots=True)
class KvCache:
    """Keys and values [layers, slots + 1, positions, kv_heads, head_dim], written by position."""

    keys: Tensor
    values: Tensor

    @property
    def positions(self) -> int:
        """Longest context of a slot."""
        return self.keys.shape[2]


class NoSlot(RuntimeError):
    """Every slot is taken."""


class SlotTable:
    """Device state of up to ``slots`` streams with at most ``positions`` context positions.

    Names: B is a batch, H the talker's hidden size, V its codec vocabulary. Methods with a batch
    take slot numbers int64 [B] and never wait for the device.
    """

    def __init__(
        self,
        config: TalkerConfig,
        slots: int,
        positions: int,
        *,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        rows = slots + 1
        kv = (config.layers, rows, positions, config.kv_heads, config.head_dim)
        self.slots = slots
        self.positions = positions
        self.device = device
        self.cache = KvCache(
            torch.zeros(kv, device=device, dtype=dtype), torch.zeros(kv, device=device, dtype=dtype)
        )
        self.length = torch.zeros(rows, device=device, dtype=torch.int64)
        """Positions that hold context."""
        self.made = torch.zeros(rows, device=device, dtype=torch.int64)
        """Codes of codebook 0 drawn so far; frame ``made - 1`` is the latest."""
        self.repeats = torch.zeros(rows, device=device, dtype=torch.int64)
        """How often the latest code 0 has repeated itself in a row."""
        self.seeds = torch.zeros(rows, device=device, dtype=torch.int64)
        self.least = torch.zeros(rows, device=device, dtype=torch.int64)
        """Codes before which the end is not drawn."""
        self.seen = torch.zeros((rows, config.vocab), device=device, dtype=torch.bool)
        """Codes of codebook 0 drawn so far, as a set."""
        self.carry = torch.zeros((rows, config.hidden), device=device, dtype=dtype)
        """Sum of the latest frame's code embeddings: the next input less its text row."""
        self.codes = torch.zeros(
            (rows, positions, config.code_groups), device=device, dtype=torch.int64
        )
        """Codes of frame f at index f."""
        self._free = list(range(slots - 1, -1, -1))
        self._taken = bytearray(slots)

    @property
    def free(self) -> int:
        """Slots that can still be taken."""
        return len(self._free)

    def take(self) -> int:
        """A slot for one stream. Raises :class:`NoSlot`."""
        if not self._free:
            raise NoSlot(f"all {self.slots} streams are in use")
        slot = self._free.pop()
        self._taken[slot] = True
        return slot

    def give_back(self, slot: int, *, scrub: bool = False) -> None:
        """The slot's stream is over. What it left is overwritten by :meth:`begin`, but for keys
        and values: they are masked, which does not help against NaN. ``scrub`` clears them."""
        if not 0 <= slot < self.slots or not self._taken[slot]:
            raise ValueError(f"slot {slot} is not taken")
        self._taken[slot] = False
        if scrub:
            self.cache.keys[:, slot] = 0
            self.cache.values[:, slot] = 0
        self._free.append(slot)

    def begin(self, slots: Tensor, lengths: Tensor, seeds: Tensor, least: Tensor) -> None:
        """Streams start in ``slots``: nothing drawn, ``lengths`` context positions."""
        self.length[slots] = lengths
        self.seeds[slots] = seeds
        self.least[slots] = least
        # Assigning a Python number would copy it to the device, which no graph can hold.
        self.made.index_fill_(0, slots, 0)
        self.repeats.index_fill_(0, slots, 0)
        self.seen.index_fill_(0, slots, False)
