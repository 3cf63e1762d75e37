"""Tiny and true models on a CUDA device."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import runner_lab
import torch
from playhead.engine.models.qwen3_tts.codec import Codec, CodecDecoder
from playhead.engine.models.qwen3_tts.codec_fused import FusedOps
from playhead.engine.models.qwen3_tts.codec_ops import TorchOps
from playhead.engine.models.qwen3_tts.codec_spec import decoder_tensors
from playhead.engine.models.qwen3_tts.cuda_lm import LmBuckets
from playhead.engine.models.qwen3_tts.cuda_runner import Buckets, CudaRunner
from playhead.engine.models.qwen3_tts.frames import FrameLoop
from playhead.engine.models.qwen3_tts.graphs import with_ops
from playhead.engine.models.qwen3_tts.lm_triton import FUSED_OPS
from playhead.engine.models.qwen3_tts.predictor import Predictor
from playhead.engine.models.qwen3_tts.prompt import Clone, Voices
from playhead.engine.models.qwen3_tts.runner import Options, Parts
from playhead.engine.models.qwen3_tts.sampling import Sampling
from playhead.engine.models.qwen3_tts.slots import SlotTable
from playhead.engine.models.qwen3_tts.talker import Talker
from playhead.engine.models.qwen3_tts.weights import random_tensors
from playhead.engine.types import Request
from talker_kit import checkpoint, model_config

DEVICE = torch.device("cuda")
Report = Callable[[str, float], None]
"""The fixture ``report``."""
SLOTS, POSITIONS = 24, 256
CODEC = replace(runner_lab.CODEC, channels=64, latent=32, hidden=32, head_dim=16, window=20)
SMALL = Buckets(
    lm=LmBuckets(
        steps=(1, 2, 4, 8, 16),
        firsts=(1, 2),
        prompts=((1, 32), (4, 32), (1, 64)),
    ),
    urgent=(1, 4, 16),
    background=(1, 4, 16),
)


@dataclass(frozen=True)
class Made:
    """How a tiny model is made."""

    folder: Path
    dtype: torch.dtype = torch.float32
    fused: bool = True
    kind: str = "custom_voice"
    clones: dict[str, Clone] | None = None
    frames: Callable[[Request], int] | None = None


def tiny_loop(made: Made) -> FrameLoop:
    """Talker, predictor and slots; the same weights for every dtype, but for rounding."""
    config = model_config(made.kind, "1b7", made.folder)
    state = {name: tensor.to(DEVICE, made.dtype) for name, tensor in checkpoint(config, 11).items()}
    talker = Talker.load(state, config.talker, POSITIONS)
    predictor = Predictor.load(state, config.talker, talker.codec_table)
    table = SlotTable(config.talker, SLOTS, POSITIONS, device=DEVICE, dtype=made.dtype)
    rule = Sampling(repetition_penalty=1.05)
    loop = FrameLoop(talker, predictor, table, config.talker, rule, Sampling())
    return with_ops(loop, FUSED_OPS) if made.fused else loop


def tiny_codec(dtype: torch.dtype, *, fused: bool = True) -> Codec:
    """A codec whose every layer the kernels take."""
    weights = random_tensors(decoder_tensors(CODEC), 5, device="cpu")
    ops = FusedOps(dtype) if fused else TorchOps(dtype)
    decoder = CodecDecoder(CODEC, {n: t.to(DEVICE) for n, t in weights.items()}, ops)
    return Codec(decoder, decoder.arena(SLOTS), 25)


def tiny_parts(made: Made) -> Parts:
    """Everything a runner needs."""
    config = model_config(made.kind, "1b7", made.folder)
    voices = Voices(config, made.clones or {})
    codec = tiny_codec(made.dtype, fused=made.fused)
    words = runner_lab.Words(499)
    return Parts(config, tiny_loop(made), codec, runner_lab.RATE, words, voices)


def tiny_runner(made: Made, buckets: Buckets = SMALL) -> CudaRunner:
    """The lanes as they serve, on a tiny model."""
    return CudaRunner(tiny_parts(made), Options(frames=made.frames), buckets)


def error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """Length of the difference, relative to what was wanted."""
    difference = (found.double() - wanted.double()).norm() / wanted.double().norm()
    return float(difference)
