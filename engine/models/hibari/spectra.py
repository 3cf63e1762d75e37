"""The voice's neural codec: latents to spectra, chunk by chunk, each frame computed once.

The layers run staggered: when the last one stands at frame b, layer j stands 3 frames ahead for
each layer that follows it. So a call of N frames reads N latents, 27 frames ahead, and every layer
does N frames of work; six frames per layer are carried between calls. A stream's first call has
no carried frames and computes a window that narrows by six frames per layer instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from playhead.engine.models.hibari.graphs import SPECTRA
from playhead.engine.models.hibari.session import open_session
from playhead.engine.models.hibari.shape import CHANNELS, CONTEXT, KERNEL, LATENTS, LAYERS

Floats = npt.NDArray[np.float32]
_REACH = KERNEL // 2
_OVERSHOOT = 4
"""Frames beyond the segment's end that may be asked for (the vocoder's look-ahead)."""
_OUTPUTS = (*SPECTRA, *(f"right{layer}" for layer in range(LAYERS)))
_WIDTHS = (LATENTS, *(CHANNELS,) * (LAYERS - 1))


@dataclass(slots=True)
class LatentSource:
    """Latents of a segment, [F, 130] padded with silence on both sides, and the carried state."""

    padded: Floats
    valid: Floats
    frames: int
    front: int  # the next frame whose spectrum is asked for
    carried: list[Floats] = field(default_factory=list)

    @classmethod
    def of(cls, latents: Floats, front: int) -> "LatentSource":
        """``latents``: float32 [F, 130]; ``front``: first frame wanted, may be -1."""
        margin = CONTEXT + _OVERSHOOT
        padded = np.pad(latents, ((margin, margin), (0, 0)))
        valid = np.zeros((len(padded), 1), np.float32)
        valid[margin : margin + len(latents)] = 1.0
        return cls(padded, valid, len(latents), front)

    def feed(self, count: int) -> tuple[Floats, list[Floats]]:
        """Latents and validity per layer for the next ``count`` frames."""
        stop = self.front + count
        windows = []
        for layer in range(LAYERS):
            ahead = _REACH * (LAYERS - layer)
            start = self.front + ahead if self.carried else self.front - ahead
            windows.append(slice(start + CONTEXT + _OVERSHOOT, stop + ahead + CONTEXT + _OVERSHOOT))
        return self.padded[windows[0]], [self.valid[window] for window in windows[1:]]


class SpectrumDecoder:
    """Runs the decoder graph over the next frames of several streams. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self._session = open_session(path)

    def advance(self, sources: Sequence[LatentSource], count: int) -> list[Floats]:
        """Next ``count`` spectra of each source: five arrays [B, count, 608] (graphs.SPECTRA).

        All sources must be fresh or all must be under way. Rows are the same, bit for bit,
        whichever streams share the call.
        """
        fed = [source.feed(count) for source in sources]
        inputs = {"latents": _stack([latents for latents, _ in fed])}
        for layer in range(LAYERS - 1):
            inputs[f"valid{layer}"] = _stack([valid[layer] for _, valid in fed])
        for layer, width in enumerate(_WIDTHS):
            inputs[f"left{layer}"] = _carried(sources, layer, width)
        outputs: list[Floats] = self._session.run(_OUTPUTS, inputs)
        states = outputs[len(SPECTRA) :]
        for row, source in enumerate(sources):
            source.carried = [state[row : row + 1] for state in states]
            source.front += count
        return outputs[: len(SPECTRA)]


def _stack(rows: list[Floats]) -> Floats:
    return rows[0][np.newaxis] if len(rows) == 1 else np.stack(rows)


def _carried(sources: Sequence[LatentSource], layer: int, width: int) -> Floats:
    if not sources[0].carried:
        return np.empty((len(sources), 0, width), np.float32)
    if len(sources) == 1:
        return sources[0].carried[layer]
    return np.concatenate([source.carried[layer] for source in sources])
