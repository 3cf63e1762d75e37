"""The neural codec's encoder: a recording to the codes that a talker can continue.

A Mimi encoder (arXiv 2410.00037): causal convolutions down to twice the frame rate, a causal
transformer, one more convolution to the frame rate, and residual vector quantization, the semantic
codebook apart from the acoustic ones. Used once per cloned voice, on whole recordings.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from playhead.engine.models.qwen3_tts.calls import counted
from playhead.engine.models.qwen3_tts.codec_ops import full_float32
from playhead.engine.models.qwen3_tts.encoder_config import (
    DOWNSAMPLING,
    CodecEncoderConfig,
    read_encoder_config,
)
from playhead.engine.models.qwen3_tts.encoder_spec import (
    DOWNSAMPLE,
    PREFIX,
    TRANSFORMER,
    Convolution,
    Residual,
    books,
    encoder_tensors,
    group_name,
    steps,
    unused,
)
from playhead.engine.models.qwen3_tts.layers import rotate
from playhead.engine.models.qwen3_tts.speaker_mel import check_audio
from playhead.engine.models.qwen3_tts.weights import Tensors, load_tensors
from torch import Tensor
from torch.nn import functional as F

USAGE_FLOOR = 1e-5


@dataclass(frozen=True, slots=True)
class CodecEncoder:
    """Loaded weights by their name without :data:`PREFIX`, float32."""

    config: CodecEncoderConfig
    weights: Tensors

    def encode(self, pcm: npt.NDArray[np.generic], rate: int) -> npt.NDArray[np.int64]:
        """Codes of a recording: int64 [frames, quantizers] from mono ``pcm`` [samples] within
        -1..1; a last frame that is not full is filled up with silence. Raises PromptError for
        audio that cannot be used (see ``check_audio``)."""
        audio = check_audio(pcm, rate, self.config.sample_rate)
        device = self.weights[DOWNSAMPLE].device
        with torch.inference_mode(), full_float32():
            codes = self.forward(torch.from_numpy(audio).to(device)[None, None])
        found: npt.NDArray[np.int64] = codes[0].t().contiguous().cpu().numpy()
        return found

    @counted("codec encoder")
    def forward(self, pcm: Tensor) -> Tensor:
        """[B, 1, samples] to int64 [B, quantizers, frames]."""
        x = self._transform(self._waveform(pcm).transpose(1, 2)).transpose(1, 2)
        weight = self.weights[DOWNSAMPLE]
        padding = (weight.shape[2] - DOWNSAMPLING, -x.shape[2] % DOWNSAMPLING)
        x = F.conv1d(F.pad(x, padding, mode="replicate"), weight, stride=DOWNSAMPLING)
        return torch.cat(
            [self._quantize(x, group, count) for group, count in books(self.config).items()], 1
        )

    def _waveform(self, x: Tensor) -> Tensor:
        """[B, 1, samples] to [B, hidden, columns]."""
        first, *rest = steps(self.config)
        assert isinstance(first, Convolution)
        x = self._conv(x, first)
        for step in rest:
            if isinstance(step, Residual):
                x = x + self._conv(F.elu(self._conv(F.elu(x), step.wide)), step.narrow)
            else:
                x = self._conv(F.elu(x), step)
        return x

    def _conv(self, x: Tensor, conv: Convolution) -> Tensor:
        """Causal: zeros before the first sample, and after the last up to a whole stride."""
        before = (conv.kernel - 1) * conv.dilation + 1 - conv.stride
        x = F.pad(x, (before, -x.shape[2] % conv.stride))
        return F.conv1d(
            x,
            self.weights[f"{conv.at}.weight"],
            self.weights[f"{conv.at}.bias"],
            stride=conv.stride,
            dilation=conv.dilation,
        )

    def _transform(self, x: Tensor) -> Tensor:
        """[B, T, hidden] to the same; a column sees itself and all before it."""
        config = self.config
        even = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device=x.device)
        angles = torch.arange(x.shape[1], dtype=torch.float32, device=x.device)[:, None]
        angles = angles * (1.0 / config.rope_theta ** (even / config.head_dim))
        angles = torch.cat((angles, angles), -1)[:, None]
        turn = (angles.cos(), angles.sin())
        for layer in range(config.layers):
            x = self._layer(x, f"{TRANSFORMER}.{layer}", turn)
        return x

    def _layer(self, x: Tensor, at: str, turn: tuple[Tensor, Tensor]) -> Tensor:
        weights = self.weights
        inner = self._norm(x, f"{at}.input_layernorm")
        seen = F.linear(self._attend(inner, at, turn), weights[f"{at}.self_attn.o_proj.weight"])
        x = x + weights[f"{at}.self_attn_layer_scale.scale"] * seen
        inner = self._norm(x, f"{at}.post_attention_layernorm")
        inner = F.gelu(F.linear(inner, weights[f"{at}.mlp.fc1.weight"]))
        inner = F.linear(inner, weights[f"{at}.mlp.fc2.weight"])
        return x + weights[f"{at}.mlp_layer_scale.scale"] * inner

    def _attend(self, x: Tensor, at: str, turn: tuple[Tensor, Tensor]) -> Tensor:
        q, k, v = (
            F.linear(x, self.weights[f"{at}.self_attn.{part}_proj.weight"]).unflatten(
                -1, (-1, self.config.head_dim)
            )
            for part in "qkv"
        )
        q, k = rotate(q, *turn), rotate(k, *turn)
        seen = F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True, enable_gqa=True
        )
        return seen.transpose(1, 2).flatten(2)

    def _norm(self, x: Tensor, at: str) -> Tensor:
        weight, bias = self.weights[f"{at}.weight"], self.weights[f"{at}.bias"]
        return F.layer_norm(x, weight.shape, weight, bias, self.config.norm_eps)

    def _quantize(self, x: Tensor, group: str, count: int) -> Tensor:
        """[B, hidden, T] to [B, count, T]: each codebook gets what those before it left over."""
        at = group_name(group)
        rest = F.conv1d(x, self.weights[f"{at}.input_proj.weight"]).transpose(1, 2)
        found = []
        for book in range(count):
            entries = self._book(f"{at}.layers.{book}.codebook")
            codes = torch.cdist(rest, entries).argmin(-1)
            rest = rest - entries[codes]
            found.append(codes)
        return torch.stack(found, 1)

    def _book(self, at: str) -> Tensor:
        """[size, entry]: stored as sums over its uses and how often it was used."""
        usage = self.weights[f"{at}.cluster_usage"].clamp(min=USAGE_FLOOR)
        return self.weights[f"{at}.embed_sum"] / usage[:, None]


def open_codec_encoder(folder: Path, *, device: torch.device | str = "cpu") -> CodecEncoder:
    """Load the encoder of a codec's folder. Raises ``ConfigError`` or ``WeightsError``, both
    ``ValueError``."""
    config = read_encoder_config(folder / "config.json")
    tensors = load_tensors(
        folder,
        encoder_tensors(config),
        prefix=PREFIX,
        ignored=unused(config),
        device=device,
        dtype=torch.float32,
    )
    return CodecEncoder(config, tensors)
