"""The neural codec's decoder: codes of many streams to PCM, each stream continuing its own state.

Exact: chunks of any sizes give what one decode of the whole gives, up to rounding. No frame is
computed twice. A decode of T frames never waits for the device and has shapes that depend on the
batch size and T alone, so it can be captured.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from playhead.engine.models.qwen3_tts.calls import counted
from playhead.engine.models.qwen3_tts.codec_layers import (
    Conv,
    LatentStage,
    Reader,
    Snake,
    WaveformStage,
    dense_layer,
    extend,
)
from playhead.engine.models.qwen3_tts.codec_ops import TorchOps, full_float32
from playhead.engine.models.qwen3_tts.codec_spec import IGNORED, PREFIX, decoder_tensors
from playhead.engine.models.qwen3_tts.codec_state import Columns, Layout, SlotArena
from playhead.engine.models.qwen3_tts.codec_transformer import Transformer
from playhead.engine.models.qwen3_tts.config import CodecDecoderConfig, read_codec_config
from playhead.engine.models.qwen3_tts.weights import Tensors, load_tensors
from torch import nn

USAGE_FLOOR = 1e-5
MAX_FRAMES = 25  # two seconds
Codes = npt.NDArray[np.int64]


class Quantizer(nn.Module):
    """Sums the codebook entries of a frame: the semantic book and the acoustic books apart."""

    entries: torch.Tensor
    offsets: torch.Tensor

    def __init__(self, tensors: Tensors, config: CodecDecoderConfig, dtype: torch.dtype) -> None:
        super().__init__()
        self.semantic, self.size = config.semantic_quantizers, config.codebook_size
        acoustic = config.quantizers - self.semantic
        books = [_book(tensors, "rvq_first", index) for index in range(self.semantic)]
        books += [_book(tensors, "rvq_rest", index) for index in range(acoustic)]
        self.entries = nn.Buffer(torch.cat(books).to(dtype))
        offsets = torch.arange(config.quantizers, device=books[0].device) * self.size
        self.offsets = nn.Buffer(offsets[:, None])
        both = [
            tensors[f"quantizer.{group}.output_proj.weight"].squeeze(2)
            for group in ("rvq_first", "rvq_rest")
        ]
        self.project = dense_layer(torch.cat(both, 1).to(dtype))

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """[B, quantizers, T] int64 -> [B, T, codebook_width]."""
        rows = codes.clamp(0, self.size - 1) + self.offsets
        found = self.entries[rows]
        semantic, acoustic = found[:, : self.semantic], found[:, self.semantic :]
        both = torch.cat([semantic.sum(1), acoustic.sum(1)], -1)
        projected: torch.Tensor = self.project(both)
        return projected


class CodecDecoder(nn.Module):
    """Codes to PCM on chunks. Holds weights only; the streams' states are in a SlotArena."""

    early_bias: torch.Tensor
    last: torch.Tensor
    last_bias: torch.Tensor

    def __init__(
        self, config: CodecDecoderConfig, tensors: Tensors, ops: TorchOps | None = None
    ) -> None:
        """``tensors`` float32, as :func:`decoder_tensors` lists them.

        ``ops`` sets the precision and who does the work; by default the exact float32 path.
        """
        super().__init__()
        ops = ops or TorchOps()
        self.config, self.ops, self.layout = config, ops, Layout()
        rates = len(config.upsample_rates)
        self.quantizer = Quantizer(tensors, config, ops.dtype)
        self.early = Conv(tensors["pre_conv.conv.weight"], self.layout, ops)
        self.early_bias = nn.Buffer(tensors["pre_conv.conv.bias"].to(ops.dtype))
        self.transformer = Transformer(tensors, "pre_transformer", config, ops)
        self.latent = nn.ModuleList(
            LatentStage(tensors, f"upsample.{index}", self.layout, ops)
            for index in range(len(config.upsampling_ratios))
        )
        self.first = Conv(tensors["decoder.0.conv.weight"], self.layout, ops)
        owed = tensors["decoder.0.conv.bias"]
        stages = []
        for index in range(rates):
            name = f"decoder.{index + 1}.block"
            stages.append(WaveformStage(tensors, name, owed, self.layout, ops))
            owed = stages[-1].owed
        self.stages = nn.ModuleList(stages)
        self.snake = Snake(tensors, f"decoder.{rates + 1}", owed)
        last = tensors[f"decoder.{rates + 2}.conv.weight"].squeeze(0).t()
        self.last_place = self.layout.reserve(last.shape[0] - 1, last.shape[1])
        readers = [stage.reader for stage in stages]
        self._readers = [*readers, Reader(self.snake, self.last_place)]
        self.last = nn.Buffer(last.contiguous().float())
        self.last_bias = nn.Buffer(tensors[f"decoder.{rates + 2}.conv.bias"].float())

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.last_bias.device

    def arena(self, slots: int, max_frames: int = MAX_FRAMES) -> SlotArena:
        """Room for ``slots`` streams and chunks of at most ``max_frames``, all slots fresh."""
        return SlotArena(
            self.config, self.layout, slots, max_frames, device=self.device, dtype=self.ops.dtype
        )

    @counted("codec")
    def forward(self, codes: torch.Tensor, slots: torch.Tensor, arena: SlotArena) -> torch.Tensor:
        """One chunk of every row: [B, quantizers, T] -> float32 [B, T * frame_samples], unclamped.

        ``slots`` [B] int64 must differ, except that any number may name the spare slot. T is at
        most the arena's ``max_frames``. Codes outside the codebook are clamped to it: an index
        fault on the device would take every stream down.
        """
        first = arena.positions.index_select(0, slots)
        columns = Columns(arena.columns.index_select(0, slots), self.layout)
        latent = self.encode(codes, first, slots, columns, arena)
        pcm = self.render(latent, columns)
        arena.columns.index_copy_(0, slots, columns.kept())
        arena.positions.index_copy_(0, slots, first + codes.shape[2])
        return pcm

    def encode(
        self,
        codes: torch.Tensor,
        first: torch.Tensor,
        slots: torch.Tensor,
        columns: Columns,
        arena: SlotArena,
    ) -> torch.Tensor:
        """Codes to latents at the frame rate: [B, T, latent]."""
        x = extend(self.quantizer(codes), self.early.place, columns)
        early = self.early(x) + self.early_bias
        latent: torch.Tensor = self.transformer(early, first, slots, arena)
        return latent

    def render(self, x: torch.Tensor, columns: Columns) -> torch.Tensor:
        """Latents at the frame rate to PCM."""
        for latent in self.latent:
            x = latent(x, columns)
        extended = extend(x, self.first.place, columns)
        _, active = self.first.into(self._readers[0], extended, columns, raw=False)
        for stage, following in zip(self.stages, self._readers[1:], strict=True):
            active = stage(following, active, columns)
        return self.ops.fold(active, self.last, self.last_bias)


