"""What a model gave as sound, looked at before anybody can hear it."""

from collections.abc import Sequence

import numpy as np
from playhead.engine.types import Pcm

LOUDEST = 4.0
"""Largest believable sample, 12 dB over full scale: speech that is a little too loud is clipped
by the wire codecs, a decoder that has come apart is not sound."""


class NotSound(RuntimeError):
    """Samples that are not numbers, or far beyond full scale."""


def checked(pcm: Pcm | BaseException) -> Pcm | BaseException:
    """``pcm`` (float32 [samples]) as it is, or a :class:`NotSound` in its place: a speaker that
    is sent NaN or a burst of full-scale noise does harm. Faults pass."""
    if isinstance(pcm, BaseException) or not pcm.size:
        return pcm
    highest, lowest = float(pcm.max()), float(pcm.min())
    # NaN passes through max and min and fails every comparison.
    if lowest >= -LOUDEST and highest <= LOUDEST:
        return pcm
    return NotSound(f"the model made no sound: samples from {lowest:g} to {highest:g}")


def all_checked(chunks: Sequence[Pcm | BaseException]) -> list[Pcm | BaseException]:
    """Each as :func:`checked`. Parts of one array are looked at together: every look at many
    samples gives up the interpreter, and a batch of many chunks would have to queue for it again
    and again."""
    whole = _whole(chunks)
    if whole is not None and checked(whole) is whole:
        return list(chunks)
    return [checked(pcm) for pcm in chunks]


def _whole(chunks: Sequence[Pcm | BaseException]) -> Pcm | None:
    """The array that all sound is cut from, unless there is none or most of it is elsewhere."""
    sound = [pcm for pcm in chunks if not isinstance(pcm, BaseException)]
    whole = sound[0].base if sound else None
    if not isinstance(whole, np.ndarray) or any(pcm.base is not whole for pcm in sound):
        return None
    return whole if whole.size <= 2 * sum(map(len, sound)) else None
