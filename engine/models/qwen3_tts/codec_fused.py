"""The codec decoder's convolutions in the project's own kernels, where they were measured faster.

Which kernel and which tile a layer gets follows from its shape and the number of columns alone, so
that every start on every device of a kind does the same arithmetic. The figures are those of
``bench/gpu/codec_kernels.py`` on one H200; a layer of another shape goes the plain way.
"""

import torch
from playhead.engine.models.qwen3_tts import codec_conv_triton as fused
from playhead.engine.models.qwen3_tts.codec_conv_triton import Tile
from playhead.engine.models.qwen3_tts.codec_ops import Unit, Wave
from playhead.engine.models.qwen3_tts.codec_triton import TritonOps

Shape = tuple[int, int, int]
"""Channels in and out, and taps."""
Ladder = tuple[tuple[int, Tile | None], ...]
"""Up to how many columns of all streams together a tile serves, ascending; None: the plain way."""

EVERY = 1 << 62
CONVOLUTIONS: dict[Shape, Ladder] = {}
MIXES: dict[int, Ladder] = {}
UNITS: dict[int, Ladder] = {}


class FusedOps(TritonOps):
    """Own kernels for the convolutions too, by the tables given (shapes missing: the plain way)."""

    def __init__(
        self,
        dtype: torch.dtype = torch.bfloat16,
        convolutions: dict[Shape, Ladder] = CONVOLUTIONS,
        mixes: dict[int, Ladder] = MIXES,
        units: dict[int, Ladder] = UNITS,
    ) -> None:
        super().__init__(dtype)
        self._convolutions, self._mixes, self._units = convolutions, mixes, units

    def convolve(
        self,
        extended: torch.Tensor,
        weight: torch.Tensor,
        dilation: int,
        wave: Wave,
        *,
        raw: bool = True,
    ) -> tuple[torch.Tensor | None, torch.Tensor]:
        """See :meth:`TorchOps.convolve`."""
        out, inputs, _, taps = weight.shape
        length = extended.shape[1] - (taps - 1) * dilation
        tile = pick(self._convolutions.get((inputs, out, taps), ()), extended.shape[0] * length)
        if tile is None:
            return super().convolve(extended, weight, dilation, wave, raw=raw)
        return fused.convolve(extended, weight, dilation, wave, tile, raw=raw)

    def unit(
        self, x: torch.Tensor, extended: torch.Tensor, parts: Unit, wave: Wave, *, raw: bool = True
    ) -> torch.Tensor:
        """See :meth:`TorchOps.unit`: in one kernel, or in two."""
        batch, length, channels = x.shape
        tile = pick(self._units.get(channels, ()), batch * length)
        if tile is not None:
            return fused.unit(x, extended, parts, wave, tile, raw=raw)
        tile = pick(self._mixes.get(channels, ()), batch * length)
        if tile is None:
            return super().unit(x, extended, parts, wave, raw=raw)
        _, inner = self.convolve(extended, parts.weight, parts.dilation, parts.inner, raw=False)
        return fused.mix(x, inner, parts.mix, wave, tile)


def pick(ladder: Ladder, columns: int) -> Tile | None:
    """The tile for so many columns."""
    return next((tile for most, tile in ladder if columns <= most), None)
