"""The speaker encoder: a recording to one vector that describes its voice.

ECAPA-TDNN (arXiv 2005.07143): time-delay layers, three residual blocks whose channels are processed
in a chain of groups and then reweighted as a whole, all blocks' outputs aggregated, and statistics
over time pooled with attention per channel.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from playhead.engine.models.qwen3_tts.calls import counted
from playhead.engine.models.qwen3_tts.config import SpeakerEncoderConfig
from playhead.engine.models.qwen3_tts.layers import State
from playhead.engine.models.qwen3_tts.speaker_mel import check_audio, log_mel
from playhead.engine.models.qwen3_tts.weights import TensorSpec, bias, dense
from torch import Tensor
from torch.nn import functional as F

PREFIX = "speaker_encoder."
VARIANCE_FLOOR = 1e-12


def tensors(config: SpeakerEncoderConfig) -> dict[str, TensorSpec]:
    """Every tensor of the speaker encoder in a checkpoint."""
    out: dict[str, TensorSpec] = {}
    for name, (wide, narrow, kernel) in _convolutions(config):
        out[f"{PREFIX}{name}.weight"] = dense(wide, narrow, kernel)
        out[f"{PREFIX}{name}.bias"] = bias(wide)
    return out


def _convolutions(config: SpeakerEncoderConfig) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Name and (outputs, inputs, kernel) of each."""
    channels, kernels = config.channels, config.kernel_sizes
    yield "blocks.0.conv", (channels[0], config.mels, kernels[0])
    for block in range(1, len(channels) - 1):
        at, own = f"blocks.{block}.", channels[block]
        yield at + "tdnn1.conv", (own, channels[block - 1], 1)
        part = own // config.res2net_scale
        for group in range(config.res2net_scale - 1):
            yield f"{at}res2net_block.blocks.{group}.conv", (part, part, kernels[block])
        yield at + "tdnn2.conv", (own, own, 1)
        yield at + "se_block.conv1", (config.se_channels, own, 1)
        yield at + "se_block.conv2", (own, config.se_channels, 1)
    last, attention = channels[-1], config.attention_channels
    yield "mfa.conv", (last, sum(channels[1:-1]), kernels[-1])
    yield "asp.tdnn.conv", (attention, 3 * last, 1)
    yield "asp.conv", (last, attention, 1)
    yield "fc", (config.width, 2 * last, 1)


@dataclass(frozen=True, slots=True)
class SpeakerEncoder:
    """Loaded weights by their name without :data:`PREFIX`, float32."""

    config: SpeakerEncoderConfig
    weights: dict[str, Tensor]

    @classmethod
    def load(cls, state: State, config: SpeakerEncoderConfig) -> "SpeakerEncoder":
        """From checkpoint tensors. Raises KeyError for a missing one."""
        names = tensors(config)
        return cls(config, {name.removeprefix(PREFIX): state[name].float() for name in names})

    @torch.inference_mode()
    def describe(self, pcm: npt.NDArray[np.generic], rate: int) -> npt.NDArray[np.float32]:
        """The voice of a recording: float32 [width] from mono ``pcm`` [samples] within -1..1.
        Raises PromptError for audio that cannot be used (see ``check_audio``)."""
        audio = check_audio(pcm, rate, self.config.sample_rate)
        device = self.weights["fc.weight"].device
        mel = log_mel(torch.from_numpy(audio).to(device), rate, self.config.mels)
        vector: npt.NDArray[np.float32] = self.encode(mel[None])[0].cpu().numpy()
        return vector

    @counted("speaker encoder")
    def encode(self, mel: Tensor) -> Tensor:
        """Log-mel frames [B, mels, T] to vectors [B, width]."""
        x = torch.relu(self._conv("blocks.0.conv", mel, self.config.dilations[0]))
        outputs = []
        for block in range(1, len(self.config.channels) - 1):
            x = self._block(block, x)
            outputs.append(x)
        joined = torch.cat(outputs, 1)
        x = torch.relu(self._conv("mfa.conv", joined, self.config.dilations[-1]))
        return self._conv("fc", self._pool(x)).squeeze(2)

    def _conv(self, name: str, x: Tensor, dilation: int = 1) -> Tensor:
        """Convolution that keeps the length; the ends are mirrored."""
        weight = self.weights[name + ".weight"]
        reach = dilation * (weight.shape[2] - 1)
        if reach:
            x = F.pad(x, (reach // 2, reach - reach // 2), mode="reflect")
        return F.conv1d(x, weight, self.weights[name + ".bias"], dilation=dilation)

    def _block(self, block: int, x: Tensor) -> Tensor:
        at = f"blocks.{block}."
        parts = torch.relu(self._conv(at + "tdnn1.conv", x)).chunk(self.config.res2net_scale, 1)
        chain = [parts[0]]
        for group, part in enumerate(parts[1:]):
            given = part + chain[-1] if group else part
            name = f"{at}res2net_block.blocks.{group}.conv"
            chain.append(torch.relu(self._conv(name, given, self.config.dilations[block])))
        inner = torch.relu(self._conv(at + "tdnn2.conv", torch.cat(chain, 1)))
        squeezed = torch.relu(self._conv(at + "se_block.conv1", inner.mean(2, keepdim=True)))
        return x + inner * torch.sigmoid(self._conv(at + "se_block.conv2", squeezed))

    def _pool(self, x: Tensor) -> Tensor:
        """Mean and deviation over time, weighted by attention per channel: [B, 2 * channels, 1]."""
        even = x.new_full((), 1.0 / x.shape[2])
        mean, deviation = _statistics(x, even)
        context = torch.cat((x, mean.expand_as(x), deviation.expand_as(x)), 1)
        attention = torch.tanh(torch.relu(self._conv("asp.tdnn.conv", context)))
        shares = torch.softmax(self._conv("asp.conv", attention), 2)
        return torch.cat(_statistics(x, shares), 1)


def _statistics(x: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation over time, [B, channels, 1] each, of ``x`` [B, channels, T]."""
    mean = (shares * x).sum(2, keepdim=True)
    variance = (shares * (x - mean).square()).sum(2, keepdim=True)
    return mean, variance.clamp(min=VARIANCE_FLOOR).sqrt()