class _Primed(NamedTuple):
    """A slot's state after a recording. Keeps its array, so that its id is nobody else's."""

    codes: Codes
    state: tuple[torch.Tensor, ...]


@dataclass(frozen=True, slots=True)
class Codec:
    """A decoder and the states of its streams."""

    decoder: CodecDecoder
    arena: SlotArena
    max_frames: int
    _primed: dict[int, "_Primed"] = field(default_factory=dict)

    @torch.no_grad()
    def decode(
        self, codes: torch.Tensor, slots: torch.Tensor, *, clamp: bool = True
    ) -> torch.Tensor:
        """Continue the streams in ``slots`` [B] by codes [B, quantizers, T], any T.

        float32 PCM [B, T * frame_samples], within -1..1 when clamped. Raises ``ValueError`` for
        shapes that do not fit; slot numbers and code values are not looked at (they may be on the
        device).
        """
        quantizers = self.decoder.config.quantizers
        if codes.ndim != 3 or codes.shape[1] != quantizers or codes.shape[2] == 0:
            raise ValueError(
                f"codes have shape {list(codes.shape)}; expected [batch, {quantizers}, frames]"
            )
        if slots.shape != codes.shape[:1]:
            raise ValueError(
                f"{codes.shape[0]} rows of codes need as many slots, not {list(slots.shape)}"
            )
        starts = range(0, codes.shape[2], self.max_frames)
        chunks = (codes[:, :, start : start + self.max_frames] for start in starts)
        with full_float32():
            parts = [self.decoder(chunk, slots, self.arena) for chunk in chunks]
        pcm = torch.cat(parts, 1)
        return pcm.clamp_(-1.0, 1.0) if clamp else pcm

    def reset(self, slots: torch.Tensor) -> None:
        """Make slots [N] int64 fresh."""
        self.arena.reset(slots)

    @torch.no_grad()
    def prime(self, codes: Codes, slots: torch.Tensor) -> None:
        """Let ``slots`` [N], which are fresh, go on where a recording ended: ``codes`` int64
        [frames, quantizers], whose audio is nobody's. Decoded at the first call with this array;
        later ones copy a slot's state."""
        known = self._primed.get(id(codes))
        if known is None:
            one = slots[:1]
            given = torch.from_numpy(codes).to(self.decoder.device)
            self.decode(given.t()[None], one)
            known = _Primed(codes, self.arena.snapshot(int(one)))
            self._primed[id(codes)] = known
        self.arena.restore(slots, known.state)


def open_codec(
    folder: Path,
    slots: int,
    *,
    max_frames: int = MAX_FRAMES,
    device: torch.device | str = "cpu",
    ops: TorchOps | None = None,
) -> Codec:
    """Load the codec of a folder with ``config.json`` and ``model.safetensors``.

    Raises ``ConfigError`` or ``WeightsError``, both ``ValueError``.
    """
    config = read_codec_config(folder / "config.json").decoder
    tensors = load_tensors(
        folder,
        decoder_tensors(config),
        prefix=PREFIX,
        ignored=IGNORED,
        device=device,
        dtype=torch.float32,
    )
    decoder = CodecDecoder(config, tensors, ops)
    return Codec(decoder, decoder.arena(slots, max_frames), max_frames)


def _book(tensors: Tensors, group: str, index: int) -> torch.Tensor:
    """A codebook [size, entry]: stored as sums over its uses and how often it was used."""
    name = f"quantizer.{group}.vq.layers.{index}._codebook"
    usage = tensors[f"{name}.cluster_usage"].clamp(min=USAGE_FLOOR)
    return tensors[f"{name}.embedding_sum"] / usage[:, None]
