"""Tiny speech models and the utterances on which they are compared with the reference.

Shared by the tests and by ``scripts/parity/make_talker_vectors.py``, so that both mean the same
weights and prompts. Imports torch only where a function needs it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from playhead.engine.models.qwen3_tts.config import ModelConfig, read_model_config

VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "qwen3_tts"
SPEAKERS = {"ryan": 3061, "eric": 2875, "serena": 3066}
LANGUAGES = {"english": 2050, "chinese": 2055, "sichuan_dialect": 2062}
ROLE = (500, 77, 198)
TAIL = (501, 198, 500, 77, 198)
USER_TURN = (500, 90, 198)
HIDDEN = 64
GROUPS = 16
MOST_FRAMES = 33
RECORDING_RATE = 24_000


def talker_dict(form: str) -> dict[str, Any]:
    """``talker_config`` of config.json. As in the published files, the small form has text
    embeddings and heads that are together wider than its hidden states, and no projection into its
    predictor; in the large form all have one width, but for the predictor, which is narrower."""
    small = form == "0b6"
    head_dim = 32 if small else 16
    attention = {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": head_dim,
        "hidden_act": "silu",
        "attention_bias": False,
        "use_sliding_window": False,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1_000_000.0,
    }
    predictor = attention | {
        "num_hidden_layers": 2,
        "hidden_size": HIDDEN if small else 32,
        "intermediate_size": 64,
        "vocab_size": 2048,
        "num_code_groups": GROUPS,
        "layer_types": ["full_attention"] * 2,
        "max_position_embeddings": 1024,
    }
    return attention | {
        "num_hidden_layers": 2,
        "hidden_size": HIDDEN,
        "intermediate_size": 128,
        "vocab_size": 3072,
        "text_vocab_size": 512,
        "text_hidden_size": 96 if small else HIDDEN,
        "num_code_groups": GROUPS,
        "max_position_embeddings": 1024,
        "rope_scaling": {
            "interleaved": True,
            "mrope_section": [head_dim // 4, head_dim // 8, head_dim // 8],
            "rope_type": "default",
        },
        "codec_pad_id": 2148,
        "codec_bos_id": 2149,
        "codec_eos_token_id": 2150,
        "codec_think_id": 2154,
        "codec_nothink_id": 2155,
        "codec_think_bos_id": 2156,
        "codec_think_eos_id": 2157,
        "codec_language_id": LANGUAGES,
        "spk_id": SPEAKERS,
        "spk_is_dialect": {"ryan": False, "eric": "sichuan_dialect", "serena": False},
        "code_predictor_config": predictor,
    }


def model_dict(kind: str, form: str) -> dict[str, Any]:
    """A tiny ``config.json``."""
    encoder: dict[str, Any] = {"enc_dim": HIDDEN, "sample_rate": 24_000}
    if kind == "base":
        encoder |= {
            "enc_channels": [16, 16, 16, 16, 48],
            "enc_attention_channels": 8,
            "enc_se_channels": 8,
            "enc_res2net_scale": 4,
        }
    return {
        "model_type": "qwen3_tts",
        "tokenizer_type": "qwen3_tts_tokenizer_12hz",
        "tts_model_type": kind,
        "tts_model_size": form,
        "im_start_token_id": 500,
        "im_end_token_id": 501,
        "assistant_token_id": 77,
        "tts_pad_token_id": 502,
        "tts_bos_token_id": 503,
        "tts_eos_token_id": 504,
        "talker_config": talker_dict(form),
        "speaker_encoder_config": encoder,
    }


def model_config(kind: str, form: str, folder: Path) -> ModelConfig:
    """The checked form of :func:`model_dict`, read from a file in ``folder``."""
    path = folder / f"{kind}-{form}.json"
    path.write_text(json.dumps(model_dict(kind, form)))
    return read_model_config(path)


@dataclass(frozen=True)
class Spoken:
    """One utterance: ``text`` and the rest are seeds and sizes of made-up token ids."""

    text: int  # tokens
    voice: str = ""
    language: str = "auto"
    instruct: int = 0  # tokens
    reference: tuple[int, int] | None = None  # frames, tokens
    vector: bool = False
    seed: int = 1

    def text_ids(self) -> tuple[int, ...]:
        return made_up(self.seed, self.text)

    def instruct_ids(self) -> tuple[int, ...]:
        if not self.instruct:
            return ()
        return (*USER_TURN, *made_up(self.seed + 100, self.instruct), 501, 198)

    def reference_ids(self) -> tuple[int, ...]:
        return made_up(self.seed + 200, self.reference[1]) if self.reference else ()

    def reference_codes(self) -> npt.NDArray[np.int64] | None:
        if self.reference is None:
            return None
        rng = np.random.default_rng(self.seed + 300)
        return rng.integers(0, 2048, (self.reference[0], GROUPS))

    def speaker_vector(self) -> npt.NDArray[np.float32] | None:
        if not self.vector:
            return None
        rng = np.random.default_rng(self.seed + 400)
        return rng.standard_normal(HIDDEN).astype(np.float32)


@dataclass(frozen=True)
class Case:
    """A batch spoken by one tiny model in one layout."""

    name: str
    kind: str
    form: str
    full: bool
    spoken: tuple[Spoken, ...]
    weights: int  # seed


def made_up(seed: int, count: int) -> tuple[int, ...]:
    """Token ids below the special ones."""
    return tuple(int(i) for i in np.random.default_rng(seed).integers(0, 499, count))


RYAN = Spoken(9, "ryan", "english", seed=1)
ERIC = Spoken(14, "eric", "auto", instruct=6, seed=2)
ONE_TOKEN = Spoken(1, "serena", "chinese", seed=3)
DESIGN = Spoken(12, instruct=9, seed=4)
DESIGN_CHINESE = Spoken(12, language="chinese", instruct=9, seed=4)
VECTOR = Spoken(8, language="english", vector=True, seed=5)
LONG_REFERENCE = Spoken(6, vector=True, reference=(20, 5), seed=6)
SHORT_REFERENCE = Spoken(15, language="chinese", vector=True, reference=(7, 4), seed=7)


def cases() -> list[Case]:
    """Every layout, kind of voice and size."""
    own = (RYAN, ERIC, ONE_TOKEN)
    cloned = (VECTOR, LONG_REFERENCE, SHORT_REFERENCE)
    return [
        Case(f"{kind}-{'full' if full else 'open'}-{form}", kind, form, full, batch, weights)
        for form, weights, design in (("1b7", 11, DESIGN), ("0b6", 12, DESIGN_CHINESE))
        for full in (True, False)
        for kind, batch in (("custom_voice", (*own, design)), ("base", cloned))
    ]


def checkpoint(config: ModelConfig, seed: int) -> dict[str, Any]:
    """Random talker and predictor tensors under their names in a checkpoint."""
    from playhead.engine.models.qwen3_tts import predictor, talker
    from playhead.engine.models.qwen3_tts.weights import random_tensors

    specs = talker.tensors(config.talker) | predictor.tensors(config.talker)
    return random_tensors(specs, seed)


def speaker_checkpoint(folder: Path) -> dict[str, Any]:
    """Random tensors of the tiny speaker encoder under their names in a checkpoint."""
    from playhead.engine.models.qwen3_tts import speaker
    from playhead.engine.models.qwen3_tts.weights import random_tensors

    config = model_config("base", "1b7", folder).speaker_encoder
    assert config is not None
    return random_tensors(speaker.tensors(config), 21)


def recording() -> npt.NDArray[np.float32]:
    """A second and a half of gliding tones in noise."""
    rng = np.random.default_rng(9)
    at = np.arange(int(1.5 * RECORDING_RATE)) / RECORDING_RATE
    tones = [
        np.sin(2 * np.pi * (hz + 40 * at) * at) / n for n, hz in enumerate((140, 900, 5_000), 1)
    ]
    loud = 0.25 * sum(tones) * (0.6 + 0.4 * np.sin(9 * at))
    return (loud + 0.01 * rng.standard_normal(len(at))).astype(np.float32)


def recorded(name: str, spoken: Sequence[Spoken]) -> list[dict[str, npt.NDArray[Any]]]:
    """What the reference gave: per utterance ``codes`` [frames, groups] and ``hidden``
    [frames, hidden]."""
    with np.load(VECTORS / "talker.npz") as archive:
        return [
            {what: archive[f"{name}/{index}/{what}"] for what in ("codes", "hidden")}
            for index in range(len(spoken))
        ]
