"""How much of the near-silence around a segment is kept.

The model leaves about 300 ms in front and 480 ms behind. The log energy among its latents tells
where sound is: silence sits near -1.9, the first audible frame (2 % of peak) two or three frames
after -1.0 is passed, the last one six to eight frames before the energy falls back below it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

AUDIBLE = -1.0
"""Log energy (standardised, as the model uses it) above which a frame counts as sound."""


@dataclass(frozen=True, slots=True)
class Margins:
    """Frames kept around the sound."""

    lead: int
    tail: int


FIRST_LEAD = 1
_SENTENCE = Margins(lead=12, tail=8)   # with the voice's own decay about 350 ms of pause
_CLAUSE = Margins(lead=4, tail=3)      # about 180 ms
_NONE = Margins(lead=1, tail=0)        # the text was cut inside a clause


def margins_after(text: str) -> Margins:
    """Pause that belongs after a segment's text: its own tail and the lead of what follows."""
    ending = text.rstrip("\"')]}”’»")[-1:]  # noqa: RUF001
    if ending in ",;:—":
        return _CLAUSE if ending else _NONE
    return _SENTENCE if ending in ".!?…。！？" else _NONE  # noqa: RUF001


def audible_span(
    energy: npt.NDArray[np.float32], lead: int, tail: int
) -> tuple[int, int]:
    """Frames [start, stop) to keep of ``energy`` [F]. Empty when nothing is audible."""
    loud = np.flatnonzero(energy > AUDIBLE)
    if not len(loud):
        return 0, 0
    return max(0, int(loud[0]) - lead), min(len(energy), int(loud[-1]) + 1 + tail)
