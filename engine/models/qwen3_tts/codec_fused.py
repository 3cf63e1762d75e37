"""The codec decoder's convolutions in the project's own kernels, where they were measured faster.

Which kernel and which tile a layer gets follows from its shape and the number of columns alone, so
that every start on every device of a kind does the same arithmetic. The figures are those of
``bench/gpu/codec_kernels.py`` on one H200. A layer of another shape, and a few columns by a large
weight, go the plain way: a matrix product and what follows it. The library's own convolutions take
seconds of trying at the start, and do not run in a part of the device.
"""

import torch
from playhead.engine.models.qwen3_tts import codec_conv_triton as fused
from playhead.engine.models.qwen3_tts.codec_conv_triton import Tile
from playhead.engine.models.qwen3_tts.codec_ops import Unit, Wave
from playhead.engine.models.qwen3_tts.codec_triton import TritonOps
from playhead.engine.models.qwen3_tts.linear_triton import Cut, dividing, linear
from torch.nn import functional as F

Shape = tuple[int, int, int]
"""Channels in and out, and taps."""
Ladder = tuple[tuple[int, Tile | None], ...]
"""Up to how many columns of all streams together a tile serves, ascending; None: the plain way."""

EVERY = 1 << 62
_LONE, _SMALL = Tile(32, 32, 64, 4, 4), Tile(64, 64, 64, 4, 4)
_LARGE, _CLOSE, _BROAD = (
    Tile(128, 128, 64, 8, 3),
    Tile(128, 128, 64, 4, 3),
    Tile(128, 256, 64, 8, 3),
)
_THIN, _NARROW = Tile(128, 32, 64, 4, 3), Tile(128, 64, 64, 4, 3)
CONVOLUTIONS: dict[Shape, Ladder] = {
    (1024, 1536, 7): ((600, None), (EVERY, _LARGE)),
    (1536, 6144, 2): ((64, None), (256, _SMALL), (EVERY, _BROAD)),
    (768, 768, 7): ((64, None), (1100, _SMALL), (3000, _CLOSE), (6144, _BROAD), (EVERY, _LARGE)),
    (768, 1920, 2): ((64, _SMALL), (1500, _LARGE), (EVERY, _CLOSE)),
    (384, 384, 7): ((400, _LONE), (2600, _SMALL), (EVERY, _CLOSE)),
    (384, 768, 2): ((2600, _SMALL), (EVERY, _CLOSE)),
    (192, 192, 7): ((EVERY, _SMALL),),
    (192, 288, 2): ((25_000, _THIN), (EVERY, _NARROW)),
}
MIXES: dict[int, Ladder] = {
    768: ((64, _LONE), (4096, _SMALL)),
    384: ((2600, _SMALL), (10_000, _LARGE)),
    192: ((EVERY, _SMALL),),
}
UNITS: dict[int, Ladder] = {
    192: ((2000, None), (EVERY, Tile(64, 0, 64, 4, 3))),
    96: ((8000, Tile(64, 0, 32, 4, 4)), (EVERY, Tile(128, 0, 32, 4, 4))),
}
JOINED = 128
"""Up to how many columns norms and their products are one kernel."""


class FusedOps(TritonOps):
    """Own kernels for the convolutions too, by the tables given (shapes missing: the plain way)."""

    def __init__(
        self,
        dtype: torch.dtype = torch.bfloat16,
        convolutions: dict[Shape, Ladder] = CONVOLUTIONS,
        mixes: dict[int, Ladder] = MIXES,
        units: dict[int, Ladder] = UNITS,
        joined: int = JOINED,
    ) -> None:
        super().__init__(dtype)
        # The tiles are measured with 16 bits, and more would not fit a multiprocessor's memory.
        if dtype.itemsize > 2 and convolutions is CONVOLUTIONS:
            convolutions, mixes, units = {}, {}, {}
        self._convolutions, self._mixes, self._units = convolutions, mixes, units
        self._joined = joined

    def conv(self, extended: torch.Tensor, weight: torch.Tensor, dilation: int) -> torch.Tensor:
        """See :meth:`TorchOps.conv`, as one matrix product of all taps side by side."""
        out, inputs, _, taps = weight.shape
        length = extended.shape[1] - (taps - 1) * dilation
        parts = [extended[:, tap * dilation :][:, :length] for tap in range(taps)]
        # A view: the weight lies in memory as its rows are wanted.
        return F.linear(torch.cat(parts, 2), weight.permute(0, 2, 3, 1).view(out, taps * inputs))

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

    def norm_linear(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, eps: float
    ) -> torch.Tensor:
        """See :meth:`TorchOps.norm_linear`."""
        cut = self._joins(x, weight.shape[0])
        if cut is None:
            return super().norm_linear(x, weight, bias, eps)
        return linear(x, weight, eps=eps, bias=bias, cut=cut)

    def norm_gate(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """See :meth:`TorchOps.norm_gate`."""
        cut = self._joins(x, weight.shape[0] // 2)
        if cut is None:
            return super().norm_gate(x, weight, eps)
        return linear(x, weight, eps=eps, gated=True, cut=cut)

    def _joins(self, x: torch.Tensor, width: int) -> Cut | None:
        """How a norm and its product are cut, where they are one kernel: small enough to give
        every multiprocessor something to do."""
        batch, length, depth = x.shape
        rows = batch * length
        if rows > self._joined or depth % 16 or width % 16:
            return None
        few = rows <= 64
        most = 16 if rows <= 16 else 32 if few else 64
        return Cut(dividing(32 if few else 64, width), dividing(64, depth), 4, 3, most)


def pick(ladder: Ladder, columns: int) -> Tile | None:
    """The tile for so many columns."""
    return next((tile for most, tile in ladder if columns <= most), None)
