"""What a model gave as sound, looked at before anybody can hear it."""

from playhead.engine.types import Pcm

LOUDEST = 4.0
"""Largest believable sample, 12 dB over full scale: speech that is a little too loud is clipped
by the wire codecs, a decoder that has come apart is not sound."""


class NotSound(RuntimeError):
    """Samples that are not numbers, or far beyond full scale."""


def checked(pcm: Pcm | BaseException) -> Pcm | BaseException:
    """``pcm`` (float32 [samples]) as it is, or a :class:`NotSound` in its place: a speaker that
    is sent NaN or a burst of full-scale noise does harm. Faults pass."""
    if isinstance(pcm, BaseException) or not len(pcm):
        return pcm
    highest, lowest = float(pcm.max()), float(pcm.min())
    # NaN passes through max and min and fails every comparison.
    if lowest >= -LOUDEST and highest <= LOUDEST:
        return pcm
    return NotSound(f"the model made no sound: samples from {lowest:g} to {highest:g}")
