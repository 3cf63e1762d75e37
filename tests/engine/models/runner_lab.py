"""A tiny Qwen3Runner with random weights, and ways to drive it. Needs torch."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import talker_lab as lab
import torch
from playhead.engine.models.qwen3_tts.codec import Codec, CodecDecoder
from playhead.engine.models.qwen3_tts.codec_spec import decoder_tensors
from playhead.engine.models.qwen3_tts.config import CodecDecoderConfig
from playhead.engine.models.qwen3_tts.prompt import Clone, Voices
from playhead.engine.models.qwen3_tts.runner import Options, Parts, Qwen3Runner
from playhead.engine.models.qwen3_tts.sampling import Sampling
from playhead.engine.models.qwen3_tts.text import HashTokenizer
from playhead.engine.models.qwen3_tts.weights import random_tensors
from playhead.engine.types import ChunkWork, Lane, Pcm, Request, StepResult
from talker_kit import model_config

RATE = 2_400
CODEC = CodecDecoderConfig(
    quantizers=16,
    semantic_quantizers=1,
    codebook_size=2048,
    codebook_width=8,
    latent=16,
    layers=1,
    hidden=16,
    intermediate=16,
    heads=2,
    kv_heads=2,
    head_dim=8,
    window=8,
    norm_eps=1e-5,
    rope_theta=10_000.0,
    channels=16,
    upsample_rates=(4, 3),
    upsampling_ratios=(2,),
)
FRAME = CODEC.frame_samples
SAMPLED = Sampling(repetition_penalty=1.05)


class Words(HashTokenizer):
    """Knows one control word."""

    specials = ("<|stop|>",)


def runner(
    folder: Path,
    *,
    kind: str = "custom_voice",
    form: str = "1b7",
    slots: int = 4,
    positions: int = 96,
    frames: Callable[[Request], int] | None = None,
    clones: dict[str, Clone] | None = None,
    device: torch.device = lab.CPU,
    **options: object,
) -> Qwen3Runner:
    """A fresh runner, equal for equal arguments."""
    config = model_config(kind, form, folder)
    loop = lab.build(
        config,
        11,
        slots=slots,
        positions=positions,
        rule=SAMPLED,
        fine_rule=Sampling(),
        device=device,
    )
    weights = random_tensors(decoder_tensors(CODEC), 5)
    decoder = CodecDecoder(CODEC, {name: tensor.to(device) for name, tensor in weights.items()})
    codec = Codec(decoder, decoder.arena(slots), 25)
    parts = Parts(config, loop, codec, RATE, Words(499), Voices(config, clones or {}))
    return Qwen3Runner(parts, Options(frames=frames, **options))  # type: ignore[arg-type]


def request(utterance: int, voice: str = "ryan", **more: object) -> Request:
    return Request(utterance, "client", voice, **more)  # type: ignore[arg-type]


@dataclass
class Heard:
    """What became of an utterance."""

    pcm: list[Pcm] = field(default_factory=list)
    results: list[StepResult] = field(default_factory=list)

    @property
    def frames(self) -> int:
        return sum(result.frames for result in self.results)

    @property
    def sound(self) -> Pcm:
        return np.concatenate(self.pcm) if self.pcm else np.zeros(0, np.float32)

    @property
    def last(self) -> StepResult:
        return self.results[-1]


def chunk(utterance: int, first: int, frames: int) -> ChunkWork:
    return ChunkWork(utterance, 0, first, frames, Lane.BACKGROUND, None, 0.0, 0.0)


def advance(model: Qwen3Runner, heard: dict[int, Heard], most: int = 60) -> None:
    """Step all of ``heard`` together, decoding each frame, until none yields more."""
    active = [one for one in heard if not (heard[one].results and heard[one].last.ended)]
    for _ in range(most):
        if not active:
            return
        results = model.step(active)
        for result in results:
            made = heard[result.utterance]
            if result.frames:
                (pcm,) = model.decode([chunk(result.utterance, made.frames, result.frames)])
                assert not isinstance(pcm, BaseException), pcm
                made.pcm.append(pcm)
            made.results.append(result)
        over = [r.utterance for r in results if r.ended or r.hungry or r.error]
        active = [one for one in active if one not in over]


def say(
    model: Qwen3Runner, utterance: int, text: str, voice: str = "ryan", **more: object
) -> Heard:
    """One utterance alone, from its opening to its closing."""
    model.open(request(utterance, voice, **more))
    assert model.push_text(utterance, text, flush=False, end=True)
    heard = Heard()
    advance(model, {utterance: heard})
    model.close(utterance)
    return heard
