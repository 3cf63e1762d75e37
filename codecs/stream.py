"""The path that every utterance's audio takes onto the wire: repair, resample, pack."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from .base import NOTHING, BadAudio, Encoded, Pcm, StreamEnded, clean
from .resample import Resampler


class Packer(Protocol):
    """Turns clean samples at the wire rate into bytes."""

    pre_skip: int

    def pack(self, pcm: Pcm) -> Encoded:
        """Take float32 [n] in -1..1."""

    def finish(self) -> Encoded:
        """Give what is still held."""


class SamplePacker:
    """A codec that codes each sample on its own (PCM, G.711)."""

    pre_skip = 0

    def __init__(self, to_bytes: Callable[[Pcm], bytes]) -> None:
        self._to_bytes = to_bytes

    def pack(self, pcm: Pcm) -> Encoded:
        """Take float32 [n] in -1..1; give all of it."""
        return Encoded(self._to_bytes(pcm), len(pcm))

    def finish(self) -> Encoded:
        """Nothing is ever held."""
        return NOTHING


class StreamEncoder:
    """Encodes one utterance; see ``base.Encoder``."""

    def __init__(self, packer: Packer, resampler: Resampler | None) -> None:
        self.pre_skip = packer.pre_skip
        self.repaired = 0
        self._packer = packer
        self._resampler = resampler
        self._ended = False

    def encode(self, pcm: Pcm) -> Encoded:
        """Take float32 [n] at the model's rate; give what is ready at the wire rate."""
        self._check_open()
        pcm, broken = clean(pcm)
        self.repaired += broken
        if self._resampler is not None:
            pcm = _clip(self._resampler.push(pcm))
        return self._packer.pack(pcm) if len(pcm) else NOTHING

    def flush(self) -> Encoded:
        """End the utterance; give the rest."""
        self._check_open()
        self._ended = True
        if self._resampler is None:
            return self._packer.finish()
        first = self._packer.pack(_clip(self._resampler.flush()))
        last = self._packer.finish()
        return Encoded(
            first.data + last.data, first.samples + last.samples, first.packets + last.packets
        )

    def _check_open(self) -> None:
        if self._ended:
            raise StreamEnded("this encoder was flushed: open a new one for the next utterance")


class SampleDecoder:
    """Decodes a codec that codes each sample on its own; see ``base.Decoder``."""

    def __init__(self, to_pcm: Callable[[bytes], Pcm], sample_bytes: int) -> None:
        self._to_pcm = to_pcm
        self._sample_bytes = sample_bytes

    def decode(self, data: bytes, packets: tuple[int, ...], samples: int) -> Pcm:
        """Bytes of one message to float32 [samples]. ``packets`` is ignored."""
        if len(data) != samples * self._sample_bytes:
            raise BadAudio(
                f"{len(data)} bytes are not the announced {samples} samples of "
                f"{self._sample_bytes} bytes each"
            )
        return self._to_pcm(data)


def _clip(pcm: Pcm) -> Pcm:
    """Filters ring: a full-scale input may leave the resampler above full scale."""
    return np.clip(pcm, -1.0, 1.0)
