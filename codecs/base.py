"""What every wire codec offers, and the checks that all of them share.

A wire codec turns PCM at the model's rate into bytes at the wire rate and back. An encoder or
decoder belongs to one utterance and to one thread at a time.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Pcm = npt.NDArray[np.float32]

EMPTY_PCM: Pcm = np.zeros(0, np.float32)
EMPTY_PCM.flags.writeable = False


class StreamEnded(RuntimeError):
    """An encoder was used after ``flush``."""


class BadAudio(ValueError):
    """Bytes from the wire do not hold the audio that their message announces."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Bytes to send, and the playable samples (wire rate, after ``pre_skip``) they add.

    ``packets`` are the byte lengths of the Opus packets in ``data``, in order; empty for codecs
    without packets. ``samples`` may be 0 while an encoder collects input: that is no end.
    """

    data: bytes
    samples: int
    packets: tuple[int, ...] = ()


NOTHING = Encoded(b"", 0)


class Encoder(Protocol):
    """Encodes one utterance."""

    pre_skip: int  # samples at the wire rate that a decoder drops at the start
    repaired: int  # input samples that were NaN or infinite and were replaced by 0

    def encode(self, pcm: Pcm) -> Encoded:
        """Take float32 [n] at the model's rate, nominal range -1..1 (clipped to it).

        Raises ``TypeError`` for anything but a 1-D float array and ``StreamEnded`` after
        ``flush``.
        """

    def flush(self) -> Encoded:
        """End the utterance and give the rest.

        The ``samples`` of all calls then add up to exactly
        ``round(input samples * wire rate / model rate)``. Raises ``StreamEnded`` when repeated.
        """


class Decoder(Protocol):
    """Decodes one utterance."""

    def decode(self, data: bytes, packets: tuple[int, ...], samples: int) -> Pcm:
        """Bytes of one message to float32 [samples] at the wire rate, range -1..1.

        Drops ``pre_skip`` at the start of the utterance. Raises ``BadAudio`` when ``data`` does
        not hold ``samples`` samples in whole.
        """


def clean(pcm: npt.NDArray[Any]) -> tuple[Pcm, int]:
    """Audio that is safe for a speaker: float32 [n] clipped to -1..1, and how many samples were
    NaN or infinite and became 0.

    Raises ``TypeError`` unless ``pcm`` is a 1-D float array: integers would be clipped to noise.
    """
    if not isinstance(pcm, np.ndarray) or pcm.dtype.kind != "f" or pcm.ndim != 1:
        shown = f"{pcm.dtype} {pcm.shape}" if isinstance(pcm, np.ndarray) else type(pcm).__name__
        raise TypeError(f"audio must be a 1-D float array in -1..1, not {shown}")
    # NaN fails every comparison, so the usual chunk costs two looks and no copy.
    if len(pcm) and pcm.min() >= -1.0 and pcm.max() <= 1.0:
        return pcm.astype(np.float32, copy=False), 0
    finite = np.isfinite(pcm)
    broken = len(pcm) - int(np.count_nonzero(finite))
    if broken:
        pcm = np.where(finite, pcm, 0.0)
    return np.clip(pcm, -1.0, 1.0).astype(np.float32, copy=False), broken
